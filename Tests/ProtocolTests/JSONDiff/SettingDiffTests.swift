import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("SettingDiff") struct SettingDiffTests {
    private func node(_ text: String) throws -> JSONNode { try JSONDocument(parsing: Array(text.utf8)).root }

    /// The writer's text of the same diff.
    private func written(_ text: String) throws -> String {
        var writer = JSONWriter()
        try ObjectDiff(node(text)).write(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test(
        "a diff that sets keys, in the writer's form, is recognized by its text",
        arguments: [
            (#"{"s":{"o":"+","v":"text"}}"#, 2), (#"{"s":{"o":"r","v":1.50},"t":{"o":"+","v":null}}"#, 1),
            (#"{"a":{"o":"+","v":[1,[2,{"k":[]}],"é"]}}"#, 5), (#"{"":{"o":"+","v":{}}}"#, 2),
            (#"{"a\n\"":{"o":"+","v":"\\ \b\t\f\r\u0000\u001f"}}"#, 1), (#"{"o":{"o":"+","v":true}}"#, 1),
        ])
    func known(_ text: String, _ depth: Int) throws {
        let diff = try #require(SettingDiff(node(text)))
        #expect(try written(text) == text)
        let object = try JSONDiff.apply(ObjectDiff(node(text)), to: JSONObject())
        #expect(SettingDiff.object(Array(text.utf8)) == object)
        #expect(diff.objectSize == object.serializedSize)
        #expect(diff.depthMax >= 1)
        #expect(diff.depthMax <= max(depth, 2))
    }

    @Test(
        "many small containers do not count as deep; nested ones do, wherever they are",
        arguments: [1, 3, 40, 100, 240])
    func depth(_ levels: Int) throws {
        let deep = String(repeating: "[", count: levels) + .init(repeating: "]", count: levels)
        let flat = String(repeating: "[0],{\"k\":[]},", count: 500)
        let text = "{\"f\":{\"o\":\"+\",\"v\":[\(flat)\(deep),1]},\"g\":{\"o\":\"+\",\"v\":[]}}"
        let diff = try #require(SettingDiff(node(text)))
        #expect(diff.depthMax == max(levels, 2) + 2)
    }

    @Test(
        "other diffs, and those that the writer would write differently, are not recognized",
        arguments: [
            "{}", "[]", #"{"s":{"o":"-"}}"#, #"{"s":{"o":"I","v":1}}"#, #"{"s":{"o":"+"}}"#, #"{"s":{"v":1,"o":"+"}}"#,
            #"{"s":{"o":"+","v":1,"x":2}}"#, #"{"s": {"o":"+","v":1}}"#, #"{"s":{"o":"+","v": 1}}"#,
            #"{"s":{"o":"+","v":[1, 2]}}"#, #"{"s":{"o":"+","v":{"a" :1}}}"#, #"{"s":{"o":"+","v":"\/"}}"#,
            #"{"s":{"o":"+","v":"\u00e9"}}"#, #"{"s":{"o":"+","v":"\u001F"}}"#, #"{"s":{"o":"+","v":"\u000a"}}"#,
            #"{"\u0061":{"o":"+","v":1}}"#, #"{"s":{"o":"+","v":1},"t":{"o":"O","v":{}}}"#, #"{"s":1}"#,
            #"{"s":{"\u006f":"+","v":1}}"#, #"{"s":{"o":["+"],"v":1}}"#, " {\"s\":{\"o\":\"+\",\"v\":1}\n}",
        ])
    func refused(_ text: String) throws { #expect(try SettingDiff(node(text)) == nil) }

    @Test(
        "a recognized diff's bytes are the writer's, and its object and size those of applying it", arguments: 0..<40
    )
    func property(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var taken = 0
        for _ in 0..<100 {
            let text = Self.diff(&random)
            guard let diff = try SettingDiff(node(text)) else { continue }
            taken += 1
            #expect(try written(text) == text, "seed \(seed)")
            let object = try JSONDiff.apply(ObjectDiff(node(text)), to: JSONObject())
            #expect(SettingDiff.object(Array(text.utf8)) == object, "seed \(seed)")
            #expect(diff.objectSize == object.serializedSize, "seed \(seed)")
        }
        #expect(taken > 0, "seed \(seed)")
    }

    /// A diff as a client might write it, sometimes with white space and needless escapes.
    private static func diff(_ random: inout SeededRandom) -> String {
        let space = Int.random(in: 0..<4, using: &random) == 0 ? " " : ""
        let pairs = (0..<Int.random(in: 1...3, using: &random)).map { place in
            let name = ["+", "+", "r", "r", "-", "O"][Int.random(in: 0..<6, using: &random)]
            return "\"k\(place)\":\(space){\"o\":\"\(name)\",\"v\":\(value(&random, depth: 3))}"
        }
        return "{" + pairs.joined(separator: ",") + "}"
    }

    private static func value(_ random: inout SeededRandom, depth: Int) -> String {
        let texts = [#""plain""#, #""a\nb\"c\\""#, #""\u0007""#, #""é😀""#, #""\u00e9""#, #""\/""#, #""""#]
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
        case 0: return ["null", "true", "false"][Int.random(in: 0..<3, using: &random)]
        case 1: return ["0", "-1.50e3", "12345678901234567890"][Int.random(in: 0..<3, using: &random)]
        case 2, 3: return texts[Int.random(in: 0..<texts.count, using: &random)]
        case 4:
            let elements: [String] = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                value(&random, depth: depth - 1)
            }
            return "[" + elements.joined(separator: ",") + "]"
        default:
            let members: [String] = (0..<Int.random(in: 0...3, using: &random)).map {
                "\"m\($0)\":" + value(&random, depth: depth - 1)
            }
            return "{" + members.joined(separator: ",") + "}"
        }
    }
}

@Suite("Diffs of messages") struct MessageDiffTests {
    @Test(
        "a diff is read alike, and refused alike, from a message and from a tree",
        arguments: [
            #"{"a":{"o":"+","v":[1,{"b":null}]},"c":{"o":"-"},"d":{"o":"r","v":"x"},"e":{"o":"I","v":2.0}}"#,
            #"{"a":{"v":{"b":{"o":"d","v":"=1\t+x"}},"o":"O","more":1},"l":{"o":"L","v":{"1":{"o":"-"}}}}"#,
            #"{"a":{"o":"dL","v":"+x"},"b":{"o":"O"},"c":{"o":"O","v":{"d":{"o":"\u002b","v":"\u00e9"}}}}"#,
            "{}", "[]", "1", #"{"a":1}"#, #"{"a":{}}"#, #"{"a":{"o":1}}"#, #"{"a":{"o":"x","v":1}}"#,
            #"{"a":{"o":"+"}}"#, #"{"a":{"o":"I","v":"1"}}"#, #"{"a":{"o":"d","v":1}}"#, #"{"a":{"o":"d","v":"?"}}"#,
            #"{"a":{"o":"O","v":[]}}"#, #"{"a":{"o":"O","v":{"b":{"o":"L","v":{"01":{"o":"-"}}}}}}"#,
        ])
    func alike(_ text: String) throws {
        let node: JSONNode = try JSONDocument(parsing: Array(text.utf8)).root
        func read(_ make: () throws(DiffError) -> ObjectDiff) -> Result<[UInt8], DiffError> {
            do throws(DiffError) {
                var writer: JSONWriter = .init()
                try make().write(to: &writer)
                return .success(writer.bytes)
            } catch {
                return .failure(error)
            }
        }
        let left: Result<[UInt8], DiffError> = read { () throws(DiffError) in try ObjectDiff(node) }
        let right: Result<[UInt8], DiffError> = read { () throws(DiffError) in try ObjectDiff(node.value) }
        switch (left, right) {
        case (.success(let left), .success(let right)): #expect(left == right)
        case (.failure(let left), .failure(let right)): #expect("\(left)" == "\(right)")
        default: Issue.record("read in one way only: \(left), \(right)")
        }
    }
}
