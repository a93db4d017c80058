import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Row Q17 of the specification: the laws of a three-way merge.
@Suite("Three-way merge of JSON")
struct JSONMergeTests {
    private static func json(_ text: String) throws -> JSONValue { try JSONValue(parsing: text) }

    private static func merge(_ base: String, _ local: String, _ remote: String) throws -> JSONMerge {
        try JSONMerge(base: json(base), local: json(local), remote: json(remote))
    }

    /// Base, local, remote, result, and paths of what gave way.
    private static let table: [(String, String, String, String, [[String]])] = [
        // members
        (#"{"a":1}"#, #"{"a":1,"b":2}"#, #"{"a":1,"c":3}"#, #"{"a":1,"c":3,"b":2}"#, []),
        (#"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#, #"{"a":1,"b":2}"#, #"{"a":2,"b":2}"#, []),
        (#"{"a":1,"b":1}"#, #"{"b":1}"#, #"{"a":1,"b":2}"#, #"{"b":2}"#, []),
        (#"{"a":{"x":1,"y":1}}"#, #"{"a":{"x":2,"y":1}}"#, #"{"a":{"x":1}}"#, #"{"a":{"x":2}}"#, []),
        ("{}", #"{"a":{"x":1}}"#, #"{"a":{"y":2}}"#, #"{"a":{"x":1,"y":2}}"#, []),
        // only one can stay: the local one does
        (#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#, #"{"a":2}"#, [["a"]]),
        (#"{"a":1}"#, "{}", #"{"a":3}"#, "{}", [["a"]]),
        (#"{"a":1}"#, #"{"a":2}"#, "{}", #"{"a":2}"#, [["a"]]),
        (#"{"a":{"x":1}}"#, #"{"a":{"x":[]}}"#, #"{"a":{"x":{}}}"#, #"{"a":{"x":[]}}"#, [["a", "x"]]),
        ("1", "2", "3", "2", [[]]),
        // the same on both sides is no conflict
        (#"{"a":1}"#, #"{"a":2,"b":1}"#, #"{"a":2.0}"#, #"{"a":2,"b":1}"#, []),
        (#"{"t":"a"}"#, #"{"t":"ab","x":1}"#, #"{"t":"ab"}"#, #"{"t":"ab","x":1}"#, []),
        // texts
        (#""buy milk""#, #""buy fresh milk""#, #""buy milk today""#, #""buy fresh milk today""#, []),
        (#"{"t":"one two"}"#, #"{"t":"one 2"}"#, #"{"t":"1 two"}"#, #"{"t":"1 2"}"#, []),
        // lists
        ("[1,2,3]", "[1,2,3,4]", "[0,1,2,3]", "[0,1,2,3,4]", []),
        ("[1,2,3]", "[1,3]", "[1,2,3,4]", "[1,3,4]", []),
        ("[1]", "[1,5]", "[1,6]", "[1,6,5]", []),
        ("[1]", "[1,5]", "[1,5,6]", "[1,6,5]", []),
        ("[1,2,3]", "[3,1,2]", "[2,3,1]", "[3,2,1]", []),
        ("[1,2,3]", "[2,1,3]", "[1,3,2]", "[1,3,2]", []),
        (#"{}"#, #"{"l":[1]}"#, #"{"l":[2]}"#, #"{"l":[2,1]}"#, []),
        (
            #"[{"id":1,"n":"a","d":false},{"id":2}]"#, #"[{"id":1,"n":"a","d":true},{"id":2}]"#,
            #"[{"id":1,"n":"ab","d":false},{"id":2},{"id":3}]"#, #"[{"id":1,"n":"ab","d":true},{"id":2},{"id":3}]"#, []
        ),
        (
            #"[{"id":1,"n":1},{"id":2}]"#, #"[{"id":2}]"#, #"[{"id":1,"n":2},{"id":2}]"#, #"[{"id":2}]"#, [["0"]]
        ),
        (
            #"[{"id":1,"n":1}]"#, #"[{"id":1,"n":2}]"#, #"[{"id":1,"n":3}]"#, #"[{"id":1,"n":2}]"#, [["0", "n"]]
        ),
    ]

    @Test("Q17: what two sides made of one value is one value, and what gave way is named", arguments: table)
    func cases(_ base: String, _ local: String, _ remote: String, _ wanted: String, _ lost: [[String]]) throws {
        let merge = try Self.merge(base, local, remote)
        #expect(try merge.value == Self.json(wanted), "\(merge.value)")
        #expect(merge.losses.map(\.path) == lost, "\(merge.losses)")
    }

    @Test("Q17: a loss has the value that gave way and the one that stays; a removal has none")
    func losses() throws {
        let merge = try Self.merge(#"{"a":1,"b":1}"#, #"{"a":2}"#, #"{"a":3,"b":4}"#)
        #expect(
            merge.losses == [
                .init(path: ["a"], losing: 3, winning: 2), .init(path: ["b"], losing: 4, winning: nil),
            ])
    }

    /// A value and two edits of it.
    private static func triple(_ random: inout SeededRandom) throws -> (JSONObject, JSONObject, JSONObject) {
        let base = random.object(depth: 3)
        return (
            base, try JSONDiff.apply(random.diff(of: base), to: base),
            try JSONDiff.apply(random.diff(of: base), to: base)
        )
    }

    @Test("Q17: of 3,000 random triples, equal sides give that side, and an unchanged side yields the other one")
    func unchangedSides() throws {
        var random = SeededRandom(seed: 17)
        for _ in 0..<3_000 {
            let (base, local, remote) = try Self.triple(&random)
            let (b, l, r) = (JSONValue.object(base), JSONValue.object(local), JSONValue.object(remote))
            for (merge, wanted) in [
                (try JSONMerge(base: b, local: l, remote: l), l), (try JSONMerge(base: b, local: b, remote: r), r),
                (try JSONMerge(base: b, local: l, remote: b), l),
            ] {
                #expect(merge.value == wanted && merge.losses.isEmpty)
            }
            // Merged once, the other side has nothing more to bring.
            let once = try JSONMerge(base: b, local: l, remote: r).value
            #expect(try JSONMerge(base: r, local: once, remote: r).value == once)
        }
    }

    @Test("Q17: keys that are untouched here come from the other side, touched ones stay, in 3,000 random triples")
    func members() throws {
        var random = SeededRandom(seed: 18)
        for _ in 0..<3_000 {
            let (base, local, remote) = try Self.triple(&random)
            let merge = try JSONMerge(base: .object(base), local: .object(local), remote: .object(remote))
            let merged = try #require(merge.value.objectValue)
            for key in Set(base.keys + local.keys + remote.keys) {
                let (old, mine, theirs) = (base[key], local[key], remote[key])
                if mine == old { #expect(merged[key] == theirs) }
                if theirs == old || theirs == mine { #expect(merged[key] == mine) }
                let isWhole = [old, mine, theirs].contains {
                    $0?.stringValue == nil && $0?.arrayValue == nil
                        && $0?.objectValue == nil
                }
                if isWhole, mine != old, mine?.objectValue == nil, mine?.arrayValue == nil {
                    #expect(merged[key] == mine, "the local change stays")
                }
            }
            for key in merged.keys { #expect(base.contains(key) || local.contains(key) || remote.contains(key)) }
        }
    }

    @Test("Q17: where nothing gives way, nothing that one side inserted into texts and lists is lost, in both orders")
    func insertions() throws {
        var random = SeededRandom(seed: 19)
        for _ in 0..<1_000 {
            let words = (0..<8).map { "w\($0)" }
            var sides = [[String]](repeating: words, count: 2)
            for side in 0..<2 {
                for number in 0..<random.below(4) {
                    sides[side].insert("s\(side)n\(number)", at: random.below(sides[side].count + 1))
                }
            }
            // Characters of a removed word may be those of an inserted one: `TextMergeTests` has texts with removals.
            let texts = [words.joined(separator: " ")] + sides.map { $0.joined(separator: " ") }
            for side in 0..<2 where random.chance(50) {
                let gone = "w\(random.below(8))"
                sides[side].removeAll { $0 == gone }
            }
            func value(_ list: [String]) -> JSONValue {
                let text = list == words ? texts[0] : list == sides[0] ? texts[1] : texts[2]
                return ["list": .array(list.map { .string($0) }), "text": .string(text)]
            }
            for (mine, theirs) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                let merge = try JSONMerge(base: value(words), local: value(mine), remote: value(theirs))
                #expect(merge.losses.isEmpty)
                let list = (merge.value["list"]?.arrayValue ?? []).compactMap(\.stringValue)
                let wanted = Set(mine).union(theirs).subtracting(words).union(
                    words.filter { mine.contains($0) && theirs.contains($0) })
                #expect(Set(list) == wanted && list.count == wanted.count, "\(mine) \(theirs) \(list)")
                let text = merge.value["text"]?.stringValue ?? ""
                for word in Set(mine).union(theirs) where word.hasPrefix("s") { #expect(text.contains(word)) }
            }
        }
    }

    @Test("Q17: a list with more different elements than can be compared gives way as a whole, and is named")
    func longLists() throws {
        let base = JSONValue.array((0..<60_000).map { .number(JSONNumber(Int64($0))) })
        guard case .array(let elements) = base else { return }
        let (local, remote) = (JSONValue.array(elements + [-1]), JSONValue.array([-2] + elements))
        let merge = try JSONMerge(base: base, local: local, remote: remote)
        #expect(merge.value == local && merge.losses.map(\.path) == [[]])
    }
}
