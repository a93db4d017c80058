import Testing
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@Suite("Transform rules 1")
struct TransformTests {
    private static func edit(_ json: String) throws -> Edit {
        try Edit(.object(ObjectDiff(JSONValue(parsing: json))))
    }

    private static func text(_ edit: Edit?) -> String { edit.map { $0.operation.json.serializedText } ?? "" }

    /// Object, the edit that stands earlier, the later one, the earlier one's author first?, what everybody ends with,
    /// and the values that lost.
    private static let table: [(String, String, String, Bool, String, [String])] = [
        // Two words at one caret: the smaller author id is in front, whoever comes first.
        (#"{"t":""}"#, #"{"t":{"o":"d","v":"+abc"}}"#, #"{"t":{"o":"d","v":"+xyz"}}"#, true, #"{"t":"abcxyz"}"#, []),
        (#"{"t":""}"#, #"{"t":{"o":"d","v":"+abc"}}"#, #"{"t":{"o":"d","v":"+xyz"}}"#, false, #"{"t":"xyzabc"}"#, []),
        // What both delete is deleted once.
        (
            #"{"t":"abcd"}"#, #"{"t":{"o":"d","v":"=1\t-2\t=1"}}"#, #"{"t":{"o":"d","v":"=2\t-2"}}"#, true,
            #"{"t":"a"}"#, []
        ),
        // `d` over `r`: the text its author meant.
        (
            #"{"t":"ab"}"#, #"{"t":{"o":"r","v":7}}"#, #"{"t":{"o":"d","v":"=2\t+c"}}"#, true, #"{"t":"abc"}"#, ["7"]
        ),
        (
            #"{"t":"ab"}"#, #"{"t":{"o":"d","v":"=2\t+c"}}"#, #"{"t":{"o":"r","v":7}}"#, true, #"{"t":7}"#,
            [#""abc""#]
        ),
        // Every shared key, not only the first.
        (
            #"{"a":"x","b":"y"}"#, #"{"a":{"o":"d","v":"+1\t=1"},"b":{"o":"d","v":"+2\t=1"}}"#,
            #"{"a":{"o":"d","v":"=1\t+3"},"b":{"o":"d","v":"=1\t+4"}}"#, true, #"{"a":"1x3","b":"2y4"}"#, []
        ),
        // Preferences tell what lost.
        (#"{"k":1}"#, #"{"k":{"o":"r","v":2}}"#, #"{"k":{"o":"r","v":3}}"#, true, #"{"k":3}"#, ["2"]),
        (#"{"k":1}"#, #"{"k":{"o":"r","v":2}}"#, #"{"k":{"o":"r","v":2.0}}"#, true, #"{"k":2}"#, []),
        ("{}", #"{"k":{"o":"+","v":2}}"#, #"{"k":{"o":"+","v":3}}"#, true, #"{"k":3}"#, ["2"]),
        ("{}", #"{"k":{"o":"+","v":2}}"#, #"{"k":{"o":"+","v":2}}"#, true, #"{"k":2}"#, []),
        (#"{"k":1}"#, #"{"k":{"o":"-"}}"#, #"{"k":{"o":"I","v":5}}"#, true, #"{"k":6}"#, ["gone"]),
        (#"{"k":1}"#, #"{"k":{"o":"I","v":5}}"#, #"{"k":{"o":"-"}}"#, true, "{}", ["6"]),
        (#"{"k":1}"#, #"{"k":{"o":"I","v":5}}"#, #"{"k":{"o":"I","v":-2}}"#, true, #"{"k":4}"#, []),
        // Lists by index: two insertions at one index, an edit of what the other removed, numeric order.
        (
            #"{"l":[1]}"#, #"{"l":{"o":"L","v":{"0":{"o":"+","v":"A"}}}}"#,
            #"{"l":{"o":"L","v":{"0":{"o":"+","v":"B"}}}}"#, true, #"{"l":["A","B",1]}"#, []
        ),
        (
            #"{"l":[1]}"#, #"{"l":{"o":"L","v":{"0":{"o":"+","v":"A"}}}}"#,
            #"{"l":{"o":"L","v":{"0":{"o":"+","v":"B"}}}}"#, false, #"{"l":["B","A",1]}"#, []
        ),
        (
            #"{"l":[1,2]}"#, #"{"l":{"o":"L","v":{"1":{"o":"-"}}}}"#, #"{"l":{"o":"L","v":{"1":{"o":"I","v":5}}}}"#,
            true, #"{"l":[1,7]}"#, ["gone"]
        ),
        (
            #"{"l":[0,1,2,3,4,5,6,7,8,9,10]}"#, #"{"l":{"o":"L","v":{"10":{"o":"-"},"2":{"o":"-"}}}}"#,
            #"{"l":{"o":"L","v":{"3":{"o":"r","v":"c"},"10":{"o":"r","v":"x"}}}}"#, true,
            #"{"l":[0,1,"c",4,5,6,7,8,9,"x"]}"#, ["3", "gone"]
        ),
    ]

    @Test("the table of meetings, in both orders and with what lost", arguments: table.indices)
    func row(_ number: Int) throws {
        let (before, first, second, isFirst, after, lost): (String, String, String, Bool, String, [String]) =
            Self.table[number]
        let base: JSONValue = try JSONValue(parsing: before)
        let earlier: Edit.Applied = try Self.edit(first).apply(to: base)
        let later: Edit.Applied = try Self.edit(second).apply(to: base)
        let order: TransformOrder = .init(isLater: true, isFirst: !isFirst)
        let (one, two): (Edit, Edit) = (try #require(earlier.edit), try #require(later.edit))
        let carried: Edit? = try two.transformed(over: one, order)
        let back: Edit? = try one.transformed(over: two, order.opposite)
        let inOrder: Edit.Applied? = try carried?.apply(to: earlier.value)
        let result: JSONValue = try JSONValue(parsing: after)
        #expect((inOrder?.value ?? earlier.value) == result)
        #expect(try (back.map { try $0.apply(to: later.value).value } ?? later.value) == result)
        // A value that only changed its place is no loss; `3` in the last row is one, `2.0` for `2` is none.
        let told: [String] = (inOrder?.conflicts ?? []).map { $0.losing?.serializedText ?? "gone" }
        #expect(told == lost.filter { $0 != "3" })
    }

    @Test("two edits made from one object meet in either order, whoever's author id is smaller")
    func order() throws {
        var random: SeededRandom = .init(seed: 31)
        var met: Int = 0
        for number: Int in 0..<3_000 {
            var letters: Letters = .init()
            var object: JSONObject = [
                "t": .string(letters.insert(6)), "n": 1, "l": [1, "x", ["y": 2]], "o": ["s": "hey"],
            ]
            for _ in 0..<random.below(4) {
                object = try JSONDiff.apply(random.edit(of: object, .everything, &letters), to: object)
            }
            let base: JSONValue = .object(object)
            let a: Edit.Applied = try Edit(.object(random.edit(of: object, .everything, &letters))).apply(to: base)
            let b: Edit.Applied = try Edit(.object(random.edit(of: object, .everything, &letters))).apply(to: base)
            guard let mine: Edit = a.edit, let theirs: Edit = b.edit else { continue }
            let order: TransformOrder = .init(isLater: true, isFirst: random.below(2) == 0)
            let carried: Edit? = try mine.transformed(over: theirs, order)
            let back: Edit? = try theirs.transformed(over: mine, order.opposite)
            let one: JSONValue? = try carried.map { try $0.apply(to: b.value).value } ?? b.value
            let two: JSONValue? = try back.map { try $0.apply(to: a.value).value } ?? a.value
            #expect(one == two, "case \(number): \(Self.text(mine)) and \(Self.text(theirs)) on \(base)")
            met += 1
        }
        #expect(met > 2_000)
    }

    @Test("an edit over a tombstone brings the object back, a tombstone over an edit deletes it")
    func tombstones() throws {
        let base: JSONValue = ["k": 1]
        let gone: Edit = try #require(try Edit.remove().apply(to: base).edit)
        let edit: Edit = try Self.edit(#"{"k":{"o":"I","v":5}}"#)
        let over: Edit? = try edit.transformed(over: gone, TransformOrder(isLater: true, isFirst: true))
        let back: Edit.Applied = try #require(try over?.apply(to: nil))
        #expect(back.value == ["k": 6])
        #expect(back.conflicts == [SealedConflict(path: [], losing: nil, winning: ["k": 6])])
        #expect(
            try gone.transformed(over: edit, TransformOrder(isLater: true, isFirst: true))
                == .remove(.init(isContested: true))
        )
    }

    @Test("what cuts a surrogate pair does not fit, even where the halves would meet again")
    func pairs() throws {
        let base: JSONValue = ["t": "a🌲b"]
        #expect(throws: DiffError.self) { try Self.edit(#"{"t":{"o":"d","v":"=2\t-1\t=1"}}"#).apply(to: base) }
        #expect(throws: DiffError.self) {
            try Self.edit(#"{"t":{"o":"d","v":"=2\t-1\t+%ED%BC%B2\t=1"}}"#).apply(to: base)
        }
        #expect(
            try Self.edit(#"{"t":{"o":"d","v":"=1\t-2\t+%F0%9F%8C%B3\t=1"}}"#).apply(to: base).value == ["t": "a🌳b"])
    }

    @Test("dL is no operation of these rules, however deep")
    func listText() {
        #expect(throws: DiffError(.unknownOperation)) { try Self.edit(#"{"k":{"o":"dL","v":"=4"}}"#) }
        #expect(throws: DiffError.self) { try Self.edit(#"{"k":{"o":"O","v":{"l":{"o":"dL","v":"=4"}}}}"#) }
    }

    @Test("nothing nests deeper than documents may")
    func depth() throws {
        let deep: String = String(repeating: "[", count: 250) + String(repeating: "]", count: 250)
        let edit: Edit = try Edit(
            .object(ObjectDiff([(key: "k", operation: .insert(JSONValue(parsing: deep, maxDepth: 600)))])))
        let once: JSONValue = try #require(try edit.apply(to: [:]).value)
        #expect(throws: DiffError.self) {
            let nested: JSONValue = try JSONValue(parsing: deep, maxDepth: 600)
            _ = try Edit.members([.init("a", .set(["b": ["c": ["d": ["e": ["f": ["g": nested]]]]]]))]).apply(to: once)
        }
    }

    @Test("applied edits come back from their JSON form as they were")
    func settled() throws {
        var random: SeededRandom = .init(seed: 32)
        for _ in 0..<1_500 {
            var letters: Letters = .init()
            let object: JSONObject = [
                "t": .string(letters.insert(6)), "n": 1, "l": [1, "x", ["y": 2]], "o": ["s": "hey"],
            ]
            let diff: ObjectDiff = random.edit(of: object, .everything, &letters)
            guard let edit: Edit = try Edit(.object(diff)).apply(to: .object(object)).edit else { continue }
            #expect(try Edit(settled: JSONValue(parsing: edit.settledJSON.serialized(), maxDepth: 600)) == edit)
        }
    }
}
