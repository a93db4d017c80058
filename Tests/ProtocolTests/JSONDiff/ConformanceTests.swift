import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Recorded outcomes of the public libraries; `jsondiff/README.md` next to the vectors says what to check.
@Suite(
    "JSON diff conforms to the recorded outcomes", .enabled(if: DiffVectors.arePresent, "needs the jsondiff vectors"))
struct ConformanceTests {
    /// In these classes the reference itself is wrong in some cases (wire contract 7.6).
    private static let informational: Set<String> = [
        "policy-list", "bool-number", "nulls", "proto-key", "type-change",
    ]

    private struct DiffCase {
        let id: Int64
        let name: String
        let source: JSONObject
        let target: JSONObject
        let diff: JSONValue
        let applied: JSONValue?

        init(_ test: JSONValue) throws {
            id = try #require(test["id"]?.intValue)
            name = try #require(test["class"]?.stringValue)
            source = try #require(test["source"]?.objectValue)
            target = try #require(test["target"]?.objectValue)
            diff = try #require(test["diff"])
            applied = test["applied"]
        }
    }

    @Test("a recorded diff applied gives the recorded object")
    func apply() throws {
        var run = 0
        for test in try DiffVectors.cases("diff").map(DiffCase.init) {
            guard !Self.informational.contains(test.name) else {
                // An error or another outcome is correct here; a trap is not.
                _ = try? JSONDiff.apply(ObjectDiff(test.diff), to: test.source)
                continue
            }
            let applied = try JSONDiff.apply(ObjectDiff(test.diff), to: test.source)
            #expect(JSONValue.object(applied) == test.applied, "case \(test.id) \(test.name)")
            run += 1
        }
        #expect(run >= 790)
    }

    @Test("a recorded diff is written again as it was read")
    func writing() throws {
        var run = 0
        for test in try DiffVectors.cases("diff").map(DiffCase.init) where test.name != "proto-key" {
            let diff = try ObjectDiff(test.diff)
            var writer = JSONWriter()
            diff.write(to: &writer)
            #expect(try JSONValue(parsing: writer.bytes) == diff.json, "case \(test.id)")
            #expect(try ObjectDiff(diff.json) == diff, "case \(test.id)")
            run += 1
        }
        #expect(run >= 940)
    }

    @Test("our own diff gives the target, and is the recorded one except for joined neighbours")
    func diff() throws {
        var (run, equal, byteEqual, texts, byteEqualTexts) = (0, 0, 0, 0, 0)
        for test in try DiffVectors.cases("diff").map(DiffCase.init) {
            let own = JSONDiff.diff(from: test.source, to: test.target)
            #expect(try JSONDiff.apply(own, to: test.source) == test.target, "case \(test.id) \(test.name)")
            // Policies, and the reference's errors with booleans and with names that it defines itself, give other
            // diffs.
            guard !test.name.hasPrefix("policy"), test.name != "bool-number", test.name != "proto-key" else { continue }
            run += 1
            let recorded = try ObjectDiff(test.diff)
            #expect(own == recorded, "case \(test.id) \(test.name)")
            if own == recorded { equal += 1 }
            if own.json == test.diff { byteEqual += 1 }
            guard own.operations.contains(where: { $0.operation.editsText }) else { continue }
            texts += 1
            if own.json == test.diff { byteEqualTexts += 1 }
        }
        print("diff vectors: \(equal) of \(run) equal, \(byteEqual) byte for byte; texts \(byteEqualTexts) of \(texts)")
        #expect(run == 775)
        // The reference leaves some `=` tokens unjoined; nothing else differs.
        #expect(byteEqual >= 767)
        #expect(texts == 397 && byteEqualTexts >= 389)
    }

    @Test("a transform gives the recorded object, and loses nothing where the reference drops a hunk")
    func transform() throws {
        var (run, dropped, failed) = (0, 0, 0)
        // Cases in which the reference's patching reports that every hunk found its place, and loses characters
        // (decision 0002).
        var mended = 0
        for test in try DiffVectors.cases("transform") {
            let id = try #require(test["id"]?.intValue)
            let base = try #require(test["base"]?.objectValue)
            let (a, b): (ObjectDiff, ObjectDiff) = (
                try .init(#require(test["a_diff"])), try .init(#require(test["b_diff"]))
            )
            let moved = try JSONDiff.transform(a, over: b, base: base, rule: .reference)
            let result = try JSONDiff.apply(moved, to: JSONDiff.apply(b, to: base))
            if test["error"] != nil {
                failed += 1
            } else if test["dropped"]?.boolValue == true {
                dropped += 1
                expectNothingMissing(a, b, .object(result), "case \(id)")
            } else {
                run += 1
                if test["result"] != .object(result) { mended += 1 }
                expectNothingMissing(a, b, .object(result), "case \(id)")
            }
        }
        #expect((run, dropped, failed) == (457, 41, 2))
        #expect(mended == 57)
    }

    @Test("exact transforms of the recorded edits converge in either order")
    func exact() throws {
        var run = 0
        for test in try DiffVectors.cases("transform") {
            let base = try #require(test["base"]?.objectValue)
            let (a, b): (ObjectDiff, ObjectDiff) = (
                try .init(#require(test["a_diff"])), try .init(#require(test["b_diff"]))
            )
            let mine = try JSONDiff.transform(a, over: b, base: base, rule: .exact(tie: .after))
            let theirs = try JSONDiff.transform(b, over: a, base: base, rule: .exact(tie: .before))
            let one = try JSONDiff.apply(mine, to: JSONDiff.apply(b, to: base))
            let two = try JSONDiff.apply(theirs, to: JSONDiff.apply(a, to: base))
            #expect(one == two, "case \(test["id"] ?? .null)")
            expectNothingMissing(a, b, .object(one), "case \(test["id"] ?? .null)")
            run += 1
        }
        #expect(run == 500)
    }

    /// Expects that every unit that either side typed into a text that both edited occurs as often as it was typed.
    private func expectNothingMissing(_ a: ObjectDiff, _ b: ObjectDiff, _ result: JSONValue, _ name: Comment) {
        for (key, mine) in a.operations {
            switch (mine, b[key]) {
            case (.object(let mine), .object(let theirs)?):
                if let nested = result[key] { expectNothingMissing(mine, theirs, nested, name) }
            case (.text(let mine), .text(let theirs)?):
                var counts = [UInt16: Int]()
                for unit in result[key]?.stringValue?.utf16.map({ $0 }) ?? [] { counts[unit, default: 0] += 1 }
                for case .insert(let units) in mine.operations + theirs.operations {
                    for unit in units { counts[unit, default: 0] -= 1 }
                }
                #expect(counts.values.allSatisfy { $0 >= 0 }, name)
            default: break
            }
        }
    }
}
