/// What a WebSocket frame is (RFC 6455, 5.2). The other ten values are reserved and refused.
public enum WebSocketOpcode: UInt8, Sendable, CaseIterable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Control frames are never fragmented, carry at most 125 bytes and may stand between the fragments of a message.
    public var isControl: Bool { rawValue & 0x8 != 0 }
}

/// Which end of the connection we are: a server wants every frame masked, a client none (RFC 6455, 5.1).
public enum WebSocketRole: Sendable { case server, client }

/// Why a WebSocket was closed, as it stands on the wire (RFC 6455, 7.4, and the IANA registry that continues it).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let normal = WebSocketCloseCode(rawValue: 1000)
    /// The server stops, or the page is left.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// A kind of message this end does not take.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// Text that is not UTF-8.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// The reader is too slow or the server too busy: connect again and catch up.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

    /// Whether an endpoint may put this code in a close frame.
    ///
    /// 1004–1006 and 1015 are never sent, 0–999, 1016–2999 and everything above 4999 are not assigned.
    public var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    public var description: String { String(rawValue) }
}

/// Why the bytes of a peer are not a WebSocket stream we go on with; the connection is closed with `code`.
public struct WebSocketFailure: Error, Equatable, CustomStringConvertible {
    /// What exactly was wrong. Closed, so that tests and metrics can tell them apart.
    public enum Problem: String, Sendable {
        case reservedBits, reservedOpcode, missingMask, unexpectedMask
        case fragmentedControl, longControl, overlongLength, negativeLength
        case continuationWithoutStart, startInsideMessage
        case shortClose, invalidCloseCode
        case invalidUTF8, binaryNotTaken, messageTooBig
    }

    public let problem: Problem
    public init(_ problem: Problem) { self.problem = problem }

    /// The code of the close frame that answers it (RFC 6455, 7.4.1).
    public var code: WebSocketCloseCode {
        switch problem {
        case .invalidUTF8: .invalidPayload
        case .binaryNotTaken: .unsupportedData
        case .messageTooBig: .messageTooBig
        default: .protocolError
        }
    }

    public var description: String { "WebSocket stream refused with \(code): \(problem.rawValue)" }
}
