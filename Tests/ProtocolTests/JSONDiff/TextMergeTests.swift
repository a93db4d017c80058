import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// What a three-way merge of texts keeps (row Q17): insertions, removals and replacements of both sides.
///
/// A merge compares texts, not what was typed. A character that a side has typed, and that is equal to one of the base,
/// may be taken for that one: it is gone if the other side has removed it. All others stay.
@Suite("Three-way merge of texts")
struct TextMergeTests {
    private static func merged(_ base: String, _ local: String, _ remote: String) throws -> String {
        let merge = try JSONMerge(base: .string(base), local: .string(local), remote: .string(remote))
        #expect(merge.losses.isEmpty)
        return try #require(merge.value.stringValue)
    }

    /// A text with removals, insertions and replacements.
    ///
    /// - Parameter letters: of which insertions are made.
    private static func edited(
        _ text: String, _ letters: [Character], _ random: inout SeededRandom
    ) -> String {
        var characters = Array(text)
        for _ in 0..<1 + random.below(4) {
            let start = random.below(characters.count + 1)
            let end = random.chance(60) ? min(characters.count, start + random.below(5)) : start
            let typed = random.chance(70) ? (0..<random.below(4)).map { _ in letters[random.below(letters.count)] } : []
            characters.replaceSubrange(start..<end, with: typed)
        }
        return String(characters)
    }

    private static func text(_ length: Int, of letters: [Character], _ random: inout SeededRandom) -> String {
        String((0..<length).map { _ in letters[random.below(letters.count)] })
    }

    @Test("Q17: no inserted character that the base does not have is lost, and those of a side keep their order")
    func newCharacters() throws {
        var random = SeededRandom(seed: 41)
        let own: [[Character]] = [Array("ABCDEFGH"), Array("12345678")]
        for round in 0..<3_000 {
            let base = Self.text(random.below(30), of: Array("abcd "), &random)
            let sides = own.map { Self.edited(base, $0, &random) }
            let text = try Self.merged(base, sides[0], sides[1])
            for side in 0..<2 {
                let wanted = sides[side].filter(own[side].contains)
                #expect(text.filter(own[side].contains) == wanted, "\(round): '\(base)' \(sides) gave '\(text)'")
            }
        }
    }

    @Test("Q17: of a text without equal characters, exactly what neither side removed is left, in its order")
    func removals() throws {
        var random = SeededRandom(seed: 42)
        let base = "abcdefghijklmnopqrstuvwxyz"
        let own: [[Character]] = [Array("ABCDEFGH"), Array("12345678")]
        for round in 0..<3_000 {
            let sides = own.map { Self.edited(base, $0, &random) }
            let text = try Self.merged(base, sides[0], sides[1])
            let wanted = base.filter { sides[0].contains($0) && sides[1].contains($0) }
            #expect(text.filter(base.contains) == wanted, "\(round): \(sides) gave '\(text)'")
        }
    }

    @Test("Q17: with equal characters, of each at least as many are left as both sides have together beyond the base")
    func equalCharacters() throws {
        var random = SeededRandom(seed: 43)
        let letters = Array("abc")
        for round in 0..<3_000 {
            let base = Self.text(random.below(20), of: letters, &random)
            let sides = (0..<2).map { _ in Self.edited(base, letters, &random) }
            let text = try Self.merged(base, sides[0], sides[1])
            // Sides that are equal, or one that is the base, are no merge.
            if sides[0] == sides[1] || sides.contains(base) { continue }
            for letter in letters {
                func count(_ text: String) -> Int { text.count { $0 == letter } }
                let least = count(sides[0]) + count(sides[1]) - count(base)
                #expect(count(text) >= least, "\(round), \(letter): '\(base)' \(sides) gave '\(text)'")
            }
        }
    }

    @Test("Q17: a character that was typed again is gone where the other side has removed the equal one of the base")
    func typedAgain() throws {
        // The local side has removed one of the two characters, and typed it again on the other side of the other one.
        let merged = try ["a", "b"].map { try Self.merged("ab", "ba", $0) }
        #expect(merged.allSatisfy { ["a", "b", "ba"].contains($0) })
        #expect(merged.contains { $0.count == 1 }, "no character was lost: the documents can say so")
    }
}
