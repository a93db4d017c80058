import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// A diff from its JSON text.
func diff(_ text: String) throws -> ObjectDiff { try ObjectDiff(JSONValue(parsing: text)) }

func object(_ text: String) throws -> JSONObject { try #require(JSONValue(parsing: text).objectValue) }

@Suite("JSON diff")
struct JSONDiffTests {
    @Test(
        "each of the eight operations does its work",
        arguments: [
            (#"{}"#, #"{"a":{"o":"+","v":null}}"#, #"{"a":null}"#),
            (#"{"a":1}"#, #"{"a":{"o":"+","v":2}}"#, #"{"a":2}"#),
            (#"{"a":1,"b":2}"#, #"{"a":{"o":"-"}}"#, #"{"b":2}"#),
            (#"{"b":2}"#, #"{"a":{"o":"-"}}"#, #"{"b":2}"#),
            (#"{"a":1}"#, #"{"a":{"o":"r","v":[1,{}]}}"#, #"{"a":[1,{}]}"#),
            (#"{"a":0.1}"#, #"{"a":{"o":"I","v":0.2}}"#, #"{"a":0.3}"#),
            (#"{"a":9007199254740993}"#, #"{"a":{"o":"I","v":1}}"#, #"{"a":9007199254740994}"#),
            (#"{"a":{"x":1}}"#, #"{"a":{"o":"O","v":{"x":{"o":"-"},"y":{"o":"+","v":2}}}}"#, #"{"a":{"y":2}}"#),
            (#"{"a":{"x":1}}"#, #"{"a":{"o":"O"}}"#, #"{"a":{"x":1}}"#),
            (#"{"a":"héllo"}"#, #"{"a":{"o":"d","v":"=1\t-1\t+e\t=3"}}"#, #"{"a":"hello"}"#),
            (#"{"a":["x","y"]}"#, #"{"a":{"o":"L","v":{"0":{"o":"-"},"2":{"o":"+","v":1}}}}"#, #"{"a":["y",1]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"o":"L","v":{"0":{"o":"+","v":0},"1":{"o":"-"}}}}"#, #"{"a":[0,2,3]}"#),
            (#"{"a":[]}"#, #"{"a":{"o":"L","v":{"1":{"o":"+","v":"b"},"0":{"o":"+","v":"a"}}}}"#, #"{"a":["a","b"]}"#),
            (#"{"a":[1.50,"x"]}"#, #"{"a":{"o":"dL","v":"=4\t+[2]%0A\t-4"}}"#, #"{"a":[1.50,[2]]}"#),
        ])
    func apply(source: String, change: String, target: String) throws {
        let result = try JSONDiff.apply(diff(change), to: object(source))
        #expect(try result == object(target), "\(result)")
    }

    @Test(
        "a diff that is unreadable or does not fit is refused with its place",
        arguments: [
            (#"{"a":1}"#, #"{"a":{"o":"r"}}"#, DiffError(.missingValue, path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"o":"x","v":1}}"#, DiffError(.unknownOperation, path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"v":1}}"#, DiffError(.malformed, path: ["a"])),
            (#"{"a":1}"#, #"{"a":7}"#, DiffError(.malformed, path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"o":"I","v":"1"}}"#, DiffError(.wrongValue, path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"o":"O","v":[]}}"#, DiffError(.malformed, path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"o":"d","v":"="}}"#, DiffError(.delta(.badCount(token: 0)), path: ["a"])),
            (#"{"a":1}"#, #"{"a":{"o":"d","v":"=1"}}"#, DiffError(.wrongType, path: ["a"])),
            (#"{"a":"x"}"#, #"{"a":{"o":"I","v":1}}"#, DiffError(.wrongType, path: ["a"])),
            (#"{}"#, #"{"a":{"o":"I","v":1}}"#, DiffError(.missingKey, path: ["a"])),
            (
                #"{"a":{"b":"x"}}"#, #"{"a":{"o":"O","v":{"b":{"o":"d","v":"=2"}}}}"#,
                DiffError(.delta(.lengthMismatch(delta: 2, text: 1)), path: ["a", "b"])
            ),
            (#"{"a":[1]}"#, #"{"a":{"o":"L","v":{"1":{"o":"-"}}}}"#, DiffError(.badIndex, path: ["a", "1"])),
            (#"{"a":[1]}"#, #"{"a":{"o":"L","v":{"3":{"o":"+","v":1}}}}"#, DiffError(.badIndex, path: ["a", "0"])),
            (#"{"a":[1]}"#, #"{"a":{"o":"L","v":{"01":{"o":"-"}}}}"#, DiffError(.badIndex, path: ["a", "01"])),
            (#"{"a":[1]}"#, #"{"a":{"o":"dL","v":"=2\t+x%0A"}}"#, DiffError(.badLine, path: ["a"])),
        ])
    func refused(source: String, change: String, error: DiffError) {
        #expect(throws: error) { try JSONDiff.apply(diff(change), to: object(source)) }
        #expect(error.code == .invalidDiff)
    }

    @Test(
        "a difference is written in + - r O d only",
        arguments: [
            (#"{"a":1}"#, #"{"a":1.0}"#, #"{}"#),
            (#"{"a":true}"#, #"{"a":1}"#, #"{"a":{"o":"r","v":1}}"#),
            (#"{"a":[1]}"#, #"{"a":[1,2]}"#, #"{"a":{"o":"r","v":[1,2]}}"#),
            (#"{"a":{"b":1}}"#, #"{"a":{"c":null}}"#, #"{"a":{"o":"O","v":{"b":{"o":"-"},"c":{"o":"+","v":null}}}}"#),
            (#"{"toString":"ab"}"#, #"{"toString":"b"}"#, #"{"toString":{"o":"d","v":"-1\t=1"}}"#),
            ("{\"a\":\"\u{E9}\"}", "{\"a\":\"e\u{301}\"}", "{\"a\":{\"o\":\"d\",\"v\":\"-1\\t+e%CC%81\"}}"),
            ("{\"\u{E9}\":1}", "{\"e\u{301}\":1}", "{\"\u{E9}\":{\"o\":\"-\"},\"e\u{301}\":{\"o\":\"+\",\"v\":1}}"),
        ])
    func difference(source: String, target: String, change: String) throws {
        #expect(try JSONDiff.diff(from: object(source), to: object(target)) == diff(change))
    }

    @Test("any difference applied gives the target, in JSON and back")
    func roundTrip() throws {
        var random = SeededRandom(seed: 11)
        for _ in 0..<3_000 {
            let source = random.object(depth: 3)
            let target =
                random.chance(50) ? random.object(depth: 3) : try JSONDiff.apply(random.diff(of: source), to: source)
            let change = JSONDiff.diff(from: source, to: target)
            #expect(try JSONDiff.apply(change, to: source) == target)
            #expect(try ObjectDiff(change.json) == change)
        }
    }

    @Test("every operation reads back as it was written")
    func writing() throws {
        var random = SeededRandom(seed: 12)
        for _ in 0..<2_000 {
            let source = random.object(depth: 3)
            let change = random.diff(of: source)
            var writer = JSONWriter()
            change.write(to: &writer)
            #expect(try ObjectDiff(JSONDocument(parsing: writer.bytes).root) == change)
            #expect(writer.bytes == change.json.serialized())
        }
    }

    @Test("deep objects are compared without deep edits, deeper edits are refused")
    func depth() throws {
        var (one, two): (JSONValue, JSONValue) = ("x", "y")
        for _ in 0..<250 { (one, two) = (["k": one], ["k": two]) }
        let (source, target): (JSONObject, JSONObject) = (try #require(one.objectValue), try #require(two.objectValue))
        let change = JSONDiff.diff(from: source, to: target)
        #expect(try JSONDiff.apply(change, to: source) == target)
        _ = try JSONValue(parsing: JSONValue.object(["a": .string("x")]).serialized())
        var json = JSONValue.object(["k": ["o": "-"]])
        for _ in 0...Limits.jsonDepthMax { json = ["k": ["o": "O", "v": json]] }
        #expect(throws: DiffError.self) { try ObjectDiff(json) }
    }

    @Test(
        "composing writes two edits as one",
        arguments: [
            (#"{"a":{"o":"+","v":1}}"#, #"{"a":{"o":"-"}}"#, #"{}"#),
            (#"{"a":{"o":"+","v":"x"}}"#, #"{"a":{"o":"d","v":"=1\t+y"}}"#, #"{"a":{"o":"+","v":"xy"}}"#),
            (#"{"a":{"o":"-"}}"#, #"{"a":{"o":"+","v":2}}"#, #"{"a":{"o":"r","v":2}}"#),
            (#"{"a":{"o":"I","v":2}}"#, #"{"a":{"o":"I","v":-2}}"#, #"{}"#),
            (#"{"a":{"o":"r","v":2}}"#, #"{"a":{"o":"I","v":3}}"#, #"{"a":{"o":"r","v":5}}"#),
            (#"{"a":{"o":"d","v":"=1\t+x"}}"#, #"{"a":{"o":"d","v":"=1\t-1"}}"#, #"{}"#),
            (
                #"{"a":{"o":"d","v":"=1\t+x\t-2"}}"#, #"{"a":{"o":"d","v":"=2\t+y"}}"#,
                #"{"a":{"o":"d","v":"=1\t+xy\t-2"}}"#
            ),
            (
                #"{"a":{"o":"O","v":{"x":{"o":"-"}}}}"#, #"{"a":{"o":"O","v":{"x":{"o":"+","v":1}}},"b":{"o":"-"}}"#,
                #"{"a":{"o":"O","v":{"x":{"o":"r","v":1}}},"b":{"o":"-"}}"#
            ),
        ])
    func composed(first: String, second: String, both: String) throws {
        #expect(try JSONDiff.compose(diff(first), diff(second)) == diff(both))
    }

    @Test("a composed diff does what both do, one after the other")
    func compose() throws {
        var random = SeededRandom(seed: 13)
        var run = 0
        for _ in 0..<4_000 {
            let source = random.object(depth: 2)
            let first = random.diff(of: source)
            let between = try JSONDiff.apply(first, to: source)
            let second = random.diff(of: between)
            // A `L` after a `dL` (or the reverse) cannot be composed.
            guard let both = try? JSONDiff.compose(first, second) else { continue }
            #expect(try JSONDiff.apply(both, to: source) == JSONDiff.apply(second, to: between))
            run += 1
        }
        #expect(run > 3_500)
    }

    @Test("a line of JSON is answered by a line of JSON, errors included")
    func lines() throws {
        func answer(_ line: String, _ verb: JSONDiffLines.Verb) -> String {
            String(decoding: JSONDiffLines.answer(line: Array(line.utf8), verb: verb), as: UTF8.self)
        }
        #expect(answer(#"{"source":{},"target":{"a":1}}"#, .diff) == #"{"diff":{"a":{"o":"+","v":1}}}"#)
        #expect(answer(#"{"source":{"a":1},"diff":{"a":{"o":"-"}}}"#, .apply) == #"{"applied":{}}"#)
        #expect(
            answer(#"{"base":{"a":1},"a_diff":{"a":{"o":"r","v":2}},"b_diff":{"a":{"o":"-"}}}"#, .transform)
                == #"{"transformed":{"a":{"o":"+","v":2}},"result":{"a":2}}"#)
        #expect(answer("{", .diff).hasPrefix(#"{"error":"JSON: "#))
        #expect(answer(#"{"source":{}}"#, .diff) == #"{"error":"no object called target"}"#)
        #expect(answer(#"{"source":{},"diff":{"a":{"o":"r"}}}"#, .apply).hasPrefix(#"{"error":"diff: "#))
    }
}
