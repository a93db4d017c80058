import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketCLI

/// What a mirror does about one key, as a function of three states.
@Suite("Mirror: decisions")
struct MirrorStepTests {
    private static func base(_ text: String, name: String = "a.txt") throws -> MirrorBase {
        let file = try FileName(file: name)
        let bytes: [UInt8] = Array(text.utf8)
        let object = try FileContent.object(bytes, kind: file.kind, existing: nil)
        return MirrorBase(file: file, bytes: bytes, object: object)
    }

    private static func file(_ text: String?, name: String = "a.txt") throws -> MirrorFile {
        guard let text else { return .absent }
        return .present(try FileName(file: name), Array(text.utf8))
    }

    private func step(base: String?, file: String?, object: String?) throws -> MirrorStep {
        MirrorStep(
            key: "a.txt", base: try base.map { try MirrorStepTests.base($0) }, file: try MirrorStepTests.file(file),
            object: object.map { ["text": .string($0)] })
    }

    @Test(
        "each combination of what the folder, the bucket and the memory hold has its step",
        arguments: [
            // memory, file, object
            (nil, nil, nil, "nothing"), (nil, "x", nil, "push"), (nil, nil, "x", "write"), (nil, "x", "x", "remember"),
            (nil, "x", "y", "set aside"), ("x", nil, nil, "forget"), ("x", nil, "x", "remove"),
            ("x", nil, "y", "restore file"),
            ("x", "x", nil, "delete"), ("x", "x", "x", "nothing"), ("x", "x", "y", "write"),
            ("x", "y", nil, "restore object"),
            ("x", "y", "x", "push"), ("x", "y", "y", "remember"), ("x", "xa", "bx", "merge"),
        ] as [(String?, String?, String?, String)])
    func table(base: String?, file: String?, object: String?, expected: String) throws {
        let step = try step(base: base, file: file, object: object)
        #expect(name(step) == expected, "\(step)")
    }

    @Test(
        "a base that may not be the bucket's deletes no file, overwrites none and merges none",
        arguments: [
            ("x", "x", nil, "push"), ("x", "x", "x", "remember"), ("x", "x", "y", "set aside"),
            ("x", "y", nil, "restore object"), ("x", "y", "x", "push"), ("x", "y", "y", "remember"),
            ("x", "xa", "bx", "set aside"), ("x", nil, nil, "forget"), ("x", nil, "y", "restore file"),
        ] as [(String?, String?, String?, String)])
    func doubtful(base: String?, file: String?, object: String?, expected: String) throws {
        let step = MirrorStep(
            key: "a.txt", base: try base.map { try MirrorStepTests.base($0) }, file: try MirrorStepTests.file(file),
            object: object.map { ["text": .string($0)] }, isRemoved: true, isDoubtful: true)
        #expect(name(step) == expected, "\(step)")
    }

    @Test("an absent object that is not known to be removed is sent again, with all that its file does not show")
    func absent() throws {
        let base = MirrorBase(
            file: try FileName(file: "a.txt"), bytes: Array("x".utf8), object: ["text": "x", "tags": ["t"]])
        let step = MirrorStep(
            key: "a.txt", base: base, file: try MirrorStepTests.file("x"), object: nil, isRemoved: false)
        guard case .push(let diff, nil, let next, .sentAgain) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(try JSONDiff.apply(diff, to: JSONObject()) == base.object && next == base)
    }

    @Test("removing more than 20 and more than half, or all of a folder, is too much at once")
    func removals() throws {
        let few = RemovalLimit()
        for (count, total, stops) in [(20, 20, false), (21, 42, false), (21, 41, true), (21, 21, true), (0, 0, false)] {
            #expect(few.stops(count, of: total) == stops, "\(count) of \(total)")
        }
        #expect(few.stops(2, of: 2, isEmptied: true) && !few.stops(1, of: 1, isEmptied: true))
        let some = try RemovalLimit("30")
        #expect(!some.stops(30, of: 30, isEmptied: true) && some.stops(31, of: 31))
        #expect(!(try RemovalLimit("all").stops(1_000, of: 1_000, isEmptied: true)))
        for text in ["-1", "", "many", "1.5"] { #expect(throws: Failure.self) { try RemovalLimit(text) } }
    }

    private func name(_ step: MirrorStep) -> String {
        switch step {
        case .nothing: "nothing"
        case .remember(let base): base == nil ? "forget" : "remember"
        case .push(_, _, _, .merged): "merge"
        case .push(_, _, _, .restoredObject): "restore object"
        case .push: "push"
        case .remove: "remove"
        case .write(_, _, .restoredFile): "restore file"
        case .write: "write"
        case .delete: "delete"
        case .setAside: "set aside"
        case .hold: "hold"
        }
    }

    @Test("a file that cannot be read holds every step of its key, whatever the bucket has")
    func holds() throws {
        for object: JSONObject? in [nil, ["a": 1], ["a": 2]] {
            let step = MirrorStep(
                key: "a", base: try MirrorStepTests.base(#"{"a":1}"#, name: "a.json"),
                file: try MirrorStepTests.file("{ half", name: "a.json"), object: object)
            #expect(name(step) == "hold")
        }
        let unreadable = MirrorStep(
            key: "a", base: nil, file: .unreadable(try FileName(file: "a"), reason: "no"), object: ["a": 1])
        #expect(name(unreadable) == "hold")
    }

    @Test("a text file leaves the other fields of its object alone")
    func otherFields() throws {
        let file = try FileName(file: "a.txt")
        let base = MirrorBase(
            file: file, bytes: Array("x".utf8), object: ["text": "x", "pinned": true])
        let step = MirrorStep(
            key: "a.txt", base: base, file: .present(file, Array("xy".utf8)), object: ["text": "x", "pinned": false])
        guard case .push(let diff, let object?, _, _) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(try JSONDiff.apply(diff, to: object) == ["text": "xy", "pinned": false])
    }

    @Test("an object that is no longer a text gets a file of another kind")
    func kindChange() throws {
        let base = try MirrorStepTests.base("x")
        let step = MirrorStep(key: "a.txt", base: base, file: try MirrorStepTests.file("x"), object: ["text": 1])
        #expect(step == .delete(base.file, expecting: Array("x".utf8)))
        let next = MirrorStep(key: "a.txt", base: nil, file: .absent, object: ["text": 1])
        guard case .write(nil, let written, nil) = next else {
            Issue.record("\(next)")
            return
        }
        #expect(written.file.name == "a.txt.json")
    }

    @Test("a JSON file that differs only in its layout stays as the user wrote it")
    func layout() throws {
        let base = try MirrorStepTests.base("{\n  \"a\": 1\n}\n", name: "a.json")
        let step = MirrorStep(
            key: "a", base: base, file: try MirrorStepTests.file(#"{"a":1}"#, name: "a.json"), object: ["a": 1])
        #expect(name(step) == "remember")
    }

    @Test("a remembered base is read back, for its own key only")
    func record() throws {
        let base = try MirrorStepTests.base("ä\u{1F600}\r\n")
        #expect(MirrorBase(base.value, key: "a.txt") == base)
        #expect(MirrorBase(base.value, key: "b.txt") == nil)
    }

    // MARK: - Whole runs

    /// A folder, a bucket and a mirror between them, stopped at any moment.
    private struct World {
        var base: MirrorBase?
        var file: [UInt8]?
        var object: JSONObject?
        let name: FileName

        /// Does one step; true when nothing is left to do.
        mutating func step() throws -> Bool {
            let step = MirrorStep(
                key: name.key, base: base, file: file.map { .present(name, $0) } ?? .absent, object: object)
            switch step {
            case .nothing, .hold: return true
            case .remember(let next): base = next
            case .push(let diff, let expected, let next, _):
                #expect(object == expected)
                object = try JSONDiff.apply(diff, to: expected ?? [:])
                base = next
            case .remove(let expected):
                #expect(object == expected)
                (object, base) = (nil, nil)
            case .write(let expected, let next, _):
                #expect(file == expected)
                (file, base) = (next.bytes, next)
            case .delete(_, let expected):
                #expect(file == expected)
                (file, base) = (nil, nil)
            case .setAside: (file, base) = (nil, nil)
            }
            return false
        }
    }

    @Test(
        "with edits on both sides between any two steps both sides end the same, and no typed word is lost",
        arguments: [UInt64(1), 2, 3, 4])
    func runs(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<60 {
            let name = try FileName(file: "a.txt")
            var world = World(base: nil, file: Array("start ".utf8), object: nil, name: name)
            var typed: [String] = []
            for _ in 0..<40 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    guard let file = world.file else { break }
                    let word = "<f\(typed.count)>"
                    world.file = insert(word, into: file, &random)
                    typed.append(word)
                case 1:
                    guard let text = world.object?["text"]?.stringValue else { break }
                    let word = "<o\(typed.count)>"
                    world.object?["text"] = .string(
                        String(decoding: insert(word, into: Array(text.utf8), &random), as: UTF8.self))
                    typed.append(word)
                default: _ = try world.step()
                }
            }
            var steps = 0
            while try !world.step(), steps < 20 { steps += 1 }
            #expect(steps < 20, "seed \(seed): no rest")
            let text = world.object?["text"]?.stringValue ?? ""
            #expect(world.file == Array(text.utf8), "seed \(seed)")
            // A word may have been typed into another, so letters are counted.
            for mark: Character in ["<", ">", "f", "o"] {
                let wanted: Int = typed.reduce(0) { $0 + $1.filter { $0 == mark }.count }
                #expect(text.filter { $0 == mark }.count == wanted, "seed \(seed): \(mark) in \(text)")
            }
        }
    }

    private func insert(_ word: String, into bytes: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var bytes = bytes
        bytes.insert(contentsOf: Array(word.utf8), at: Int.random(in: 0...bytes.count, using: &random))
        return bytes
    }
}
