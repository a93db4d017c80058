import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Growth of a string's JSON by an edit")
struct JSONTextGrowthTests {
    @Test("the growth is the difference of the two sizes, wherever the edit is", arguments: 1...40)
    func growth(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let alphabet = ["a", "b", "\"", "\\", "\n", "\u{1}", "é", "e\u{301}", "日", "🙂", "🙃", "/"]
            .flatMap { (text: String) in Array(text.unicodeScalars) }
        func text(_ count: Int) -> [Unicode.Scalar] {
            (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
        }
        for length in [0, 1, 7, 8, 9, 40, 300] {
            let old = text(length)
            var new = old
            let start = Int.random(in: 0...old.count, using: &random)
            let end = Int.random(in: start...old.count, using: &random)
            new.replaceSubrange(start..<end, with: text(Int.random(in: 0...12, using: &random)))
            let (before, after) = (string(old), string(new))
            let expected = JSONText.quotedSize(after) - JSONText.quotedSize(before)
            #expect(JSONText.growth(from: before, to: after) == expected, "seed \(seed), length \(length)")
            #expect(JSONText.growth(from: after, to: before) == -expected)
            #expect(after.utf16Length == after.utf16.count, "seed \(seed), length \(length)")
            #expect(after.withBytes(UTF16Text.hasPairs) == after.unicodeScalars.contains { $0.value > 0xFFFF })
        }
    }

    @Test(
        "repeated text overlaps with itself and counts once", arguments: ["aaaa", "aaaaaaaaaaaaaaaaaaaaaaaa", "\n\n"])
    func overlap(text: String) {
        #expect(JSONText.growth(from: text, to: text + text) == JSONText.quotedSize(text) - 2)
        #expect(JSONText.growth(from: text, to: "") == 2 - JSONText.quotedSize(text))
        #expect(JSONText.growth(from: text, to: text) == 0)
    }

    private func string(_ scalars: [Unicode.Scalar]) -> String {
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return text
    }
}
