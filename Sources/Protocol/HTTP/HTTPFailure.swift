/// Why an HTTP/1.1 message was refused. Each problem has one status, and the connection is closed after it.
public struct HTTPFailure: Error, Equatable, CustomStringConvertible {
    /// The exact problem. A closed list, so that tests and metrics can distinguish the cases.
    public enum Problem: String, Sendable {
        /// Bytes and lines of the head.
        case controlByte, bareLineFeed, bareCarriageReturn, headTooLong, targetTooLong, tooManyFields
        /// The first line.
        case badRequestLine, badMethod, badTarget, badVersion, versionNotSupported, badStatusLine
        /// The fields.
        case foldedLine, badFieldName, badFieldValue, missingHost, repeatedHost, badHost
        /// The framing of the body.
        case repeatedLength, badLength, lengthAndCoding, codingNotSupported, codingInOldVersion, badExpectation
        /// The size of the body and its chunks.
        case bodyTooLong, badChunk, chunkLineTooLong
        /// The WebSocket handshake.
        case notAnUpgrade, badKey, webSocketVersion, refusedUpgrade, badAccept, unexpectedExtension
        /// The server named a subprotocol that was not asked for.
        case unexpectedSubprotocol
    }

    /// The exact problem.
    public let problem: Problem
    /// Wraps a problem.
    public init(_ problem: Problem) { self.problem = problem }

    /// The status with which a server answers.
    public var status: Int {
        switch problem {
        case .headTooLong, .tooManyFields: 431
        case .targetTooLong: 414
        case .versionNotSupported: 505
        case .bodyTooLong: 413
        case .codingNotSupported: 501
        case .badExpectation: 417
        case .webSocketVersion: 426
        default: 400
        }
    }

    /// The problem's code as sent to clients: `head_too_long`.
    public var code: String { spelled(with: "_") }

    /// The problem in words: `head too long`.
    var words: String { spelled(with: " ") }

    /// How the sender can correct the request.
    var hint: String {
        switch status {
        case 413: "Send a smaller body."
        case 414: "Send a shorter path and query."
        case 417: "Send 'Expect: 100-continue', or leave the field out."
        case 426: "Use version 13 of the WebSocket protocol."
        case 431: "Send fewer or shorter fields."
        case 501: "Send the body with its length, or chunked."
        case 505: "Use HTTP/1.1."
        default: "Check the request's first line, fields and framing: they are not those of HTTP/1.1."
        }
    }

    /// The case's name in lower case, with its words separated by `space`.
    private func spelled(with space: String) -> String {
        problem.rawValue.reduce(into: "") { text, letter in
            text += letter.isUppercase ? space + letter.lowercased() : String(letter)
        }
    }

    /// The status and the problem.
    public var description: String { "HTTP message refused with \(status): \(problem.rawValue)" }
}

/// Bounds of the HTTP parser, in bytes unless a unit is given.
public struct HTTPLimits: Sendable {
    /// Request line and fields together, including their line ends.
    public var headBytesMax: Int = 64 << 10
    /// One field line. A token has at most 8 KiB; a browser may send all cookies of a host in one line.
    public var lineBytesMax: Int = 16 << 10
    /// The request target.
    public var targetBytesMax: Int = 4 << 10
    /// Number of field lines.
    public var fieldsMax: Int = 64
    /// A body, after its chunks are joined.
    public var bodyBytesMax: Int = 1 << 20
    /// One line of a chunked body: size and extensions.
    public var chunkLineBytesMax: Int = 256
    /// All trailer fields of a chunked body; they are checked and dropped.
    public var trailerBytesMax: Int = 4 << 10

    /// The default bounds.
    public init() {}
}
