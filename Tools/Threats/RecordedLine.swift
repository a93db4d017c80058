/// The contents of a recorded connection: heads of HTTP, and the payloads of WebSocket frames without their masks. It
/// has its own parser, so that no code of the product proves itself.
public struct RecordedLine: Sendable {
    /// All heads of one direction in small letters, with the bodies between them, for checks of fields.
    public let text: String
    /// Whether it became a WebSocket.
    public let isWebSocket: Bool
    /// Payloads of all frames, one behind another, without masks.
    public private(set) var payload: [UInt8] = []
    public private(set) var frames: Int = 0
    /// Frames with a reserved bit set, as compressed messages have it.
    public private(set) var reserved: Int = 0
    /// Bytes at the end that are not a whole frame.
    public private(set) var rest: Int = 0

    /// - Parameters:
    ///   - bytes: one direction of a connection.
    ///   - isUpgraded: whether the server's answer was 101.
    init(_ bytes: [UInt8], isUpgraded: Bool) {
        isWebSocket = isUpgraded
        guard isUpgraded, let end = Self.headEnd(bytes) else {
            text = String(decoding: bytes, as: UTF8.self).lowercased()
            return
        }
        text = String(decoding: bytes[..<end], as: UTF8.self).lowercased()
        read(bytes, from: end)
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (4...bytes.count).first { bytes[($0 - 4)..<$0].elementsEqual([13, 10, 13, 10]) }
    }

    /// RFC 6455, 5.2.
    private mutating func read(_ bytes: [UInt8], from start: Int) {
        var place = start
        while place + 2 <= bytes.count {
            let (first, second) = (bytes[place], bytes[place + 1])
            let extra = second & 0x7F == 126 ? 2 : second & 0x7F == 127 ? 8 : 0
            let isMasked = second & 0x80 != 0
            let body = place + 2 + extra + (isMasked ? 4 : 0)
            guard body <= bytes.count else { break }
            let length =
                extra == 0
                ? Int(second & 0x7F) : bytes[(place + 2)..<(place + 2 + extra)].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytes.count - body else { break }
            for number in 0..<length {
                payload.append(bytes[body + number] ^ (isMasked ? bytes[body - 4 + number & 3] : 0))
            }
            frames += 1
            if first & 0x70 != 0 { reserved += 1 }
            place = body + length
        }
        rest = bytes.count - place
    }
}

extension RecordingProxy.Line {
    /// The parsed bytes of the client and of the server.
    public var read: (up: RecordedLine, down: RecordedLine) {
        let isUpgraded = down.starts(with: Array("HTTP/1.1 101".utf8))
        return (RecordedLine(up, isUpgraded: isUpgraded), RecordedLine(down, isUpgraded: isUpgraded))
    }
}
