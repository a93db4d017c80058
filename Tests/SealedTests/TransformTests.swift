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

    /// Object, the earlier edit, the later edit, whether the earlier one's author is first, the result on every device,
    /// and the values that lost.
    private static let table = [
        // Two words at one caret: the smaller author id is in front, whichever edit is earlier.
        (#"{"t":""}"#, #"{"t":{"o":"d","v":"+abc"}}"#, #"{"t":{"o":"d","v":"+xyz"}}"#, true, #"{"t":"abcxyz"}"#, []),
        (#"{"t":""}"#, #"{"t":{"o":"d","v":"+abc"}}"#, #"{"t":{"o":"d","v":"+xyz"}}"#, false, #"{"t":"xyzabc"}"#, []),
        // Text that both delete is deleted once.
        (
            #"{"t":"abcd"}"#, #"{"t":{"o":"d","v":"=1\t-2\t=1"}}"#, #"{"t":{"o":"d","v":"=2\t-2"}}"#, true,
            #"{"t":"a"}"#, []
        ),
        // `d` over `r`: the result is the text that its author meant.
        (
            #"{"t":"ab"}"#, #"{"t":{"o":"r","v":7}}"#, #"{"t":{"o":"d","v":"=2\t+c"}}"#, true, #"{"t":"abc"}"#, ["7"]
        ),
        (
            #"{"t":"ab"}"#, #"{"t":{"o":"d","v":"=2\t+c"}}"#, #"{"t":{"o":"r","v":7}}"#, true, #"{"t":7}"#,
            [#""abc""#]
        ),
        // Every shared key is transformed, not only the first.
        (
            #"{"a":"x","b":"y"}"#, #"{"a":{"o":"d","v":"+1\t=1"},"b":{"o":"d","v":"+2\t=1"}}"#,
            #"{"a":{"o":"d","v":"=1\t+3"},"b":{"o":"d","v":"=1\t+4"}}"#, true, #"{"a":"1x3","b":"2y4"}"#, []
        ),
        // A preference reports the value that lost.
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

    @Test("the table of transforms holds in both orders and with the values that lost", arguments: table.indices)
    func row(_ number: Int) throws {
        let (before, first, second, isFirst, after, lost) =
            Self.table[number]
        let base = try JSONValue(parsing: before)
        let earlier = try Self.edit(first).apply(to: base)
        let later = try Self.edit(second).apply(to: base)
        let order = TransformOrder(isLater: true, isFirst: !isFirst)
        let (one, two) = (try #require(earlier.edit), try #require(later.edit))
        let carried = try two.transformed(over: one, order)
        let back = try one.transformed(over: two, order.opposite)
        let inOrder = try carried?.apply(to: earlier.value)
        let result = try JSONValue(parsing: after)
        #expect((inOrder?.value ?? earlier.value) == result)
        #expect(try (back.map { try $0.apply(to: later.value).value } ?? later.value) == result)
        // A value that only moved, as `3` in the last row, is not a loss, nor is `2` replaced by `2.0`.
        let reported = (inOrder?.conflicts ?? []).map { $0.losing?.serializedText ?? "gone" }
        #expect(reported == lost.filter { $0 != "3" })
    }

    @Test("two edits of one object give one result in either order, whichever author is first")
    func order() throws {
        var random = SeededRandom(seed: 31)
        var met = 0
        for number in 0..<3_000 {
            var letters = Letters()
            var object: JSONObject = [
                "t": .string(letters.insert(6)), "n": 1, "l": [1, "x", ["y": 2]], "o": ["s": "hey"],
            ]
            for _ in 0..<random.below(4) {
                object = try JSONDiff.apply(random.edit(of: object, .everything, &letters), to: object)
            }
            let base: JSONValue = .object(object)
            let a = try Edit(.object(random.edit(of: object, .everything, &letters))).apply(to: base)
            let b = try Edit(.object(random.edit(of: object, .everything, &letters))).apply(to: base)
            guard let mine = a.edit, let theirs = b.edit else { continue }
            let order = TransformOrder(isLater: true, isFirst: random.below(2) == 0)
            let carried = try mine.transformed(over: theirs, order)
            let back = try theirs.transformed(over: mine, order.opposite)
            let one = try carried.map { try $0.apply(to: b.value).value } ?? b.value
            let two = try back.map { try $0.apply(to: a.value).value } ?? a.value
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
        let over = try edit.transformed(over: gone, TransformOrder(isLater: true, isFirst: true))
        let back: Edit.Applied = try #require(try over?.apply(to: nil))
        #expect(back.value == ["k": 6])
        #expect(back.conflicts == [SealedConflict(path: [], losing: nil, winning: ["k": 6])])
        #expect(
            try gone.transformed(over: edit, TransformOrder(isLater: true, isFirst: true))
                == .remove(.init(isContested: true))
        )
    }

    @Test("an edit that cuts a surrogate pair does not fit, even if the halves would join again")
    func pairs() throws {
        let base: JSONValue = ["t": "a🌲b"]
        #expect(throws: DiffError.self) { try Self.edit(#"{"t":{"o":"d","v":"=2\t-1\t=1"}}"#).apply(to: base) }
        #expect(throws: DiffError.self) {
            try Self.edit(#"{"t":{"o":"d","v":"=2\t-1\t+%ED%BC%B2\t=1"}}"#).apply(to: base)
        }
        #expect(
            try Self.edit(#"{"t":{"o":"d","v":"=1\t-2\t+%F0%9F%8C%B3\t=1"}}"#).apply(to: base).value == ["t": "a🌳b"])
    }

    @Test("these rules reject the operation dL at any depth")
    func listText() {
        #expect(throws: DiffError(.unknownOperation)) { try Self.edit(#"{"k":{"o":"dL","v":"=4"}}"#) }
        #expect(throws: DiffError.self) { try Self.edit(#"{"k":{"o":"O","v":{"l":{"o":"dL","v":"=4"}}}}"#) }
    }

    @Test("an edit that would nest deeper than documents may is rejected")
    func depth() throws {
        let deep = String(repeating: "[", count: 250) + String(repeating: "]", count: 250)
        let edit = try Edit(
            .object(ObjectDiff([(key: "k", operation: .insert(JSONValue(parsing: deep, maxDepth: 600)))])))
        let once = try #require(try edit.apply(to: [:]).value)
        #expect(throws: DiffError.self) {
            let nested = try JSONValue(parsing: deep, maxDepth: 600)
            _ = try Edit.members([.init("a", .set(["b": ["c": ["d": ["e": ["f": ["g": nested]]]]]]))]).apply(to: once)
        }
    }

    @Test("an applied edit is unchanged by a round trip through its JSON form")
    func stored() throws {
        var random = SeededRandom(seed: 32)
        for _ in 0..<1_500 {
            var letters = Letters()
            let object: JSONObject = [
                "t": .string(letters.insert(6)), "n": 1, "l": [1, "x", ["y": 2]], "o": ["s": "hey"],
            ]
            let diff = random.edit(of: object, .everything, &letters)
            guard let edit = try Edit(.object(diff)).apply(to: .object(object)).edit else { continue }
            #expect(try Edit(stored: JSONValue(parsing: edit.storedJSON.serialized(), maxDepth: 600)) == edit)
        }
    }
}
