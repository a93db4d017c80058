/// Why an HTTP/1.1 message was refused. Every case has one status, and the connection is closed behind it.
public struct HTTPFailure: Error, Equatable, CustomStringConvertible {
    /// What exactly was wrong. Closed, so that tests and metrics can tell them apart.
    public enum Problem: String, Sendable {
        // Bytes and lines
        case controlByte, bareLineFeed, bareCarriageReturn, headTooLong, targetTooLong, tooManyFields
        // First line
        case badRequestLine, badMethod, badTarget, badVersion, versionNotSupported, badStatusLine
        // Fields
        case foldedLine, badFieldName, badFieldValue, missingHost, repeatedHost, badHost
        // Framing
        case repeatedLength, badLength, lengthAndCoding, codingNotSupported, codingInOldVersion, badExpectation
        case bodyTooLong, badChunk, chunkLineTooLong
        // WebSocket handshake
        case notAnUpgrade, badKey, webSocketVersion, refusedUpgrade, badAccept, unexpectedExtension
        case unexpectedSubprotocol
    }

    public let problem: Problem
    public init(_ problem: Problem) { self.problem = problem }

    /// The status a server answers with.
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

    /// The problem as clients are told it: `head_too_long`.
    public var code: String { spelled(with: "_") }

    /// The problem in words: `head too long`.
    var words: String { spelled(with: " ") }

    /// What whoever sent it can do.
    var hint: String {
        switch status {
        case 413: "Send a smaller body."
        case 414: "Send a shorter path and query."
        case 417: "Send 'Expect: 100-continue', or no such field."
        case 426: "Ask for version 13 of the WebSocket protocol."
        case 431: "Send fewer or shorter fields."
        case 501: "Send the body with its length, or chunked."
        case 505: "Speak HTTP/1.1."
        default: "Look at the request's first line, fields and framing: they are not those of HTTP/1.1."
        }
    }

    /// The case's name, its words apart and in lower case.
    private func spelled(with space: String) -> String {
        problem.rawValue.reduce(into: "") { text, letter in
            text += letter.isUppercase ? space + letter.lowercased() : String(letter)
        }
    }

    public var description: String { "HTTP message refused with \(status): \(problem.rawValue)" }
}

/// Bounds of the HTTP parser. Everything is in bytes unless it says otherwise.
public struct HTTPLimits: Sendable {
    /// Request line and fields together, with their line ends.
    public var headBytesMax: Int = 64 << 10
    /// One field line. A token has 8 KiB at most; a browser's cookies for one host may stand in one line.
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

    public init() {}
}
