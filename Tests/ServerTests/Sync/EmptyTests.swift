import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("EMPTY")
struct EmptyTests {
    /// Commits until nothing is left to do.
    func finish(_ shard: TestShard) throws -> [Answer] {
        var answers: [Answer] = []
        while shard.core.hasBacklog { answers.append(contentsOf: try shard.group([])) }
        return answers
    }

    @Test("every object is removed by its own change, and the last carries the request's ccid")
    func all() throws {
        let shard = try TestShard()
        for key in ["a", "b", "c"] { try shard.make(key, ["n": 1]) }
        try shard.send("b", .remove)
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        let answers: [Answer] = try finish(shard)
        #expect(answers.compactMap { $0.element?["id"]?.stringValue } == ["a", "c"])
        #expect(answers.allSatisfy { $0.element?["o"] == "-" && $0.version == 2 })
        #expect(answers.last?.element?["ccids"] == ["sweep"])
        #expect(answers.first?.element?["ccids"] != ["sweep"])
        for key in ["a", "b", "c"] { #expect(try shard.stored(key) == nil) }
        #expect(try shard.send("notes", .empty, ccid: "sweep") == .error(409))
        #expect(try shard.make("a", ["n": 2]).version == 3)
    }

    @Test("a bucket without objects answers 412")
    func nothing() throws {
        let shard = try TestShard()
        #expect(try shard.send("notes", .empty) == .error(412))
        try shard.make("a", [:])
        try shard.send("a", .remove)
        #expect(try shard.group([shard.submission("notes", .empty)]).isEmpty)
        #expect(try finish(shard) == [.error(412)])
    }

    @Test("a large bucket is cleared over several groups, with other changes in between")
    func batches() throws {
        let shard = try TestShard { $0.clearedObjectsPerGroup = 10 }
        for number in 100..<135 { try shard.make("k\(number)", ["n": 1]) }
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        var groups: [Int] = []
        while shard.core.hasBacklog {
            let answers: [Answer] = try shard.group([shard.submission("new\(groups.count)", d: ["n": 1])])
            groups.append(answers.count)
        }
        #expect(groups.allSatisfy { $0 <= 12 })
        #expect(groups.count >= 4)
        for number in 100..<135 { #expect(try shard.stored("k\(number)") == nil) }
        for number in groups.indices { #expect(try shard.stored("new\(number)") == ["n": 1]) }
        #expect(Set(try shard.log().map(\.changeID)).count == 70 + groups.count)
    }

    @Test("an object edited after the request stays: the edit is not lost")
    func editWins() throws {
        let shard = try TestShard { $0.clearedObjectsPerGroup = 2 }
        for key in ["a", "b", "c", "d"] { try shard.make(key, ["n": 1]) }
        try shard.group([
            shard.submission("notes", .empty, ccid: "sweep"),
            shard.submission("d", sv: 1, v: ["n": ["o": "r", "v": 2]]),
        ])
        let answers: [Answer] = try finish(shard)
        #expect(try shard.stored("d") == ["n": 2])
        #expect(answers.count == 3)
        #expect(answers.last?.element?["ccids"] == ["sweep"])
    }

    @Test("the same request sent again while it is in progress is answered with 503")
    func underWay() throws {
        let shard = try TestShard { $0.clearedObjectsPerGroup = 1 }
        for key in ["a", "b", "c"] { try shard.make(key, ["n": 1]) }
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        let answers: [Answer] = try shard.group([shard.submission("notes", .empty, ccid: "sweep")])
        #expect(answers.contains(.error(503)))
        #expect(try finish(shard).last?.element?["ccids"] == ["sweep"])
    }

    @Test("a failed group is answered with 503, and sending the request again finishes the work")
    func failure() throws {
        let faults = FaultSwitch()
        let shard = try TestShard(store: MemoryStore(faults: faults.plan)) { $0.clearedObjectsPerGroup = 2 }
        for key in ["a", "b", "c", "d", "e"] { try shard.make(key, ["n": 1]) }
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        #expect(try shard.group([]).count == 1)
        faults.set(.fail(StoreError(.io, "sector")))
        #expect(try shard.group([]) == [.error(503)])
        #expect(!shard.core.hasBacklog)
        faults.set(.none)
        #expect(try shard.stored("c") == ["n": 1])
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        #expect(try finish(shard).last?.element?["ccids"] == ["sweep"])
        for key in ["a", "b", "c", "d", "e"] { #expect(try shard.stored(key) == nil) }
    }

    @Test("a failure of the last group is answered with an error of at least 500")
    func lastGroupFails() throws {
        let faults = FaultSwitch()
        let shard = try TestShard(store: MemoryStore(faults: faults.plan))
        try shard.make("a", ["n": 1])
        #expect(try shard.group([shard.submission("notes", .empty, ccid: "sweep")]).isEmpty)
        faults.set(.fail(StoreError(.constraint, "a bad row")))
        #expect(try shard.group([]).map { $0.code.map { $0 >= 500 } } == [true])
        #expect(!shard.core.hasBacklog)
    }
}
