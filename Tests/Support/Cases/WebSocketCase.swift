/// One conversation of a WebSocket client with an echo server, written from RFC 6455.
///
/// An echo server sends each message back, answers pings, echoes a close code, and closes with a code of its own when
/// the client breaks a rule. The same cases drive the codec alone and a server on loopback.
public struct WebSocketCase: Sendable, CustomStringConvertible {
    /// An answer of an echo server.
    public enum Answer: Sendable, Equatable {
        case text([UInt8])
        case binary([UInt8])
        case pong([UInt8])
        /// A close frame with this code, or without one; nothing follows it.
        case close(UInt16?)
    }

    /// Group and number: `6.12`.
    public var name = ""
    public let title: String
    /// The bytes that the client sends, in the pieces in which they arrive.
    public let pieces: [[UInt8]]
    /// The server's answers, in order.
    public let answers: [Answer]
    /// How many of the bytes are enough for the server to see the fault; nil where that is not the point.
    public let faultVisibleAfter: Int?

    public var description: String { "\(name) \(title)" }
    public var bytes: [UInt8] { pieces.flatMap { $0 } }

    init(_ title: String, _ pieces: [[UInt8]], _ answers: [Answer], faultVisibleAfter: Int? = nil) {
        self.title = title
        self.pieces = pieces
        self.answers = answers
        self.faultVisibleAfter = faultVisibleAfter
    }

    /// Bytes of one message that the server under test must be set to.
    public static let messageBytesMax = 1 << 20

    /// All cases, numbered by group.
    public static let all: [WebSocketCase] = {
        let groups = [
            framing, pings, reservedBits, reservedOpcodes, fragmentation, validText, invalidText, closing, closeCodes,
            limits, masking,
        ]
        return groups.enumerated().flatMap { group, cases in
            cases.enumerated().map { number, each in
                var named = each
                named.name = "\(group + 1).\(number + 1)"
                return named
            }
        }
    }()
}

/// Frames as bytes, built by hand so that no code of the product proves itself.
enum RawFrame {
    enum LengthForm { case shortest, two, eight }

    static let text: UInt8 = 1
    static let binary: UInt8 = 2
    static let close: UInt8 = 8
    static let ping: UInt8 = 9
    static let pong: UInt8 = 10

    static func make(
        _ opcode: UInt8, _ payload: [UInt8], fin: Bool = true, reserved: UInt8 = 0,
        mask: [UInt8]? = [0xA1, 0x05, 0xFE, 0x73], form: LengthForm = .shortest
    ) -> [UInt8] {
        header(opcode, payload.count, fin: fin, reserved: reserved, mask: mask, form: form)
            + payload.enumerated().map { index, byte in mask.map { byte ^ $0[index % 4] } ?? byte }
    }

    static func header(
        _ opcode: UInt8, _ length: Int, fin: Bool = true, reserved: UInt8 = 0,
        mask: [UInt8]? = [0xA1, 0x05, 0xFE, 0x73], form: LengthForm = .shortest
    ) -> [UInt8] {
        var bytes: [UInt8] = [(fin ? 0x80 : 0) | reserved << 4 | opcode]
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        if form == .eight || (form == .shortest && length > 0xFFFF) {
            bytes.append(maskBit | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: length >> shift))
            }
        } else if form == .two || length > 125 {
            bytes += [maskBit | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        } else {
            bytes.append(maskBit | UInt8(length))
        }
        return bytes + (mask ?? [])
    }

    static func text(_ text: String, fin: Bool = true) -> [UInt8] { make(Self.text, Array(text.utf8), fin: fin) }
    static func more(_ payload: [UInt8], fin: Bool = true) -> [UInt8] { make(0, payload, fin: fin) }
    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        make(close, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }

    static func chopped(_ bytes: [UInt8], every size: Int) -> [[UInt8]] {
        stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
    }

    static func letters(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(0x21 + $0 % 93) } }
    static func anyBytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 13) } }
}
