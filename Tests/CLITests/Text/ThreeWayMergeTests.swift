import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketCLI

@Suite("Three-way merge")
struct ThreeWayMergeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let base: JSONObject?
        let mine: JSONObject
        let theirs: JSONObject
        let merged: JSONObject
        var overridden = [String]()
        var testDescription: String { name }
    }

    static let cases = [
        Case(
            name: "nobody else wrote", base: ["t": "oak"], mine: ["t": "elm"], theirs: ["t": "oak"],
            merged: ["t": "elm"]),
        Case(
            name: "different keys", base: ["a": 1, "b": 1], mine: ["a": 2, "b": 1], theirs: ["a": 1, "b": 2, "c": 3],
            merged: ["a": 2, "b": 2, "c": 3]),
        Case(
            name: "two places of one text", base: ["t": "one two three"], mine: ["t": "ONE two three"],
            theirs: ["t": "one two THREE"], merged: ["t": "ONE two THREE"]),
        Case(
            name: "two insertions at one place keep both", base: ["t": "ab"], mine: ["t": "aXb"], theirs: ["t": "aYb"],
            merged: ["t": "aYXb"]),
        Case(
            name: "one types inside what the other deletes", base: ["t": "keep drop"], mine: ["t": "keep drXop"],
            theirs: ["t": "keep"], merged: ["t": "keepX"]),
        Case(
            name: "two numbers: mine stays", base: ["n": 1], mine: ["n": 2], theirs: ["n": 3], merged: ["n": 2],
            overridden: ["n"]),
        Case(
            name: "both say the same number", base: ["n": 1], mine: ["n": 2], theirs: ["n": 2], merged: ["n": 2]),
        Case(
            name: "inside a nested object", base: ["o": ["x": 1, "t": "ab"]], mine: ["o": ["x": 2, "t": "ab!"]],
            theirs: ["o": ["x": 3, "t": ">ab"]], merged: ["o": ["x": 2, "t": ">ab!"]], overridden: ["o.x"]),
        Case(
            name: "I remove what they did not touch", base: ["a": 1, "b": 1], mine: ["b": 1], theirs: ["a": 1, "b": 2],
            merged: ["b": 2]),
        Case(
            name: "begun on both sides", base: nil, mine: ["a": 1], theirs: ["b": 2], merged: ["a": 1, "b": 2]),
        Case(
            name: "accents that look alike are different texts", base: ["t": "e\u{301}"], mine: ["t": "\u{e9}"],
            theirs: ["t": "e\u{301}"], merged: ["t": "\u{e9}"]),
    ]

    @Test("both sides are in the result", arguments: cases)
    func table(one: Case) throws {
        let merge = try ThreeWayMerge(base: one.base, mine: one.mine, theirs: one.theirs)
        #expect(merge.object == one.merged)
        #expect(try JSONDiff.apply(merge.diff, to: one.theirs) == one.merged)
        #expect(merge.overridden == one.overridden)
        #expect(merge.isMerged == (one.theirs != (one.base ?? [:])))
    }

    @Test("no insertion of either side into a text is lost", arguments: [UInt64(1), 2, 3])
    func insertions(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<300 {
            let base = text(&random, letters: "abc ", count: Int.random(in: 0...40, using: &random))
            let mine = edited(base, letters: "XYZ", &random)
            let theirs = edited(base, letters: "123", &random)
            let merge = try ThreeWayMerge(
                base: ["t": .string(base)], mine: ["t": .string(mine)], theirs: ["t": .string(theirs)])
            let merged = try #require(merge.object["t"]?.stringValue)
            // Letters that only one side knows are insertions: their sequence must be whole.
            #expect(merged.filter { "XYZ".contains($0) } == mine.filter { "XYZ".contains($0) }, "seed \(seed)")
            #expect(merged.filter { "123".contains($0) } == theirs.filter { "123".contains($0) }, "seed \(seed)")
        }
    }

    private func text(_ random: inout SeededRandom, letters: String, count: Int) -> String {
        String((0..<count).compactMap { _ in letters.randomElement(using: &random) })
    }

    private func edited(_ base: String, letters: String, _ random: inout SeededRandom) -> String {
        var result: [Character] = Array(base)
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let place = Int.random(in: 0...result.count, using: &random)
            if Bool.random(using: &random), place < result.count {
                result.removeSubrange(place..<min(result.count, place + Int.random(in: 1...5, using: &random)))
            } else {
                let count = Int.random(in: 1...4, using: &random)
                result.insert(contentsOf: Array(text(&random, letters: letters, count: count)), at: place)
            }
        }
        return String(result)
    }
}
