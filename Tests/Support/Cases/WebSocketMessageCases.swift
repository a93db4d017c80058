extension WebSocketCase {
    /// RFC 6455, 5.4.
    static var fragmentation: [WebSocketCase] {
        let ping = RawFrame.make(RawFrame.ping, [7])
        let start: [UInt8] = RawFrame.text("frag", fin: false)
        let whole = Answer.text(Array("fragment".utf8))
        let rest: [UInt8] = RawFrame.more(Array("ment".utf8))
        let octets = RawFrame.anyBytes(3_000)
        let pieces = RawFrame.chopped(octets, every: 100)
        let thirty = pieces.enumerated().flatMap { index, piece in
            RawFrame.make(index == 0 ? 2 : 0, piece, fin: index == pieces.count - 1)
        }
        let single: [UInt8] = (0..<500).flatMap { RawFrame.make($0 == 0 ? 1 : 0, [0x78], fin: $0 == 499) }
        var cases: [WebSocketCase] = [
            .init("two fragments", [start + rest], [whole]),
            .init("two fragments, byte by byte", RawFrame.chopped(start + rest, every: 1), [whole]),
            .init("a ping between two fragments is answered first", [start + ping + rest], [.pong([7]), whole]),
            .init("the same, each frame by itself", [start, ping, rest], [.pong([7]), whole]),
            .init("the same, byte by byte", RawFrame.chopped(start + ping + rest, every: 1), [.pong([7]), whole]),
            .init("a pong between two fragments", [start + RawFrame.make(10, [7]) + rest], [whole]),
            .init(
                "ten pings between two fragments", [start + (0..<10).flatMap { _ in ping } + rest],
                (0..<10).map { _ in .pong([7]) } + [whole]),
            .init("thirty binary fragments", [thirty], [.binary(octets)]),
            .init("thirty binary fragments in pieces of 13", RawFrame.chopped(thirty, every: 13), [.binary(octets)]),
            .init("500 fragments of one byte", [single], [.text(.init(repeating: 0x78, count: 500))]),
            .init("two empty fragments", [RawFrame.text("", fin: false) + RawFrame.more([])], [.text([])]),
            .init(
                "text only in the middle fragment",
                [RawFrame.text("", fin: false) + RawFrame.more([0x61], fin: false) + RawFrame.more([])], [.text([0x61])]
            ),
            .init(
                "a hundred empty fragments",
                [start + (0..<100).flatMap { _ in RawFrame.more([], fin: false) } + rest], [whole]),
            .init("two fragmented messages", [start + rest + start + rest], [whole, whole]),
            .init(
                "a whole message behind a fragmented one", [start + rest + RawFrame.text("a")], [whole, .text([0x61])]),
            .init("close between two fragments", [start + RawFrame.close(1000) + rest], [.close(1000)]),
        ]
        for (opcode, name): (UInt8, String) in [(8, "close"), (9, "ping"), (10, "pong")] {
            cases.append(
                .init(
                    "\(name) in two fragments",
                    [RawFrame.make(opcode, [], fin: false) + RawFrame.more([])], [.close(1002)], faultVisibleAfter: 2))
            cases.append(
                .init(
                    "\(name) that is not final, inside a message",
                    [start + RawFrame.make(opcode, [], fin: false) + rest], [.close(1002)]))
        }
        for fin in [true, false] {
            let lost: [UInt8] = RawFrame.more([0x61], fin: fin)
            let words: String = fin ? "final" : "open"
            cases.append(.init("\(words) continuation of nothing", [lost], [.close(1002)]))
            cases.append(
                .init("\(words) continuation of nothing, empty", [RawFrame.more([], fin: fin)], [.close(1002)]))
            cases.append(
                .init(
                    "\(words) continuation behind a whole message", [RawFrame.text("a") + lost],
                    [.text([0x61]), .close(1002)]))
            cases.append(
                .init(
                    "\(words) continuation behind a fragmented message", [start + rest + lost], [whole, .close(1002)]))
            for opcode: UInt8 in [1, 2] {
                cases.append(
                    .init(
                        "\(words) frame of opcode \(opcode) inside a message",
                        [start + RawFrame.make(opcode, [0x61], fin: fin) + rest], [.close(1002)]))
            }
        }
        return cases
    }

    /// RFC 6455, 7.
    static var closing: [WebSocketCase] {
        let empty = RawFrame.make(RawFrame.close, [])
        let message = RawFrame.text("late")
        var cases: [WebSocketCase] = [
            .init("close without payload", [empty], [.close(nil)]),
            .init("close without payload, byte by byte", RawFrame.chopped(empty, every: 1), [.close(nil)]),
            .init("close with one byte", [RawFrame.make(RawFrame.close, [3])], [.close(1002)]),
            .init("close with a code", [RawFrame.close(1000)], [.close(1000)]),
            .init("close with a reason", [RawFrame.close(1000, Array("Hello".utf8))], [.close(1000)]),
            .init("close with a reason of 123 bytes", [RawFrame.close(1000, RawFrame.letters(123))], [.close(1000)]),
            .init(
                "close with a reason of 123 bytes, byte by byte",
                RawFrame.chopped(RawFrame.close(1000, RawFrame.letters(123)), every: 1), [.close(1000)]),
            .init(
                "close with a reason of 124 bytes", [RawFrame.close(1000, RawFrame.letters(124))], [.close(1002)],
                faultVisibleAfter: 2),
            .init("close with a reason beyond ASCII", [RawFrame.close(1000, Array("κόσμε🌲".utf8))], [.close(1000)]),
            .init(
                "two closes: the second is not answered", [RawFrame.close(1000) + RawFrame.close(1001)], [.close(1000)]),
            .init("a message behind a close is not answered", [RawFrame.close(1000) + message], [.close(1000)]),
            .init(
                "a ping behind a close is not answered", [RawFrame.close(1000) + RawFrame.make(9, [])], [.close(1000)]),
            .init(
                "rubbish behind a close is not answered", [RawFrame.close(1000) + [0xFF, 0xFF, 0xFF]], [.close(1000)]),
            .init(
                "a message, then close", [message + RawFrame.close(1001)], [.text(Array("late".utf8)), .close(1001)]),
            .init("close in an open message", [RawFrame.text("a", fin: false) + empty], [.close(nil)]),
        ]
        for (text, _) in invalidSequences {
            cases.append(
                .init("close with a reason that is no text: \(text)", [RawFrame.close(1000, text)], [.close(1007)]))
        }
        return cases
    }

    /// RFC 6455, 7.4, and the registry for 1012–1014.
    static var closeCodes: [WebSocketCase] {
        let good: [UInt16] = [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3001, 3999, 4000, 4001, 4999,
        ]
        let bad: [UInt16] = [
            0, 1, 500, 999, 1004, 1005, 1006, 1015, 1016, 1017, 1100, 1999, 2000, 2001, 2999, 5000, 5001, 10_000,
            32_768,
            65_535,
        ]
        let reason: [UInt8] = Array("because".utf8)
        return good.flatMap { code -> [WebSocketCase] in
            [
                .init("close code \(code)", [RawFrame.close(code)], [.close(code)]),
                .init("close code \(code) with a reason", [RawFrame.close(code, reason)], [.close(code)]),
            ]
        }
            + bad.flatMap { code -> [WebSocketCase] in
                [
                    .init("close code \(code)", [RawFrame.close(code)], [.close(1002)]),
                    .init("close code \(code) with a reason", [RawFrame.close(code, reason)], [.close(1002)]),
                ]
            }
    }

    /// The size of messages, and lengths that are not written as they must be (RFC 6455, 5.2).
    static var limits: [WebSocketCase] {
        let max = messageBytesMax
        let most = RawFrame.letters(max)
        let half: [UInt8] = Array(most[..<(max / 2)])
        var cases: [WebSocketCase] = [
            .init("a message of exactly the limit", [RawFrame.make(1, most)], [.text(most)]),
            .init(
                "a message of exactly the limit in two fragments",
                [RawFrame.make(1, half, fin: false) + RawFrame.more(half)], [.text(half + half)]),
            .init(
                "one byte over the limit is refused by its header", [RawFrame.header(1, max + 1)], [.close(1009)],
                faultVisibleAfter: 14),
            .init("two gigabytes are refused by their header", [RawFrame.header(2, 1 << 31)], [.close(1009)]),
            .init("2^62 bytes are refused by their header", [RawFrame.header(1, 1 << 62)], [.close(1009)]),
            .init("2^63 - 1 bytes are refused by their header", [RawFrame.header(1, .max)], [.close(1009)]),
            .init(
                "a length with its highest bit set", [[0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4]],
                [.close(1002)], faultVisibleAfter: 10),
            .init(
                "the last byte over the limit in a fragment",
                [RawFrame.make(2, half, fin: false) + RawFrame.make(0, half, fin: false) + RawFrame.header(0, 1)],
                [.close(1009)]),
            .init(
                "fragments that would be over the limit together",
                [RawFrame.make(1, half, fin: false) + RawFrame.header(0, max / 2 + 1)], [.close(1009)]),
            .init(
                "an empty fragment behind a full message is still in the limit",
                [RawFrame.make(1, most, fin: false) + RawFrame.more([])], [.text(most)]),
        ]
        for length: Int in [0, 1, 125] {
            cases.append(
                .init(
                    "\(length) written in two bytes", [RawFrame.make(1, RawFrame.letters(length), form: .two)],
                    [.close(1002)], faultVisibleAfter: 4))
        }
        for length in [0, 1, 125, 126, 65_535] {
            cases.append(
                .init(
                    "\(length) written in eight bytes", [RawFrame.make(1, RawFrame.letters(length), form: .eight)],
                    [.close(1002)], faultVisibleAfter: 10))
        }
        return cases
    }
}
