import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Two clients set an object to the same value, each on the version that both had seen (docs/decisions/0086).
@Suite("Deciding a change to the current value")
struct EqualObjectTests {
    /// `shopping:` at version 1, and `shopping: milk` at 2 by another client.
    private func shop(_ memory: Memory) throws -> TestShard {
        let shard = try TestShard(memory)
        try shard.make("k", ["t": "shopping:", "n": 1])
        try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=9\t+ milk"]])
        return shard
    }

    @Test("a whole object on an old version that equals the newest is 412, in every form", arguments: Memory.allCases)
    func whole(_ memory: Memory) throws {
        let shard = try shop(memory)
        let wanted: JSONValue = ["t": "shopping: milk", "n": 1]
        let edit: JSONValue = ["t": ["o": "d", "v": "=9\t+ milk"]]
        for library in [AuthorLibrary.thicket, .other, .nodeSimperium] {
            #expect(try shard.send("k", sv: 1, d: wanted, library: library) == .error(412))
            let isWhole = library == .thicket
            #expect(try shard.send("k", sv: 1, v: edit, d: wanted, library: library, isWhole: isWhole) == .error(412))
            #expect(try shard.send("k", sv: 1, v: edit, library: library, isWhole: true) == .error(412))
            var terms = ChangeTerms()
            terms.mergesObject = true
            #expect(
                try shard.send("k", sv: 1, d: ["t": "shopping: milk"], library: library, terms: terms) == .error(412))
        }
        #expect(try shard.stored("k") == wanted)
        #expect(try shard.log().count == 2)
    }

    @Test("equal text that two clients type at one place is kept twice", arguments: Memory.allCases)
    func keystrokes(_ memory: Memory) throws {
        for library in [AuthorLibrary.thicket, .other] {
            let shard = try shop(memory)
            let typed: Answer = try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=9\t+ milk"]], library: library)
            #expect(typed.version == 3)
            #expect(try shard.stored("k") == ["t": "shopping: milk milk", "n": 1])
        }
        // Thicket's edit that was refused with 440 and is sent again with the whole object beside it.
        let shard = try shop(memory)
        let (edit, whole): (JSONValue, JSONValue) = (
            ["t": ["o": "d", "v": "=9\t+ milk"]], ["t": "shopping: milk", "n": 1]
        )
        #expect(try shard.send("k", sv: 1, v: edit, d: whole, library: .thicket).version == 3)
        #expect(try shard.stored("k") == ["t": "shopping: milk milk", "n": 1])
    }

    @Test(
        "a whole object sets only values that differ from the newest, also inside objects",
        arguments: Memory.allCases)
    func partly(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["t": "a", "o": ["t": "b", "n": 1]])
        try shard.send("k", sv: 1, d: ["t": "a x", "o": ["t": "b y", "n": 1]])
        let answer: Answer = try shard.send("k", sv: 1, d: ["t": "a x", "o": ["t": "b y", "n": 2]])
        #expect(answer.element?["v"] == ["o": ["o": "O", "v": ["n": ["o": "r", "v": 2]]]])
        #expect(try shard.stored("k") == ["t": "a x", "o": ["t": "b y", "n": 2]])
    }

    @Test(
        "text typed letter by letter is found, too; values that differ are merged as before", arguments: Memory.allCases
    )
    func chain(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["t": "shopping:"])
        for (place, letter) in " milk".enumerated() {
            let delta = "=\(9 + place)\t+\(letter)"
            try shard.send("k", sv: Version(1 + place), v: ["t": ["o": "d", "v": .string(delta)]], library: .thicket)
        }
        #expect(try shard.send("k", sv: 1, d: ["t": "shopping: milk"]) == .error(412))
        #expect(try shard.send("k", sv: 3, d: ["t": "shopping: milk"]) == .error(412))
        let more: Answer = try shard.send("k", sv: 1, d: ["t": "Shopping:"])
        #expect(more.version == 7)
        #expect(try shard.stored("k") == ["t": "Shopping: milk"])
    }

    @Test("keys removed already and numbers of equal value count as equal", arguments: Memory.allCases)
    func removedKeys(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1, "b": 2, "l": [1]])
        try shard.send("k", sv: 1, d: ["b": 3, "l": [1, 2]])
        #expect(try shard.send("k", sv: 1, d: ["b": 3.0, "l": [1, 2]]) == .error(412))
    }

    @Test("in a sealed bucket a whole object is inserted on the newest version only", arguments: Memory.allCases)
    func sealed(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        try shard.create()
        try shard.insert(1, sv: 1)
        func insertion(_ number: Int) -> JSONValue {
            SealedText.insertion(SealedText.operation(SealedText.changeID(number), clearBytes: 64))
        }
        let (key, id): (String, String) = (SealedText.key(), SealedText.changeID(2))
        #expect(try shard.send(key, sv: 1, v: insertion(2), ccid: id, isWhole: true) == .error(405))
        #expect(try shard.sealed()?.tail == [1])
        #expect(try shard.send(key, sv: 2, v: insertion(2), ccid: id, isWhole: true).version == 3)
        #expect(try shard.send(key, sv: 1, v: insertion(2), ccid: id, isWhole: true) == .error(409))
        #expect(try shard.insert(3, sv: 1).version == 4, "other insertions are accepted on any version")
    }
}

/// A delta that cuts a surrogate pair is sent with whole pairs: strict decoders read every delta that leaves the
/// server.
@Suite("Deciding a change that cuts a surrogate pair")
struct CutPairTests {
    @Test(
        "a cut pair is sent as whole pairs, on time and late, in the log and in the answer",
        arguments: Memory.allCases)
    func named(_ memory: Memory) throws {
        for library in [AuthorLibrary.thicket, .other] {
            let shard = try TestShard(memory)
            try shard.make("k", ["t": "🙋", "n": 1])
            let cut: JSONValue = ["t": ["o": "d", "v": "=1\t-1\t+%ED%B9%8C"]]
            let whole: JSONValue = ["t": ["o": "d", "v": "-2\t+%F0%9F%99%8C"]]
            #expect(try shard.send("k", sv: 1, v: cut, library: library).element?["v"] == whole)
            #expect(try shard.stored("k") == ["t": "🙌", "n": 1])
            try shard.make("l", ["t": "🙋", "n": 1])
            try shard.send("l", sv: 1, v: ["n": ["o": "r", "v": 2]])
            #expect(try shard.send("l", sv: 1, v: cut, library: library).element?["v"] == whole)
            #expect(try shard.stored("l") == ["t": "🙌", "n": 2])
            #expect(try shard.send("k", sv: 2, v: ["t": ["o": "d", "v": "=1\t-1"]], library: library) == .error(440))
            for row in try shard.log() { #expect(!String(decoding: row.diff, as: UTF8.self).contains("%ED%B")) }
        }
    }

    @Test("random edits that cut pairs, on time and late, are answered with whole deltas that give the stored text")
    func random() throws {
        let seed: UInt64 = 8_686
        var random = SeededRandom(seed: seed)
        var cuts = 0
        for round in 0..<150 {
            let shard = try TestShard(Memory.allCases[round % 2])
            var texts: [String] = ["🙋a🙌🙋"]
            try shard.make("k", ["t": .string(texts[0])])
            for _ in 0..<6 {
                let source = max(0, texts.count - 1 - Int.random(in: 0...2, using: &random))
                let units = Array(texts[source].utf16)
                guard let delta = Self.delta(of: units, &random) else { continue }
                if delta.contains("%ED%A") || delta.contains("%ED%B") { cuts += 1 }
                let library: AuthorLibrary = Bool.random(using: &random) ? .thicket : .other
                let answer: Answer = try shard.send(
                    "k", sv: Version(source + 1), v: ["t": ["o": "d", "v": .string(delta)]], library: library)
                guard let reported = answer.element?["v"]?["t"]?["v"]?.stringValue else { continue }
                let next = try #require(
                    Self.strictly(reported, on: texts[texts.count - 1]), "seed \(seed): \(reported)")
                texts.append(next)
                #expect(try shard.stored("k")?["t"]?.stringValue == next, "seed \(seed)")
            }
        }
        #expect(cuts > 100, "seed \(seed)")
    }

    /// A random edit that may cut pairs and gives a text; nil when none was found.
    private static func delta(of units: [UInt16], _ random: inout SeededRandom) -> String? {
        for _ in 0..<40 {
            var (delta, target): (TextDelta, [UInt16]) = (TextDelta(), [])
            var place = 0
            while place < units.count {
                switch Int.random(in: 0..<4, using: &random) {
                case 0, 1:
                    delta.retain(1)
                    target.append(units[place])
                    place += 1
                case 2:
                    delta.delete(1)
                    place += 1
                default:
                    let unit = "🙋🙌b".utf16.randomElement(using: &random) ?? 0x62
                    delta.insert([unit])
                    target.append(unit)
                }
            }
            if String(validating: target, as: UTF16.self) != nil, !delta.isIdentity { return delta.encoded }
        }
        return nil
    }

    /// The text after a delta, read as a strict client does: token by token, in UTF-8, each cut between characters.
    private static func strictly(_ delta: String, on text: String) -> String? {
        var result = ""
        var rest = text.unicodeScalars[...]
        for token in delta.split(separator: "\t") {
            if token.first == "+" {
                var bytes: [UInt8] = []
                var body = Array(token.utf8.dropFirst())[...]
                while let byte = body.popFirst() {
                    guard byte == UInt8(ascii: "%") else {
                        bytes.append(byte)
                        continue
                    }
                    guard let code = UInt8(String(decoding: body.prefix(2), as: UTF8.self), radix: 16) else {
                        return nil
                    }
                    bytes.append(code)
                    body = body.dropFirst(2)
                }
                guard let inserted = String(validating: bytes, as: UTF8.self) else { return nil }
                result += inserted
                continue
            }
            guard var left = Int(token.dropFirst()) else { return nil }
            while left > 0, let scalar = rest.popFirst() {
                left -= UTF16.width(scalar)
                if token.first == "=" { result.unicodeScalars.append(scalar) }
            }
            guard left == 0 else { return nil }
        }
        return rest.isEmpty ? result : nil
    }
}
