import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree

@testable import ThicketTreesystem

@Suite("Rules of merges")
struct MergeRuleTests {
    private func content(_ text: String, metadata: String = "", thumbnail: String = "") -> NodeContent {
        NodeContent(metadata: Array(metadata.utf8), thumbnail: Array(thumbnail.utf8), data: Array(text.utf8))
    }

    private func merged(
        _ base: NodeContent, _ local: NodeContent, _ remote: NodeContent, _ rule: MergeRule = .json
    ) throws -> MergeRule.Outcome {
        let merge = try #require(rule.merge)
        return try merge(base, local, remote)
    }

    @Test("Q17: a merged JSON file is laid out as the local one was")
    func layout() throws {
        for (base, local, remote, wanted) in [
            (
                "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}\n", #"{"a":1,"c":{}}"#,
                "{\n  \"a\": 1,\n  \"c\": {},\n  \"b\": [\n    2\n  ]\n}\n"
            ),
            ("[\n\t1\n]", "[\n\t1,\n\t2\n]", "[0,1]", "[\n\t0,\n\t1,\n\t2\n]"),
            (#"{"a":1}"#, #"{"a":1,"b":1.50}"#, "{\n  \"a\": 2\n}\n", #"{"a":2,"b":1.50}"#),
            ("{}\n", "{\"a\":1}\n", "{\"b\":1}\n", "{\"b\":1,\"a\":1}\n"),
        ] {
            let outcome = try merged(content(base), content(local), content(remote))
            #expect(String(decoding: outcome.content.data, as: UTF8.self) == wanted)
            #expect(!outcome.lacksChanges)
        }
    }

    @Test("Q17: a side that says the same in another layout yields the other one, byte by byte")
    func bytes() throws {
        let (base, spaced, other) = (content(#"{"a":1}"#), content(#"{ "a": 1.0 }"#), content(#"{ "a" : 2 }"#))
        #expect(try merged(base, spaced, other).content == other)
        #expect(try merged(base, other, spaced).content == other)
        #expect(try merged(base, base, other).content == other && merged(base, other, base).content == other)
    }

    @Test(
        "Q17: data that is not JSON is not merged, on whichever side it is",
        arguments: [
            ("x", "{\"a\":1}", "{\"b\":1}"), ("{}", "x", "{\"b\":1}"), ("{}", "{\"a\":1}", ""), ("{}", "{", "["),
        ])
    func otherData(_ base: String, _ local: String, _ remote: String) {
        #expect(throws: (any Error).self) { try merged(content(base), content(local), content(remote)) }
    }

    @Test("Q17: sections that one side changed come from it; two thumbnails are not merged, metadata in JSON is")
    func sections() throws {
        let base = content("{}", metadata: "{}", thumbnail: "old")
        let one = try merged(
            base, content(#"{"a":1}"#, metadata: "{}", thumbnail: "new"),
            content("{}", metadata: #"{"b":1}"#, thumbnail: "old"))
        #expect(one.content == content(#"{"a":1}"#, metadata: #"{"b":1}"#, thumbnail: "new"))
        #expect(throws: (any Error).self) {
            try merged(
                base, content("{}", metadata: "{}", thumbnail: "1"), content("{}", metadata: "{}", thumbnail: "2"))
        }
        let both = try merged(
            content("{}", metadata: "{}"), content("{}", metadata: #"{"a":1}"#), content("{}", metadata: #"{"b":1}"#))
        #expect(both.content == content("{}", metadata: #"{"b":1,"a":1}"#))
    }

    @Test(
        "Q17: json says when a change of the other side is lacking, jsonKeepingLocal never does, and none merges nothing"
    )
    func lacking() throws {
        let (base, local, remote) = (content(#"{"a":1}"#), content(#"{"a":2}"#), content(#"{"a":3,"b":1}"#))
        let kept = content(#"{"a":2,"b":1}"#)
        #expect(try merged(base, local, remote) == .init(content: kept, lacksChanges: true))
        #expect(try merged(base, local, remote, .jsonKeepingLocal) == .init(content: kept))
        #expect(MergeRule.none.merge == nil)
    }

    @Test("Q17: several waiting contents are merged one after the other, each with what the one before became")
    func sequence() {
        let contents = MergeContents(
            base: content(#"{"a":1}"#), own: [content(#"{"a":1,"b":1}"#), content(#"{"a":1,"b":1,"c":1}"#)],
            theirs: content(#"{"a":5}"#), rule: .json)
        #expect(
            contents.merged?.contents == [content(#"{"a":5,"b":1}"#), content(#"{"a":5,"b":1,"c":1}"#)])
        #expect(contents.merged?.lacksChanges == false)
    }
}

/// A record as an app has one, made of the parts of `ThreeWay`.
private struct Recipe: Mergeable, Equatable {
    var title = ""
    var servings = 0
    var tags = [String]()
    var amounts = [String: Int]()

    init(_ title: String, _ servings: Int, _ tags: [String], _ amounts: [String: Int]) {
        (self.title, self.servings, self.tags, self.amounts) = (title, servings, tags, amounts)
    }

    init(merging content: NodeContent) throws {
        let json = try JSONValue(parsing: content.data)
        title = try #require(json["title"]?.stringValue)
        servings = Int(try #require(json["servings"]?.intValue))
        tags = (json["tags"]?.arrayValue ?? []).compactMap(\.stringValue)
        for (key, value) in json["amounts"]?.objectValue?.pairs ?? [] { amounts[key] = Int(value.intValue ?? 0) }
    }

    var mergedContent: NodeContent {
        let json: JSONValue = [
            "title": .string(title), "servings": .number(JSONNumber(Int64(servings))),
            "tags": .array(tags.map { .string($0) }),
            "amounts": .object(
                JSONObject(amounts.sorted { $0.key < $1.key }.map { ($0.key, .number(JSONNumber(Int64($0.value)))) })),
        ]
        return NodeContent(data: json.serialized())
    }

    static func merged(base: Recipe, local: Recipe, remote: Recipe) throws -> Recipe {
        Recipe(
            try ThreeWay.text(base.title, local.title, remote.title),
            ThreeWay.value(base.servings, local.servings, remote.servings),
            ThreeWay.set(base.tags, local.tags, remote.tags),
            ThreeWay.dictionary(base.amounts, local.amounts, remote.amounts))
    }
}

@Suite("Merges by an app's rule")
struct MergeableTests {
    private func random(_ random: inout SeededRandom, from base: Recipe?) -> Recipe {
        var recipe = base ?? Recipe("soup of the day", 1, ["a", "b", "c"], ["salt": 1, "water": 2])
        for _ in 0..<random.below(4) {
            switch random.below(6) {
            case 0: recipe.servings = random.below(5)
            case 1: recipe.title += " \(random.below(9))"
            case 2: recipe.tags.insert("t\(random.below(5))", at: random.below(recipe.tags.count + 1))
            case 3: if !recipe.tags.isEmpty { recipe.tags.remove(at: random.below(recipe.tags.count)) }
            case 4: recipe.amounts["k\(random.below(4))"] = random.below(9)
            default: recipe.amounts["salt"] = nil
            }
        }
        var seen = Set<String>()
        recipe.tags = recipe.tags.filter { seen.insert($0).inserted }
        return recipe
    }

    @Test("Q17: the laws hold for a record, a dictionary and an ordered set, in 1,000 random triples")
    func laws() throws {
        var random = SeededRandom(seed: 23)
        for _ in 0..<1_000 {
            let base = self.random(&random, from: nil)
            let (mine, theirs) = (self.random(&random, from: base), self.random(&random, from: base))
            #expect(try Recipe.merged(base: base, local: mine, remote: mine) == mine)
            #expect(try Recipe.merged(base: base, local: base, remote: theirs) == theirs)
            #expect(try Recipe.merged(base: base, local: mine, remote: base) == mine)
            let merged = try Recipe.merged(base: base, local: mine, remote: theirs)
            #expect(merged.servings == (mine.servings == base.servings ? theirs.servings : mine.servings))
            for key in Set(base.amounts.keys).union(mine.amounts.keys).union(theirs.amounts.keys) {
                let touched = mine.amounts[key] != base.amounts[key]
                #expect(merged.amounts[key] == (touched ? mine : theirs).amounts[key])
            }
            let (old, one, two) = (Set(base.tags), Set(mine.tags), Set(theirs.tags))
            let wanted = one.union(two).filter { !old.contains($0) || (one.contains($0) && two.contains($0)) }
            #expect(Set(merged.tags) == wanted && merged.tags.count == wanted.count)
            #expect(try Recipe(merging: merged.mergedContent) == merged)
        }
    }

    @Test("Q17: an app's type is the rule of its contents, and a content that it cannot read is not merged")
    func rule() throws {
        let merge = try #require(MergeRule(Recipe.self).merge)
        let base = Recipe("soup", 2, ["a"], [:])
        let (mine, theirs) = (Recipe("soup", 4, ["a"], [:]), Recipe("soup", 2, ["a", "b"], [:]))
        let outcome = try merge(base.mergedContent, mine.mergedContent, theirs.mergedContent)
        #expect(outcome == .init(content: Recipe("soup", 4, ["a", "b"], [:]).mergedContent))
        #expect(throws: (any Error).self) {
            try merge(base.mergedContent, NodeContent(data: [1]), theirs.mergedContent)
        }
    }
}

extension SeededRandom {
    fileprivate mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
