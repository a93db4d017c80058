/// The kind of a WebSocket frame (RFC 6455, 5.2). The other ten values are reserved and refused.
public enum WebSocketOpcode: UInt8, Sendable, CaseIterable {
    /// Continues the fragmented message before it.
    case continuation = 0x0
    /// A text message, or its first fragment.
    case text = 0x1
    /// A binary message, or its first fragment.
    case binary = 0x2
    /// Ends the connection.
    case close = 0x8
    /// Asks the peer for a pong.
    case ping = 0x9
    /// Answers a ping.
    case pong = 0xA

    /// Whether the frame is a control frame. Control frames are never fragmented, carry at most 125 bytes and may come
    /// between the fragments of a message.
    public var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The end of the connection that this side is: a server requires every frame to be masked, a client none (RFC 6455,
/// 5.1).
public enum WebSocketRole: Sendable { case server, client }

/// Why a WebSocket was closed, as a number on the wire (RFC 6455, 7.4, and the IANA registry that continues it).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The code on the wire.
    public let rawValue: UInt16
    /// Makes a code from its number on the wire.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The connection has served its purpose.
    public static let normal = WebSocketCloseCode(rawValue: 1000)
    /// The server stops, or the browser leaves the page.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// The peer broke a rule of the protocol.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// The message is of a kind that this end does not accept.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// A text message is not valid UTF-8.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    /// The message breaks a rule of the application.
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    /// The message is longer than this end accepts.
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    /// The server failed.
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// The reader is too slow or the server too busy: the client connects again and catches up.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

    /// Whether an endpoint may send this code in a close frame.
    ///
    /// 1004–1006 and 1015 are never sent; 0–999, 1016–2999 and all codes above 4999 are not assigned.
    public var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// The code as a number.
    public var description: String { String(rawValue) }
}

/// Why the reader refused the bytes of a peer; the connection is closed with `code`.
public struct WebSocketFailure: Error, Equatable, CustomStringConvertible {
    /// The exact problem. A closed list, so that tests and metrics can distinguish the cases.
    public enum Problem: String, Sendable {
        /// The first two bytes of a header.
        case reservedBits, reservedOpcode, missingMask, unexpectedMask
        /// The form of a control frame, or the length in a header.
        case fragmentedControl, longControl, overlongLength, negativeLength
        /// The order of the fragments.
        case continuationWithoutStart, startInsideMessage
        /// The payload of a close frame.
        case shortClose, invalidCloseCode
        /// The content or the size of a message.
        case invalidUTF8, binaryNotAccepted, messageTooBig
    }

    /// The exact problem.
    public let problem: Problem
    /// Wraps a problem.
    public init(_ problem: Problem) { self.problem = problem }

    /// The code of the close frame that answers the failure (RFC 6455, 7.4.1).
    public var code: WebSocketCloseCode {
        switch problem {
        case .invalidUTF8: .invalidPayload
        case .binaryNotAccepted: .unsupportedData
        case .messageTooBig: .messageTooBig
        default: .protocolError
        }
    }

    /// The close code and the problem.
    public var description: String { "WebSocket stream refused with \(code): \(problem.rawValue)" }
}
