extension WebSocketCase {
    private static let boundaries = [
        0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 124, 125, 126, 127, 128, 129, 255, 256, 257, 1_000, 4_096,
    ]
    private static let largeBoundaries = [65_534, 65_535, 65_536, 65_537, 131_072, 1 << 20]

    /// RFC 6455, 5.2: every form of the length, in one piece and in many.
    static var framing: [WebSocketCase] {
        var cases = [WebSocketCase]()
        for length in boundaries {
            let (letters, octets) = (RawFrame.letters(length), RawFrame.anyBytes(length))
            let text = RawFrame.make(RawFrame.text, letters)
            let binary = RawFrame.make(RawFrame.binary, octets)
            cases.append(.init("text of \(length) bytes", [text], [.text(letters)]))
            cases.append(.init("binary of \(length) bytes", [binary], [.binary(octets)]))
            cases.append(
                .init("text of \(length) bytes, byte by byte", RawFrame.chopped(text, every: 1), [.text(letters)]))
        }
        for length in largeBoundaries {
            let (letters, octets) = (RawFrame.letters(length), RawFrame.anyBytes(length))
            let text = RawFrame.make(RawFrame.text, letters)
            let binary = RawFrame.make(RawFrame.binary, octets)
            cases.append(.init("text of \(length) bytes", [text], [.text(letters)]))
            cases.append(.init("binary of \(length) bytes", [binary], [.binary(octets)]))
            for size in [997, 1_361, 40_000] {
                cases.append(
                    .init(
                        "text of \(length) bytes in pieces of \(size)", RawFrame.chopped(text, every: size),
                        [.text(letters)]))
            }
        }
        for cut in 1...13 {
            let bytes = RawFrame.make(RawFrame.binary, RawFrame.anyBytes(70_000))
            cases.append(
                .init(
                    "a long header cut behind its byte \(cut)", [Array(bytes[..<cut]), Array(bytes[cut...])],
                    [.binary(RawFrame.anyBytes(70_000))]))
        }
        let many = (0..<50).flatMap { RawFrame.text("message \($0)") }
        let answers: [Answer] = (0..<50).map { .text(Array("message \($0)".utf8)) }
        cases.append(.init("fifty messages in one piece", [many], answers))
        cases.append(.init("fifty messages in pieces of 7", RawFrame.chopped(many, every: 7), answers))
        cases.append(.init("fifty messages in pieces of 1", RawFrame.chopped(many, every: 1), answers))
        return cases
    }

    /// RFC 6455, 5.5.2 and 5.5.3.
    static var pings: [WebSocketCase] {
        let full = RawFrame.anyBytes(125)
        let ten = (0..<10).flatMap { RawFrame.make(RawFrame.ping, [$0]) }
        let tenPongs: [Answer] = (0..<10).map { .pong([$0]) }
        return [
            .init("ping without payload", [RawFrame.make(RawFrame.ping, [])], [.pong([])]),
            .init("ping with text", [RawFrame.make(RawFrame.ping, Array("Hello".utf8))], [.pong(Array("Hello".utf8))]),
            .init(
                "ping with bytes that are no text", [RawFrame.make(RawFrame.ping, [0, 0xFF, 0xFE, 0x80])],
                [.pong([0, 0xFF, 0xFE, 0x80])]),
            .init(
                "ping of 124 bytes", [RawFrame.make(RawFrame.ping, Array(full[..<124]))], [.pong(Array(full[..<124]))]),
            .init("ping of 125 bytes", [RawFrame.make(RawFrame.ping, full)], [.pong(full)]),
            .init(
                "ping of 125 bytes, byte by byte", RawFrame.chopped(RawFrame.make(RawFrame.ping, full), every: 1),
                [.pong(full)]),
            .init(
                "ping of 126 bytes is refused by its header", [RawFrame.make(RawFrame.ping, full + [1])],
                [.close(1002)], faultVisibleAfter: 2),
            .init(
                "ping with an eight-byte length is refused",
                [RawFrame.make(RawFrame.ping, RawFrame.anyBytes(70_000))], [.close(1002)], faultVisibleAfter: 2),
            .init("ten pings in one piece", [ten], tenPongs),
            .init("ten pings byte by byte", RawFrame.chopped(ten, every: 1), tenPongs),
            .init("a pong nobody asked for is ignored", [RawFrame.make(RawFrame.pong, [])], []),
            .init("a pong with payload is ignored", [RawFrame.make(RawFrame.pong, full)], []),
            .init("pong of 126 bytes is refused", [RawFrame.make(RawFrame.pong, full + [1])], [.close(1002)]),
            .init(
                "pong, then ping", [RawFrame.make(RawFrame.pong, [1]) + RawFrame.make(RawFrame.ping, [2])], [.pong([2])]
            ),
            .init(
                "a message between pings",
                [RawFrame.make(RawFrame.ping, [1]) + RawFrame.text("a") + RawFrame.make(RawFrame.ping, [2])],
                [.pong([1]), .text([0x61]), .pong([2])]),
        ]
    }

    private static let opcodeNames: [(UInt8, String)] = [
        (0, "continuation"), (1, "text"), (2, "binary"), (8, "close"), (9, "ping"), (10, "pong"),
    ]

    /// RFC 6455, 5.2: no extension is agreed, so RSV1–3 are 0.
    static var reservedBits: [WebSocketCase] {
        var cases: [WebSocketCase] = []
        for bits: UInt8 in 1...7 {
            for (opcode, name) in opcodeNames {
                cases.append(
                    .init(
                        "reserved bits \(bits) on \(name)", [RawFrame.make(opcode, [0x61], reserved: bits)],
                        [.close(1002)], faultVisibleAfter: 2))
            }
            cases.append(
                .init(
                    "reserved bits \(bits) behind a good message",
                    [RawFrame.text("good") + RawFrame.make(1, [0x61], reserved: bits) + RawFrame.make(9, [])],
                    [.text(Array("good".utf8)), .close(1002)]))
            cases.append(
                .init(
                    "reserved bits \(bits) inside a message",
                    [RawFrame.text("a", fin: false) + RawFrame.make(0, [0x62], reserved: bits)], [.close(1002)]))
        }
        return cases
    }

    /// RFC 6455, 5.2: opcodes 3–7 and 11–15 mean nothing yet.
    static var reservedOpcodes: [WebSocketCase] {
        let opcodes: [UInt8] = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]
        return opcodes.flatMap { opcode -> [WebSocketCase] in
            [
                .init("opcode \(opcode), empty", [RawFrame.make(opcode, [])], [.close(1002)], faultVisibleAfter: 2),
                .init("opcode \(opcode) with payload", [RawFrame.make(opcode, RawFrame.letters(80))], [.close(1002)]),
                .init(
                    "opcode \(opcode) behind a good message, a ping behind it",
                    [RawFrame.text("good") + RawFrame.make(opcode, []) + RawFrame.make(9, [1])],
                    [.text(Array("good".utf8)), .close(1002)]),
                .init(
                    "opcode \(opcode) inside a message",
                    [RawFrame.text("a", fin: false) + RawFrame.make(opcode, [])], [.close(1002)]),
            ]
        }
    }

    /// RFC 6455, 5.3: every frame of a client is masked, with any key.
    static var masking: [WebSocketCase] {
        var cases: [WebSocketCase] = opcodeNames.map { opcode, name in
            .init(
                "unmasked \(name)", [RawFrame.make(opcode, [], mask: nil)], [.close(1002)], faultVisibleAfter: 2)
        }
        cases.append(
            .init(
                "unmasked text behind a masked one", [RawFrame.text("a") + RawFrame.make(1, [0x62], mask: nil)],
                [.text([0x61]), .close(1002)]))
        let masks: [[UInt8]] = [
            [0, 0, 0, 0], [255, 255, 255, 255], [0, 0, 0, 1], [1, 0, 0, 0], [0x80, 0x40, 0x20, 0x10],
        ]
        for mask in masks {
            for length in [1, 5, 33, 130] {
                let payload = RawFrame.letters(length)
                let bytes: [UInt8] = RawFrame.make(1, payload, mask: mask)
                cases.append(.init("mask \(mask) over \(length) bytes", [bytes], [.text(payload)]))
                cases.append(
                    .init(
                        "mask \(mask) over \(length) bytes in threes", RawFrame.chopped(bytes, every: 3),
                        [.text(payload)]))
            }
        }
        return cases
    }
}
