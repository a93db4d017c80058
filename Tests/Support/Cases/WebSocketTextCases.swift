extension WebSocketCase {
    /// Text that is UTF-8 (Unicode Standard, table 3-7: first and last of every row, and some of the middle).
    private static let validSequences: [[UInt8]] = [
        Array("plain ASCII".utf8), Array("Hello-µ@ßöäüàá-UTF-8!!".utf8), Array("κόσμε".utf8), Array("日本語の文".utf8),
        Array("🌲🌳👩‍👩‍👧‍👦".utf8), Array("e\u{301}a\u{308}".utf8), [0x00], [0x7F], [0xC2, 0x80], [0xDF, 0xBF],
        [0xE0, 0xA0, 0x80], [0xE0, 0xBF, 0xBF], [0xE1, 0x80, 0x80], [0xEC, 0xBF, 0xBF], [0xED, 0x80, 0x80],
        [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBD], [0xEF, 0xBF, 0xBE], [0xEF, 0xBF, 0xBF],
        [0xEF, 0xBB, 0xBF], [0xF0, 0x90, 0x80, 0x80], [0xF0, 0xBF, 0xBF, 0xBF], [0xF1, 0x80, 0x80, 0x80],
        [0xF3, 0xBF, 0xBF, 0xBF], [0xF4, 0x80, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF], [0xF0, 0x9F, 0xBF, 0xBE],
        Array(String(repeating: "ж", count: 40).utf8), Array((String(repeating: "a", count: 31) + "ж").utf8),
        Array((String(repeating: "a", count: 32) + "🌲" + String(repeating: "b", count: 33)).utf8),
    ]

    /// Bytes that no UTF-8 text begins with, and how many of them it takes to see that. A count one above the length
    /// says that only the end of the text shows it.
    static let invalidSequences: [([UInt8], Int)] = [
        ([0x80], 1), ([0xBF], 1), ([0x80, 0xBF, 0x80], 1), ([0xC0, 0xAF], 1), ([0xC1, 0xBF], 1), ([0xF5, 0x80], 1),
        ([0xF8, 0x88, 0x80, 0x80, 0x80], 1), ([0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], 1), ([0xFE], 1), ([0xFF], 1),
        ([0xFE, 0xFE, 0xFF, 0xFF], 1), ([0xC2, 0x00], 2), ([0xC2, 0xC0], 2), ([0xDF, 0x7F], 2),
        ([0xE0, 0x80, 0xAF], 2),
        ([0xE0, 0x9F, 0xBF], 2), ([0xED, 0xA0, 0x80], 2), ([0xED, 0xAF, 0xBF], 2), ([0xED, 0xB0, 0x80], 2),
        ([0xED, 0xBF, 0xBF], 2), ([0xE1, 0x80, 0xC0], 3), ([0xE1, 0x7F, 0x80], 2), ([0xF0, 0x80, 0x80, 0xAF], 2),
        ([0xF0, 0x8F, 0xBF, 0xBF], 2), ([0xF4, 0x90, 0x80, 0x80], 2), ([0xF1, 0x80, 0x7F, 0x80], 3),
        ([0xF1, 0x80, 0x80, 0xC0], 4), ([0xC2], 2), ([0xE1], 2), ([0xE1, 0x80], 3), ([0xF1], 2), ([0xF1, 0x80], 3),
        ([0xF1, 0x80, 0x80], 4), ([0xED, 0x9F], 3), ([0xF4, 0x8F, 0xBF], 4),
        (Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8), 12),
        (Array("κόσμε".utf8) + [0xF4, 0x90, 0x80, 0x80] + Array("edited".utf8), 12),
        (Array(repeating: 0x61, count: 40) + [0xFF], 41),
        (Array(repeating: 0x61, count: 70) + [0xC3, 0x28] + Array(repeating: 0x61, count: 40), 72),
    ]

    /// RFC 6455, 8.1: text in one frame, in two, and cut within characters.
    static var validText: [WebSocketCase] {
        validSequences.flatMap { text -> [WebSocketCase] in
            let whole = RawFrame.make(1, text)
            var cases: [WebSocketCase] = [
                .init("text \(text.prefix(8))", [whole], [.text(text)]),
                .init("text \(text.prefix(8)), byte by byte", RawFrame.chopped(whole, every: 1), [.text(text)]),
            ]
            for cut in 1..<max(2, min(text.count, 6)) where cut < text.count {
                let frames =
                    RawFrame.make(1, Array(text[..<cut]), fin: false) + RawFrame.more(Array(text[cut...]))
                cases.append(.init("text \(text.prefix(8)) in fragments cut at \(cut)", [frames], [.text(text)]))
            }
            return cases
        }
    }

    /// RFC 6455, 8.1: text that is not UTF-8 fails with 1007, as soon as it shows.
    static var invalidText: [WebSocketCase] {
        invalidSequences.flatMap { text, visible -> [WebSocketCase] in
            let whole = RawFrame.make(1, text)
            let header = whole.count - text.count
            let isSeenInside = visible <= text.count
            var cases: [WebSocketCase] = [
                .init("no text: \(text.prefix(8))", [whole], [.close(1007)]),
                .init(
                    "no text: \(text.prefix(8)), byte by byte", RawFrame.chopped(whole, every: 1), [.close(1007)],
                    faultVisibleAfter: isSeenInside ? header + visible : header + text.count),
                .init(
                    "no text behind a good message: \(text.prefix(8))", [RawFrame.text("good") + whole],
                    [.text(Array("good".utf8)), .close(1007)]),
            ]
            guard isSeenInside else {
                // Incomplete at its end: no fault in an open fragment, a fault once the message is over.
                let frames = RawFrame.make(1, text, fin: false) + RawFrame.more([])
                cases.append(
                    .init(
                        "incomplete text, then the end: \(text.prefix(8))", [frames], [.close(1007)],
                        faultVisibleAfter: frames.count))
                return cases
            }
            // The fault is in the first fragment, and the server does not wait for the second.
            let open = RawFrame.make(1, text + RawFrame.letters(20), fin: false)
            let end = RawFrame.more(RawFrame.letters(5))
            cases.append(
                .init(
                    "no text in an open fragment: \(text.prefix(8))", [open, end], [.close(1007)],
                    faultVisibleAfter: open.count - text.count - 20 + visible))
            for cut in 1..<max(2, min(text.count, 5)) where cut < text.count && cut < visible {
                let first = RawFrame.make(1, Array(text[..<cut]), fin: false)
                let second = RawFrame.more(Array(text[cut...]))
                cases.append(
                    .init(
                        "no text in fragments cut at \(cut): \(text.prefix(8))", [first, second], [.close(1007)],
                        faultVisibleAfter: first.count + second.count - (text.count - visible)))
            }
            return cases
        }
    }
}
