import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Diffs keep surrogate pairs whole")
struct WholePairsTests {
    @Test("a cut inside a pair is moved to its sides, however deep the text is")
    func nested() throws {
        let cut: Operation = .text(try TextDelta(parsing: "=1\t-1\t+%ED%B9%8C"))
        let whole: Operation = .text(try TextDelta(parsing: "-2\t+%F0%9F%99%8C"))
        let object: JSONObject = ["t": "🙋", "o": ["t": "🙋"], "l": ["a", "🙋"]]
        func diff(_ operation: Operation, at index: Int) -> ObjectDiff {
            ObjectDiff([
                (key: "t", operation: operation), (key: "o", operation: .object(ObjectDiff([("t", operation)]))),
                (key: "l", operation: .list(ListDiff([(0, .insert("new")), (index, operation)]))),
            ])
        }
        #expect(JSONDiff.keepingPairsWhole(diff(cut, at: 2), in: object) == diff(whole, at: 2))
        #expect(try JSONDiff.apply(diff(cut, at: 2), to: object) == JSONDiff.apply(diff(whole, at: 2), to: object))
        #expect(JSONDiff.keepingPairsWhole(diff(whole, at: 2), in: object) == diff(whole, at: 2))
        let lines = ObjectDiff([("l", .listText(try TextDelta(parsing: "=6\t-1\t+%ED%B9%8C\t=2")))])
        let reported = JSONDiff.keepingPairsWhole(lines, in: object)
        #expect(reported == ObjectDiff([("l", .listText(try TextDelta(parsing: "=5\t-2\t+%F0%9F%99%8C\t=2")))]))
        #expect(throws: DiffError.self) { try JSONDiff.applyWhole(lines, to: object) }
        #expect(try JSONDiff.applyWhole(reported, to: object) == JSONDiff.apply(lines, to: object))
        #expect(throws: DiffError.self) { try JSONDiff.applyWhole(diff(cut, at: 2), to: object) }
    }

    @Test("an edit that does not fit, or would leave half a pair, is left as it is")
    func misfits() throws {
        let object: JSONObject = ["t": "🙋", "n": 1]
        for (key, delta) in [("t", "=1\t-1"), ("t", "=9\t+x"), ("n", "=1\t-1\t+%ED%B9%8C"), ("none", "=1\t-1")] {
            let diff = ObjectDiff([(key, .text(try TextDelta(parsing: delta)))])
            let reported = JSONDiff.keepingPairsWhole(diff, in: object)
            #expect(throws: DiffError.self) { try JSONDiff.apply(reported, to: object) }
        }
    }

    @Test("random deltas that cut pairs: each step then covers whole characters, and the result is the same")
    func random() throws {
        var random = SeededRandom(seed: 86)
        var widened = 0
        for _ in 0..<4_000 {
            let units = random.text(1 + random.below(10))
            let text = try #require(UTF16Text.string(of: units))
            let delta = random.delta(of: units)
            let (object, diff) = (JSONObject([("t", .string(text))]), ObjectDiff([("t", .text(delta))]))
            let whole = JSONDiff.keepingPairsWhole(diff, in: object)
            #expect(try JSONDiff.apply(whole, to: object) == JSONDiff.apply(diff, to: object))
            guard case .text(let reported)? = whole["t"] else {
                Issue.record("no text delta")
                continue
            }
            #expect(reported.hasWholeSteps(in: text))
            // As a strict decoder reads it: each token by itself, in UTF-8.
            _ = try reported.applyWhole(to: text)
            if delta.hasWholeSteps(in: text) {
                #expect(reported == delta)
                #expect(try JSONDiff.applyWhole(diff, to: object) == JSONDiff.apply(diff, to: object))
            } else {
                #expect(throws: DiffError.self) { try JSONDiff.applyWhole(diff, to: object) }
                widened += 1
            }
        }
        #expect(widened > 50)
    }
}

@Suite("Diffs without edits that change nothing")
struct SparingTests {
    private func diff(_ text: String) throws -> ObjectDiff { try ObjectDiff(JSONValue(parsing: text)) }

    @Test("edits of values that are already as wanted drop out, member by member; the others stay")
    func members() throws {
        let now: JSONObject = ["t": "a b b", "n": 1, "o": ["x": 1, "y": 2], "gone": 1]
        let wanted: JSONObject = ["t": "a b b", "n": 2, "o": ["x": 1, "y": 3]]
        let edit = try diff(
            #"{"t":{"o":"d","v":"=3\t+ b\t=2"},"n":{"o":"r","v":2},"gone":{"o":"-"},"#
                + #""o":{"o":"O","v":{"x":{"o":"r","v":1},"y":{"o":"r","v":3}}},"absent":{"o":"-"}}"#)
        #expect(
            JSONDiff.sparing(edit, of: now, wanted: wanted)
                == (try diff(
                    #"{"n":{"o":"r","v":2},"gone":{"o":"-"},"o":{"o":"O","v":{"y":{"o":"r","v":3}}}}"#)))
        #expect(JSONDiff.sparing(edit, of: wanted, wanted: wanted)?.isEmpty == true)
        let other = try diff(#"{"n":{"o":"r","v":2}}"#)
        #expect(JSONDiff.sparing(other, of: now, wanted: wanted) == nil, "nothing drops out")
    }
}
