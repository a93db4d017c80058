import Testing
import ThicketProtocol

@testable import ThicketServer

extension DecisionTableTests {
    // MARK: Whole objects

    @Test("d is compared with the object at sv, rebased, and broadcast as a diff", arguments: Memory.allCases)
    func wholeObject(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1, "b": 2, "t": "abc"])
        try shard.send("k", sv: 1, v: ["b": ["o": "r", "v": 3]])
        let answer: Answer = try shard.send("k", sv: 1, d: ["a": 5, "b": 2, "t": "abc"])
        #expect(answer.element?["d"] == nil)
        #expect(answer.element?["v"] == ["a": ["o": "r", "v": 5]])
        #expect(answer.element?["sv"]?.intValue == 2)
        #expect(try shard.stored("k") == ["a": 5, "b": 3, "t": "abc"])
        let current: Answer = try shard.send("k", sv: 3, v: 7, d: ["b": 3, "t": "abcd"])
        #expect(current.element?["v"] == ["a": ["o": "-"], "t": ["o": "d", "v": "=3\t+d"]])
        #expect(try shard.stored("k") == ["b": 3, "t": "abcd"])
    }

    @Test("d without a usable sv is compared with the newest version", arguments: Memory.allCases)
    func wholeObjectWithoutSource(_ memory: Memory) throws {
        let shard = try TestShard(memory) {
            $0.rebaseChangesMax = 1
            $0.recentChangesMax = 1
        }
        try shard.make("k", ["a": 1])
        for version: Version in 1...3 { try shard.send("k", sv: version, v: ["a": ["o": "I", "v": 1]]) }
        for (source, value) in [(nil, 10), (99, 20), (1, 30)] as [(Version?, Int64)] {
            let answer: Answer = try shard.send("k", sv: source, d: ["a": .number(JSONNumber(value))])
            #expect(answer.element?["v"] == ["a": ["o": "r", "v": .number(JSONNumber(value))]])
        }
        #expect(try shard.stored("k") == ["a": 30])
    }

    @Test("d creates an unknown or deleted object, whatever its sv", arguments: Memory.allCases)
    func wholeObjectCreates(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        let answer: Answer = try shard.send("k", sv: 4, d: ["a": 1])
        #expect(answer.version == 1)
        #expect(answer.element?["v"] == ["a": ["o": "+", "v": 1]])
        #expect(try shard.send("none", d: [:]).version == 1)
    }

    @Test("a ghost record in d of node-simperium is never stored: v is applied, or the answer is 412")
    func ghostRecord() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": "abc"])
        let ghosts: [JSONValue] = [["version": 1, "data": ["t": "abc"]], ["data": [:], "key": "k"]]
        for (index, ghost) in ghosts.enumerated() {
            let edit: JSONValue = ["t": ["o": "d", "v": .string("=\(3 + index)\t+x")]]
            let source = Version(1 + index)
            #expect(try shard.send("k", sv: source, v: edit, d: ghost, library: .nodeSimperium).version == source + 1)
            let misfit: JSONValue = ["t": ["o": "d", "v": "=90"]]
            #expect(try shard.send("k", sv: source + 1, v: misfit, d: ghost, library: .nodeSimperium) == .error(412))
            #expect(try shard.send("k", sv: 50, v: edit, d: ghost, library: .nodeSimperium) == .error(412))
            #expect(try shard.send("k", sv: 1, d: ghost, library: .nodeSimperium) == .error(412))
            #expect(try shard.send("no", sv: 1, v: edit, d: ghost, library: .nodeSimperium) == .error(412))
        }
        #expect(try shard.stored("k") == ["t": "abcxx"])
    }

    @Test("an object of that shape from another library, and node-simperium's own objects, are stored as they are")
    func notAGhostRecord() throws {
        let shard = try TestShard()
        #expect(try shard.send("k", d: ["version": 1, "data": ["t": "abc"]]).version == 1)
        #expect(try shard.stored("k") == ["version": 1, "data": ["t": "abc"]])
        #expect(try shard.send("l", d: ["data": [:], "tags": []], library: .nodeSimperium).version == 1)
        #expect(try shard.send("m", d: ["key": "x"], library: .nodeSimperium).version == 1)
        #expect(try shard.send("n", d: ["data": "text"], library: .nodeSimperium).version == 1)
        #expect(try shard.send("o", d: [:], library: .nodeSimperium).version == 1)
    }

    // MARK: Removal

    @Test(
        "- without sv or with the current one removes; the answer has ev and neither v nor sv",
        arguments: Memory.allCases)
    func remove(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1])
        let answer: Answer = try shard.send("k", .remove, ccid: "gone")
        #expect(answer.element == ["clientid": "client", "id": "k", "o": "-", "ev": 2, "ccids": ["gone"]])
        #expect(try shard.stored("k") == nil)
        try shard.make("l", ["a": 1])
        #expect(try shard.send("l", .remove, sv: 1).version == 2)
        #expect(try shard.send("l", .remove, sv: 0) == .error(412))
    }

    @Test("405: only the newest version may be removed", arguments: Memory.allCases)
    func removeOld(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1])
        try shard.send("k", sv: 1, v: ["a": ["o": "r", "v": 2]])
        #expect(try shard.send("k", .remove, sv: 1) == .error(405))
        #expect(try shard.send("k", .remove, sv: 3) == .error(405))
        #expect(try shard.stored("k") == ["a": 2])
    }

    @Test("- of a deleted object is 412, of a key that never existed 404", arguments: Memory.allCases)
    func removeNothing(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1])
        try shard.send("k", .remove)
        #expect(try shard.send("k", .remove) == .error(412))
        #expect(try shard.send("k", .remove, sv: 2) == .error(412))
        #expect(try shard.send("never", .remove) == .error(404))
        #expect(try shard.send("never", .remove, sv: 1) == .error(404))
    }

    @Test("node-simperium's echo of a removal does not delete an object that was created again")
    func removalEcho() throws {
        let shard = try TestShard()
        try shard.make("k", ["a": 1])
        try shard.send("k", .remove)
        try shard.make("k", ["a": 2])
        #expect(try shard.send("k", .remove, library: .nodeSimperium, echo: true) == .error(412))
        #expect(try shard.stored("k") == ["a": 2])
        #expect(try shard.send("k", .remove, library: .other, echo: true).version == 4)
        try shard.make("k", ["a": 3])
        #expect(try shard.send("k", .remove, library: .nodeSimperium, echo: false).version == 6)
    }

    // MARK: Broadcasts

    @Test("an over-escaped delta is broadcast in a form that every client reads")
    func spelling() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": "abc", "o": ["t": "x"]])
        let answer: Answer = try shard.send(
            "k", sv: 1,
            v: [
                "t": ["o": "d", "v": "=3\t+%23%2F%3A%25%C3%BC"],
                "o": ["o": "O", "v": ["t": ["o": "d", "v": "=1\t+%26"]]],
            ])
        #expect(
            answer.element?["v"] == [
                "t": ["o": "d", "v": "=3\t+#/:%25%C3%BC"], "o": ["o": "O", "v": ["t": ["o": "d", "v": "=1\t+&"]]],
            ])
        #expect(try shard.stored("k") == ["t": "abc#/:%\u{FC}", "o": ["t": "x&"]])
    }

    @Test("an element is one line of JSON with numbers for versions, and its cv decodes to its position")
    func elementShape() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": "line\nline\r\u{2028}"])
        try shard.send("k", sv: 1, v: ["n": ["o": "+", "v": "a\nb"]])
        guard case .applied(let applied)? = shard.lastOutcome.buckets.first?.events.first else {
            Issue.record("not applied")
            return
        }
        #expect(applied.element.allSatisfy { $0 >= 0x20 })
        let element = try JSONValue(parsing: applied.element)
        #expect(element["sv"] == 1 && element["ev"] == 2)
        let codec = ChangeVersionCodec(shard.store.identity)
        let cv: String = try #require(element["cv"]?.stringValue)
        #expect(codec.decode(cv, tag: codec.tag(of: shard.bucket)) == applied.gid)
        let row: ChangeRecord = try #require(try shard.log().last)
        #expect(ChangeElement.encode(row, codec, tag: codec.tag(of: shard.bucket)) == applied.element)
    }
}
