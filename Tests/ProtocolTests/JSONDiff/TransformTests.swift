import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("JSON transform")
struct TransformTests {
    /// Base value, a, b; a rebased as the later arrival, as the earlier one, and the result that both orders give.
    private static let table = [
        // + over +
        ("{}", "+1", "+1", "", "", #"{"k":1}"#),
        ("{}", "+2", "+1", #"{"o":"r","v":2}"#, "", #"{"k":2}"#),
        ("{}", #"+"ab""#, #"+"b""#, #"{"o":"d","v":"+a\t=1"}"#, "", #"{"k":"ab"}"#),
        // -
        (#"{"k":1}"#, "-", "-", "", "", "{}"),
        (#"{"k":1}"#, "-", "r2", #"{"o":"-"}"#, "", "{}"),
        (#"{"k":1}"#, "r2", "-", #"{"o":"+","v":2}"#, "", #"{"k":2}"#),
        (#"{"k":"ab"}"#, #"d"=1\t-1""#, "-", #"{"o":"+","v":"a"}"#, "", #"{"k":"a"}"#),
        (#"{"k":{"x":1}}"#, #"O{"x":{"o":"-"}}"#, "-", #"{"o":"+","v":{}}"#, "", #"{"k":{}}"#),
        (#"{"k":1}"#, "I5", "-", #"{"o":"+","v":6}"#, "", #"{"k":6}"#),
        // r
        (#"{"k":1}"#, "r2", "r3", #"{"o":"r","v":2}"#, "", #"{"k":2}"#),
        (#"{"k":"ab"}"#, #"d"=2\t+c""#, "r7", #"{"o":"r","v":"abc"}"#, "", #"{"k":"abc"}"#),
        (#"{"k":"ab"}"#, #"d"=2\t+c""#, #"r"xy""#, #"{"o":"r","v":"abc"}"#, "", #"{"k":"abc"}"#),
        (#"{"k":"ab"}"#, "r7", #"d"=2\t+c""#, #"{"o":"r","v":7}"#, "", #"{"k":7}"#),
        (#"{"k":1}"#, "I5", "r7", #"{"o":"I","v":5}"#, "", #"{"k":12}"#),
        (#"{"k":1}"#, "I5", "r[]", #"{"o":"r","v":6}"#, "", #"{"k":6}"#),
        (#"{"k":1}"#, "r7", "I5", #"{"o":"r","v":7}"#, #"{"o":"r","v":12}"#, #"{"k":7}"#),
        // two edits
        (#"{"k":1}"#, "I5", "I-2", #"{"o":"I","v":5}"#, #"{"o":"I","v":5}"#, #"{"k":4}"#),
        (
            #"{"k":"ab"}"#, #"d"=1\t+A\t=1""#, #"d"=1\t+B\t=1""#, #"{"o":"d","v":"=2\t+A\t=1"}"#,
            #"{"o":"d","v":"=1\t+A\t=2"}"#, #"{"k":"aBAb"}"#
        ),
        (
            #"{"k":[1]}"#, #"L{"0":{"o":"+","v":"A"}}"#, #"L{"0":{"o":"+","v":"B"}}"#,
            #"{"o":"L","v":{"0":{"o":"+","v":"A"}}}"#, #"{"o":"L","v":{"1":{"o":"+","v":"A"}}}"#, #"{"k":["A","B",1]}"#
        ),
        (
            #"{"k":[1,2]}"#, #"L{"1":{"o":"I","v":5}}"#, #"L{"1":{"o":"-"}}"#,
            #"{"o":"L","v":{"1":{"o":"+","v":7}}}"#, "", #"{"k":[1,7]}"#
        ),
        (
            #"{"k":[1,2,3]}"#, #"L{"2":{"o":"-"}}"#, #"L{"0":{"o":"-"},"3":{"o":"+","v":9}}"#,
            #"{"o":"L","v":{"1":{"o":"-"}}}"#, #"{"o":"L","v":{"1":{"o":"-"}}}"#, #"{"k":[2,9]}"#
        ),
        (
            #"{"k":[1,2]}"#, #"dL"=4\t+3%0A""#, #"dL"-2\t=2""#, #"{"o":"dL","v":"=2\t+3%0A"}"#,
            #"{"o":"dL","v":"=2\t+3%0A"}"#, #"{"k":[2,3]}"#
        ),
        (
            #"{"k":[1,2]}"#, #"L{"2":{"o":"+","v":3}}"#, #"dL"-2\t=2""#, #"{"o":"L","v":{"1":{"o":"+","v":3}}}"#,
            #"{"o":"L","v":{"1":{"o":"+","v":3}}}"#, #"{"k":[2,3]}"#
        ),
    ]

    /// `-`, or an operation's name and its value.
    private static func change(_ short: String) throws -> ObjectDiff {
        if short.isEmpty { return ObjectDiff() }
        if short.hasPrefix("{") { return try diff(#"{"k":\#(short)}"#) }
        if short == "-" { return try diff(#"{"k":{"o":"-"}}"#) }
        let name = short.hasPrefix("dL") ? "dL" : String(short.prefix(1))
        return try diff(#"{"k":{"o":"\#(name)","v":\#(short.dropFirst(name.count))}}"#)
    }

    @Test("each row of the table transforms as it says, and both orders give its result", arguments: 0..<table.count)
    func row(_ number: Int) throws {
        let (before, first, second, later, earlier, after) =
            Self.table[number]
        let base = try object(before)
        let (a, b) = (try Self.change(first), try Self.change(second))
        let isLater = try JSONDiff.transform(a, over: b, base: base, rule: .exact(tie: .after))
        let isEarlier = try JSONDiff.transform(a, over: b, base: base, rule: .exact(tie: .before))
        let other = try JSONDiff.transform(b, over: a, base: base, rule: .exact(tie: .before))
        #expect(try isLater == Self.change(later))
        #expect(try isEarlier == Self.change(earlier))
        #expect(try JSONDiff.apply(isLater, to: JSONDiff.apply(b, to: base)) == object(after))
        #expect(try JSONDiff.apply(other, to: JSONDiff.apply(a, to: base)) == object(after))
    }

    @Test("two concurrent edits of an object converge in either order")
    func meeting() throws {
        var random = SeededRandom(seed: 21)
        var run = 0
        for _ in 0..<8_000 {
            let base = random.object(depth: 3)
            let (a, b) = (random.diff(of: base), random.diff(of: base))
            let mine = try JSONDiff.transform(a, over: b, base: base, rule: .exact(tie: .after))
            let theirs = try JSONDiff.transform(b, over: a, base: base, rule: .exact(tie: .before))
            let one = try JSONDiff.apply(mine, to: JSONDiff.apply(b, to: base))
            let two = try JSONDiff.apply(theirs, to: JSONDiff.apply(a, to: base))
            #expect(one == two, "base \(base)\na \(a.json)\nb \(b.json)\na' \(mine.json)\nb' \(theirs.json)")
            run += a.operations.contains { b[$0.key] != nil } ? 1 : 0
        }
        #expect(run > 3_000)
    }

    @Test("the reference's rule always gives a diff that fits")
    func reference() throws {
        var random = SeededRandom(seed: 22)
        for _ in 0..<3_000 {
            let base = random.object(depth: 3)
            let (a, b) = (random.diff(of: base), random.diff(of: base))
            let moved = try JSONDiff.transform(a, over: b, base: base, rule: .reference)
            _ = try JSONDiff.apply(moved, to: JSONDiff.apply(b, to: base))
        }
    }

    @Test("a hunk that finds no place is not dropped")
    func droppedHunk() throws {
        let base: JSONObject = ["s": "one two three four five six seven eight nine ten"]
        let a = JSONDiff.diff(from: base, to: ["s": "one two three FOUR five six seven eight nine ten"])
        let b: ObjectDiff = JSONDiff.diff(from: base, to: ["s": ""])
        let moved = try JSONDiff.transform(a, over: b, base: base, rule: .reference)
        let result = try JSONDiff.apply(moved, to: JSONDiff.apply(b, to: base))
        #expect(result["s"]?.stringValue == "FOUR")
    }

    @Test("without a budget the reference's rule is the exact one")
    func noBudget() throws {
        let base: JSONObject = ["s": "aaaa bbbb aaaa"]
        let a = try diff(#"{"s":{"o":"d","v":"=14\t+x"}}"#)
        let b = try diff(#"{"s":{"o":"d","v":"-9\t=5"}}"#)
        let moved: ObjectDiff = try JSONDiff.transform(
            a, over: b, base: base, rule: .reference, budget: .init(steps: 0))
        #expect(try moved == diff(#"{"s":{"o":"d","v":"=5\t+x"}}"#))
    }

    @Test("edits that cut pairs never leave half a pair behind")
    func pairs() throws {
        var random = SeededRandom(seed: 23)
        var cut = 0
        for _ in 0..<4_000 {
            let text = random.text(random.below(8))
            func edit() throws -> TextDelta? {
                let delta = random.delta(length: text.count)
                return UTF16Text.string(of: try delta.apply(to: text)) == nil ? nil : delta
            }
            guard let a = try edit(), let b = try edit() else { continue }
            if try a.keepingPairsWhole(in: text) != a { cut += 1 }
            let base: JSONObject = ["s": .string(String(decoding: text, as: UTF16.self))]
            let (mine, theirs): (ObjectDiff, ObjectDiff) = (
                .init([(key: "s", operation: .text(a))]), .init([(key: "s", operation: .text(b))])
            )
            let after = try JSONDiff.apply(theirs, to: base)
            for rule: TransformRule in [.reference, .exact(tie: .after), .exact(tie: .before)] {
                let moved = try JSONDiff.transform(mine, over: theirs, base: base, rule: rule)
                _ = try JSONDiff.apply(moved, to: after)
            }
        }
        #expect(cut > 20)
    }
}
