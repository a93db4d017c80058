import Testing
import ThicketProtocol

@testable import ThicketServer

/// The table of the wire contract, 6.3, row by row; each row with the history in memory and in the store.
@Suite("Deciding a change")
struct DecisionTableTests {
    // MARK: 400 and 401

    @Test("400: a key, ccid, operation or shape that is not valid")
    func invalid() throws {
        let shard = try TestShard()
        let edit: JSONValue = ["a": ["o": "+", "v": 1]]
        #expect(try shard.send("", v: edit) == .error(400))
        #expect(try shard.send("a/b", v: edit) == .error(400))
        #expect(try shard.send(String(repeating: "k", count: 257), v: edit) == .error(400))
        #expect(try shard.send("k", v: edit, ccid: "") == .error(400))
        #expect(try shard.send("k", v: edit, ccid: "two words") == .error(400))
        #expect(try shard.send("k", .other("X"), v: edit) == .error(400))
        #expect(try shard.send("k") == .error(400))
        #expect(try shard.send("k", d: [1]) == .error(400))
        #expect(try shard.send("k", sv: -1, v: edit) == .error(400))
        #expect(try shard.send("k", .empty) == .error(400))
        let sound: SubmittedChange = try shard.submission("k", v: edit)
        var request: ChangeRequest = sound.request
        request.problems = ["sv is not a number"]
        let broken = SubmittedChange(
            origin: sound.origin, bucket: sound.bucket, clientID: sound.clientID, library: sound.library,
            canWrite: true, request: request, now: sound.now)
        #expect(try shard.group([broken]) == [.error(400)])
        #expect(try shard.log().isEmpty)
    }

    @Test("401: a read-only token changes nothing, and DROP is for administrators")
    func unauthorized() throws {
        let shard = try TestShard()
        #expect(try shard.send("k", v: ["a": ["o": "+", "v": 1]], canWrite: false) == .error(401))
        #expect(try shard.send("k", .remove, canWrite: false) == .error(401))
        #expect(try shard.send("notes", .empty, canWrite: false) == .error(401))
        #expect(try shard.send("notes", .drop) == .error(401))
        #expect(try shard.log().isEmpty)
    }

    // MARK: 409

    @Test("409: a ccid applied in this bucket is applied once, whatever the key and sv", arguments: Memory.allCases)
    func duplicate(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        let edit: JSONValue = ["a": ["o": "+", "v": 1]]
        #expect(try shard.send("k", v: edit, ccid: "once").version == 1)
        #expect(try shard.send("k", v: edit, ccid: "once") == .error(409))
        #expect(try shard.send("other", sv: 7, v: edit, ccid: "once") == .error(409))
        #expect(try shard.send("k", .remove, ccid: "once") == .error(409))
        try shard.restart()
        #expect(try shard.send("k", v: edit, ccid: "once") == .error(409))
        #expect(try shard.log().count == 1)
    }

    @Test("409: a ccid is applied once within one group, too")
    func duplicateInGroup() throws {
        let shard = try TestShard()
        let edit: JSONValue = ["a": ["o": "+", "v": 1]]
        let answers: [Answer] = try shard.group([
            shard.submission("k", v: edit, ccid: "once"), shard.submission("l", v: edit, ccid: "once"),
        ])
        #expect(answers[0].version == 1)
        #expect(answers[1] == .error(409))
    }

    @Test("a refused ccid stays usable, and another bucket may use the same ccid", arguments: Memory.allCases)
    func refusedIsNotUsed(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        #expect(try shard.send("k", sv: 3, v: ["a": ["o": "r", "v": 1]], ccid: "again") == .error(404))
        #expect(try shard.send("k", d: ["a": 1], ccid: "again").version == 1)
        let other = try BucketID(app: shard.bucket.app, user: shard.bucket.user, name: BucketName("tags"))
        let answers: [Answer] = try shard.group([try shard.submission("k", d: ["a": 1], ccid: "again", bucket: other)])
        #expect(answers.first?.version == 1)
    }

    // MARK: Creation

    @Test("M of an unknown key without sv creates version 1, without sv in the broadcast", arguments: Memory.allCases)
    func create(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        let answer: Answer = try shard.send("k", v: ["a": ["o": "+", "v": 1]], ccid: "c1", client: "ann's \"phone\"")
        #expect(
            answer.element == [
                "clientid": "ann's \"phone\"", "id": "k", "o": "M", "v": ["a": ["o": "+", "v": 1]], "ev": 1,
                "ccids": ["c1"],
            ])
        #expect(try shard.stored("k") == ["a": 1])
        #expect(try shard.send("empty", v: [:]).version == 1)
        #expect(try shard.stored("empty") == [:])
        #expect(try shard.send("zero", sv: 0, v: ["a": ["o": "+", "v": 1]]).version == 1)
    }

    @Test("404: M of an unknown or deleted object with sv and without d", arguments: Memory.allCases)
    func notFound(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        let edit: JSONValue = ["a": ["o": "r", "v": 1]]
        #expect(try shard.send("k", sv: 1, v: edit) == .error(404))
        try shard.make("k", ["a": 0])
        try shard.send("k", .remove)
        for source: Version in 1...3 { #expect(try shard.send("k", sv: source, v: edit) == .error(404)) }
    }

    @Test("versions continue after a removal, and sv stays absent", arguments: Memory.allCases)
    func recreate(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 0])
        #expect(try shard.send("k", .remove).version == 2)
        let answer: Answer = try shard.send("k", v: ["b": ["o": "+", "v": 1]])
        #expect(answer.version == 3)
        #expect(answer.element?["sv"] == nil)
        #expect(try shard.stored("k") == ["b": 1])
        try shard.send("k", .remove)
        let whole: Answer = try shard.send("k", sv: 4, d: ["c": 1])
        #expect(whole.version == 5)
        #expect(whole.element?["sv"] == nil)
        #expect(whole.element?["v"] == ["c": ["o": "+", "v": 1]])
    }

    @Test("M without sv of an object that exists is merged into it", arguments: Memory.allCases)
    func mergeCreations(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["title": "one", "same": true, "mine": 1])
        let answer: Answer = try shard.send(
            "k",
            v: [
                "title": ["o": "+", "v": "two"], "same": ["o": "+", "v": true], "yours": ["o": "+", "v": 2],
            ])
        #expect(answer.version == 2)
        #expect(answer.element?["sv"]?.intValue == 1)
        #expect(try shard.stored("k") == ["title": "two", "same": true, "mine": 1, "yours": 2])
        #expect(try shard.send("k", v: ["mine": ["o": "+", "v": 1]]) == .error(412))
        #expect(try shard.send("k", v: ["title": ["o": "d", "v": "=3\t+!"]]) == .error(440))
    }

    // MARK: Edits

    @Test("M with the current sv is applied as sent", arguments: Memory.allCases)
    func apply(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["a": 1, "t": "abc", "n": 4])
        let edit: JSONValue = [
            "a": ["o": "r", "v": [1, 2]], "t": ["o": "d", "v": "=3\t+d"], "n": ["o": "I", "v": 2],
            "o": ["o": "+", "v": ["x": 1]],
        ]
        let answer: Answer = try shard.send("k", sv: 1, v: edit)
        #expect(answer.element?["v"] == edit)
        #expect(answer.element?["sv"]?.intValue == 1)
        #expect(answer.version == 2)
        #expect(try shard.stored("k") == ["a": [1, 2], "t": "abcd", "n": 6, "o": ["x": 1]])
    }

    @Test(
        "M with an older sv is rebased over every later change and answered with its effect on the newest version",
        arguments: Memory.allCases)
    func rebase(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["t": "abc", "n": 1])
        try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "+1\t=3"]])
        try shard.send("k", sv: 2, v: ["t": ["o": "d", "v": "+2\t=4"], "n": ["o": "I", "v": 5]])
        let answer: Answer = try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=3\t+z"], "n": ["o": "I", "v": 3]])
        #expect(answer.element?["sv"]?.intValue == 3)
        #expect(answer.version == 4)
        #expect(answer.element?["v"] == ["t": ["o": "d", "v": "=5\t+z"], "n": ["o": "I", "v": 3]])
        #expect(try shard.stored("k") == ["t": "21abcz", "n": 9])
    }

    @Test("a change is rebased by the rule of its author's library")
    func rules() throws {
        let shard = try TestShard()
        for (library, key) in [(AuthorLibrary.thicket, "exact"), (.other, "reference"), (.nodeSimperium, "node")] {
            try shard.make(key, ["t": "abc"])
            try shard.send(key, sv: 1, v: ["t": ["o": "d", "v": "=3\t+1"]])
            let answer: Answer = try shard.send(key, sv: 1, v: ["t": ["o": "d", "v": "=3\t+2"]], library: library)
            #expect(answer.version == 3)
            if library == .thicket { #expect(try shard.stored(key) == ["t": "abc12"]) }
            #expect(try shard.stored(key)?["t"]?.stringValue?.count == 5)
        }
    }

    @Test("an edit made before a removal and a re-creation keeps the text it typed", arguments: Memory.allCases)
    func rebaseOverRecreation(_ memory: Memory) throws {
        let shard = try TestShard(memory)
        try shard.make("k", ["t": "abc"])
        try shard.send("k", .remove)
        try shard.make("k", ["u": 1])
        let answer: Answer = try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=3\t+d"]])
        #expect(answer.version == 4)
        #expect(try shard.stored("k") == ["u": 1, "t": "abcd"])
    }

    @Test("405: sv above the newest, or further back than what is kept", arguments: Memory.allCases)
    func badVersion(_ memory: Memory) throws {
        let shard = try TestShard(memory) {
            $0.rebaseChangesMax = 3
            $0.recentChangesMax = 3
        }
        try shard.make("k", ["n": 0])
        for version: Version in 1...4 { try shard.send("k", sv: version, v: ["n": ["o": "I", "v": 1]]) }
        #expect(try shard.send("k", sv: 6, v: ["n": ["o": "I", "v": 1]]) == .error(405))
        #expect(try shard.send("k", sv: 1, v: ["n": ["o": "I", "v": 1]]) == .error(405))
        #expect(try shard.send("k", sv: 2, v: ["n": ["o": "I", "v": 1]]).version == 6)
    }

    @Test("440: a delta that does not fit, an operation on a wrong type, a bad operation, a v that is not an object")
    func invalidDiff() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": "abc", "n": 1])
        let bad: [JSONValue] = [
            ["t": ["o": "d", "v": "=4\t+x"]], ["n": ["o": "d", "v": "=1"]], ["t": ["o": "I", "v": 1]],
            ["missing": ["o": "d", "v": "+x"]], ["t": ["o": "?", "v": 1]], ["t": ["o": "r"]], ["t": 5], 7, "v",
            ["t": ["o": "d", "v": "=1\t-%zz"]],
        ]
        for diff in bad { #expect(try shard.send("k", sv: 1, v: diff) == .error(440), "\(diff)") }
        #expect(try shard.stored("k") == ["t": "abc", "n": 1])
    }

    @Test("412: nothing changes; numbers compare by their decimal value")
    func nothingChanges() throws {
        let shard = try TestShard()
        try shard.make("k", ["n": 1, "t": "abc"])
        let one: JSONNumber = try #require(JSONNumber(lexeme: "1.0"))
        #expect(try shard.send("k", sv: 1, v: [:]) == .error(412))
        #expect(try shard.send("k", sv: 1, v: ["n": ["o": "r", "v": .number(one)]]) == .error(412))
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=3"]]) == .error(412))
        #expect(try shard.send("k", sv: 1, d: ["t": "abc", "n": .number(one)]) == .error(412))
        #expect(try shard.send("k", sv: 1, v: ["n": ["o": "r", "v": 2]]).version == 2)
        #expect(try shard.send("k", sv: 1, v: ["n": ["o": "r", "v": 2]]) == .error(412))
    }

    @Test("a change between é as one and as two code points is applied")
    func canonicalEquivalence() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": "\u{E9}"])
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "r", "v": "e\u{301}"]]).version == 2)
        #expect(
            try shard.send("k", sv: 2, v: ["e\u{301}": ["o": "+", "v": 1], "\u{E9}": ["o": "+", "v": 2]]).version == 3)
    }

    @Test("413: above the limit; an object at the limit fits, and one that is already too large may shrink")
    func tooLarge() throws {
        let shard = try TestShard { $0.documentBytesMax = 30 }
        // {"t":"…"} is 8 bytes and the text.
        #expect(try shard.make("k", ["t": .string(String(repeating: "x", count: 22))]).version == 1)
        #expect(try shard.make("l", ["t": .string(String(repeating: "x", count: 23))]) == .error(413))
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "=22\t+y"]]) == .error(413))
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "-1\t=21\t+\u{FC}"]]) == .error(413))
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "d", "v": "-1\t=21\t+y"]]).version == 2)
        let lowered = try TestShard(.cold, store: shard.store) { $0.documentBytesMax = 20 }
        #expect(try lowered.send("k", sv: 2, v: ["t": ["o": "d", "v": "=22\t+y"]], ccid: "more") == .error(413))
        #expect(try lowered.send("k", sv: 2, v: ["t": ["o": "d", "v": "-1\t=21"]], ccid: "less").version == 3)
    }

    @Test("413: d above the limit, before it is compared; d at the limit fits, a too large object may shrink")
    func tooLargeWhole() throws {
        let shard = try TestShard { $0.documentBytesMax = 30 }
        func whole(_ count: Int) -> JSONValue { ["t": .string(String(repeating: "x", count: count))] }
        #expect(try shard.send("k", d: whole(23)) == .error(413))
        #expect(try shard.send("k", d: whole(22)).version == 1)
        #expect(try shard.send("k", sv: 1, d: whole(23)) == .error(413))
        let lowered = try TestShard(.cold, store: shard.store) { $0.documentBytesMax = 20 }
        #expect(try lowered.send("k", sv: 1, d: whole(23), ccid: "more") == .error(413))
        #expect(try lowered.send("k", sv: 1, d: whole(21), ccid: "less").version == 2)
    }

    @Test("413: an object nested deeper than a diff of it could be sent")
    func tooDeep() throws {
        let shard = try TestShard()
        func nested(_ depth: Int) -> JSONValue { (1..<depth).reduce([:]) { value, _ in ["a": value] } }
        #expect(try shard.send("k", d: nested(121)) == .error(413))
        #expect(try shard.send("k", d: nested(120)).version == 1)
        #expect(try shard.send("k", sv: 1, v: ["a": ["o": "r", "v": nested(120)]]) == .error(413))
    }
}
