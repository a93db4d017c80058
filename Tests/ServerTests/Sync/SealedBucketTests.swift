import Testing
import ThicketCrypto
@testable import ThicketPlatform
import ThicketProtocol
import ThicketSealedShape
import ThicketTestSupport

@testable import ThicketServer

extension TestShard {
    /// Makes the shard's bucket a sealed one.
    @discardableResult
    func seal() -> BucketModeAnswer? { choose(.sealed) }

    /// Gives the shard's bucket a mode.
    @discardableResult
    func choose(_ mode: BucketMode) -> BucketModeAnswer? {
        _ = core.receive(.chooseMode(ModeRequest(mode, of: bucket, tenant: 0)))
        return core.commit().buckets.first?.mode
    }

    @discardableResult
    func create(_ key: String = SealedText.key(), _ number: Int = 0) throws -> Answer {
        try send(key, v: SealedText.creation(SealedText.snapshot(UInt8(number % 256))))
    }

    /// An operation whose id is its ccid.
    @discardableResult
    func insert(
        _ number: Int, sv: Version, key: String = SealedText.key(), clearBytes: Int = 64
    ) throws -> Answer {
        let changeID: String = SealedText.changeID(number)
        return try send(
            key, sv: sv, v: SealedText.insertion(SealedText.operation(changeID, clearBytes: clearBytes)),
            ccid: changeID)
    }

    @discardableResult
    func compact(
        _ position: Int, over known: [Int], removing: Range<Int>, sv: Version, clearBytes: Int = 64
    ) throws -> Answer {
        try send(
            SealedText.key(), sv: sv,
            v: SealedText.compaction(
                position, SealedText.snapshot(UInt8(position % 256), clearBytes: clearBytes), over: known,
                removing: removing))
    }

    /// The object as the store has it: its snapshots' positions, and the numbers of the tail's operations.
    func sealed(_ key: String = SealedText.key()) throws -> (snapshots: [Int], tail: [Int])? {
        guard let object: JSONObject = try stored(key)?.objectValue else { return nil }
        let entity: SealedEntity = try SealedShape.check(object: object)
        return (entity.snapshots.keys.sorted(), try entity.tail.map { try Self.number(of: $0) })
    }

    private static func number(of operation: String) throws -> Int {
        guard let sealed: [UInt8] = Base64.decodeURL(Array(operation.utf8)[...]),
            let header = SealedHeader(of: sealed), header.kind == .operation
        else { throw MissingOperation() }
        return header.id.reduce(0) { $0 << 8 | Int($1) }
    }

    private struct MissingOperation: Error {}
}

/// Mode `sealed`, decided by the shard: the server orders operations that it cannot read (sealed buckets, part 8).
@Suite("Sealed buckets in the shard")
struct SealedBucketTests {
    @Test(
        "a bucket becomes sealed once, before its first change, and stays so over restarts", arguments: Memory.allCases)
    func sealing(memory: Memory) throws {
        let shard = try TestShard(memory)
        #expect(shard.seal() == .mode(.sealed))
        #expect(shard.seal() == .mode(.sealed), "a second request changes nothing")
        try shard.restart()
        #expect(try shard.make("k", ["t": "clear"]) == .error(400))
        #expect(try shard.create().version == 1)
        #expect(try shard.store.makeReader().bucket(shard.bucket)?.mode == .sealed)
        let open = try TestShard(memory)
        try open.make("k", ["t": "clear"])
        #expect(open.seal() == .mode(.open), "a bucket with changes stays open")
        #expect(try open.send("k", .remove).version == 2)
        #expect(open.seal() == .mode(.open), "also when its objects are removed")
    }

    @Test("the mode that an operator set for a name holds for buckets created later", arguments: Memory.allCases)
    func byName(memory: Memory) throws {
        let shard = try TestShard(memory)
        guard let store: MemoryStore = shard.store as? MemoryStore else { return try Self.byNameOnDisk(shard) }
        store.setMode(.sealed, ofNew: shard.bucket.name, in: shard.bucket.app)
        #expect(try shard.make("k", ["t": "clear"]) == .error(400))
        #expect(try shard.create().version == 1)
        #expect(try shard.store.makeReader().bucket(shard.bucket)?.mode == .sealed)
    }

    private static func byNameOnDisk(_ shard: TestShard) throws {
        let store: SQLiteStore = try #require(shard.store as? SQLiteStore)
        let admin = try StoreAdmin(path: store.path)
        try admin.createApp(shard.bucket.app, now: 0)
        try admin.setMode(.sealed, of: shard.bucket.name, in: shard.bucket.app)
        #expect(try shard.make("k", ["t": "clear"]) == .error(400))
        #expect(try shard.create().version == 1)
        #expect(throws: StoreAdminError.bucketsInUse(shard.bucket.name, users: 1)) {
            try admin.setMode(.open, of: shard.bucket.name, in: shard.bucket.app)
        }
    }

    @Test("a mode that an operator changes during a group applies to that group")
    func changedMeanwhile() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let shard = try TestShard(store: store)
        let admin = try StoreAdmin(path: store.path)
        try admin.createApp(shard.bucket.app, now: 0)
        func group(_ change: SubmittedChange, _ mode: BucketMode) throws -> [Answer] {
            _ = shard.core.receive(.change(change))
            try admin.setMode(mode, of: shard.bucket.name, in: shard.bucket.app)
            return try shard.core.commit().buckets.flatMap(\.events).map(Answer.init)
        }
        // A bucket without a row, then one whose objects are all removed, both ways.
        #expect(try group(shard.submission("k", v: ["t": ["o": "+", "v": "clear"]]), .sealed) == [.error(400)])
        #expect(try shard.create().version == 1)
        #expect(try shard.send(SealedText.key(), .remove).version == 2)
        let creation: SubmittedChange = try shard.submission(
            SealedText.key(1), v: SealedText.creation(SealedText.snapshot()))
        #expect(try group(creation, .open).first?.version == 1, "an open bucket accepts sealed objects")
        #expect(try shard.send(SealedText.key(1), .remove).version == 2)
        let open: SubmittedChange = try shard.submission("k2", v: ["t": ["o": "+", "v": "clear"]])
        #expect(try group(open, .sealed) == [.error(400)])
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test(
        "insertions are ordered by their arrival, the newest first, whatever version their authors knew",
        arguments: Memory.allCases)
    func ordering(memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        try shard.create()
        #expect(try shard.insert(1, sv: 1).version == 2)
        #expect(try shard.insert(2, sv: 1).version == 3)
        #expect(try shard.insert(3, sv: 2).version == 4)
        let answer: Answer = try shard.insert(4, sv: 1)
        #expect(answer.version == 5 && answer.element?["sv"] == 4)
        #expect(answer.element?["v"] == SealedText.insertion(SealedText.operation(SealedText.changeID(4))))
        #expect(try shard.sealed()?.tail == [4, 3, 2, 1])
        #expect(try shard.insert(4, sv: 5) == .error(409), "a resend is known by its ccid")
        #expect(try shard.insert(5, sv: 9) == .error(405), "a version that does not exist yet")
        #expect(try shard.create() == .error(405), "never merged, never compared")
        #expect(try shard.insert(6, sv: 1, key: SealedText.key(1)) == .error(404))
    }

    @Test(
        "a late insertion needs no kept version; one from before a re-creation is 405",
        arguments: Memory.allCases)
    func late(memory: Memory) throws {
        let shard = try TestShard(memory) { settings in
            settings.rebaseChangesMax = 2
            settings.recentChangesMax = 1
        }
        shard.seal()
        try shard.create()
        for number: Int in 1...20 { #expect(try shard.insert(number, sv: 1).version == Version(number + 1)) }
        #expect(try shard.compact(3, over: [0], removing: 17..<20, sv: 3) == .error(405), "a compaction needs one")
        #expect(try shard.compact(3, over: [0], removing: 17..<20, sv: 21).version == 22)
        #expect(try shard.insert(30, sv: 1).version == 23)
        #expect(try shard.send(SealedText.key(), .remove, sv: 23).version == 24)
        #expect(try shard.insert(31, sv: 23) == .error(404))
        #expect(try shard.create().version == 25)
        for sv: Version in [1, 22, 23, 24] { #expect(try shard.insert(32, sv: sv) == .error(405), "\(sv)") }
        #expect(try shard.insert(33, sv: 25).version == 26)
        try shard.restart()
        #expect(try shard.insert(34, sv: 24) == .error(405))
        #expect(try shard.insert(34, sv: 25).version == 27)
        #expect(try shard.sealed()?.tail == [34, 33])
    }

    @Test(
        "a compaction replaces what it covers and nothing else, however far the tail grew", arguments: Memory.allCases
    )
    func compacting(memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        try shard.create()
        for number: Int in 1...8 { try shard.insert(number, sv: Version(number)) }
        // Made with six operations; two were added since.
        #expect(try shard.compact(4, over: [0], removing: 2..<6, sv: 7).version == 10)
        #expect(try #require(try shard.sealed()) == (snapshots: [4], tail: [8, 7, 6, 5]))
        let seen: JSONValue? = try shard.log().last.map { try JSONValue(parsing: $0.diff) }
        #expect(seen == SealedText.compaction(4, SealedText.snapshot(4), over: [0], removing: 4..<8))
    }

    @Test(
        "two concurrent compactions leave two snapshots if the later covers more, and lose no operation",
        arguments: Memory.allCases)
    func racing(memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        try shard.create()
        for number: Int in 1...8 { try shard.insert(number, sv: Version(number)) }
        #expect(try shard.compact(3, over: [0], removing: 5..<8, sv: 9).version == 10)
        #expect(try shard.compact(3, over: [0], removing: 5..<8, sv: 9) == .error(412), "done already")
        #expect(try shard.compact(6, over: [0], removing: 2..<8, sv: 9).version == 11)
        #expect(try #require(try shard.sealed()) == (snapshots: [3, 6], tail: [8, 7]))
        #expect(try shard.compact(5, over: [0], removing: 3..<8, sv: 9) == .error(412), "covered already")
        #expect(try shard.compact(7, over: [3, 6], removing: 1..<2, sv: 11).version == 12)
        #expect(try #require(try shard.sealed()) == (snapshots: [7], tail: [8]))
    }

    @Test(
        "a compaction that removes more or less than it covers, or something else, is refused",
        arguments: Memory.allCases)
    func wrongCompactions(memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        try shard.create()
        for number: Int in 1...8 { try shard.insert(number, sv: Version(number)) }
        let table: [(Int, [Int], Range<Int>, Version)] = [
            (4, [0], 5..<8, 9), (4, [0], 3..<8, 9), (4, [0], 0..<4, 9), (4, [0], 3..<7, 9), (4, [], 4..<8, 9),
            (4, [1], 5..<8, 9), (9, [0], 0..<8, 9), (9, [0], 0..<9, 9), (0, [0], 4..<8, 9),
            // At an older version: removals that would fit now, or did before.
            (4, [0], 4..<8, 7), (3, [0], 2..<5, 7), (7, [0], 0..<7, 7),
        ]
        for (position, known, removed, sv) in table {
            let answer: Answer = try shard.compact(position, over: known, removing: removed, sv: sv)
            #expect(answer == .error(400), "\(position) over \(known), \(removed) at \(sv)")
        }
        #expect(try #require(try shard.sealed()) == (snapshots: [0], tail: [8, 7, 6, 5, 4, 3, 2, 1]))
    }

    @Test(
        "any order of insertions and compactions leaves every operation in the tail or behind the largest snapshot",
        arguments: [UInt64](1...12))
    func anyOrder(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let shard = try TestShard(Memory.allCases[Int(seed) % 3])
        shard.seal()
        try shard.create()
        var (version, position): (Version, Int) = (1, 0)
        /// The object as devices have seen it, by version.
        var seen: [Version: SealedEntity] = [:]
        for _ in 0..<120 {
            seen[version] = try SealedEntity(try #require(try shard.stored(SealedText.key())?.objectValue))
            let known: Version = max(1, version - Version(random.next(upperBound: UInt64(6))))
            let view: SealedEntity = try #require(seen[known])
            let newest: Int = try #require(view.newest?.position)
            if view.position > newest, random.next(upperBound: UInt64(3)) == 0 {
                let target: Int = newest + 1 + Int(random.next(upperBound: UInt64(view.position - newest)))
                let count: Int = view.tail.count
                let older: [Int] = view.snapshots.keys.filter { $0 < target }.sorted()
                let answer: Answer = try shard.compact(
                    target, over: older, removing: (count - (target - newest))..<count, sv: known)
                let before: Int = try #require(seen[version]?.newest?.position)
                #expect((answer.code == 412) == (target <= before), "seed \(seed): \(answer)")
                if answer.code == nil { version += 1 }
            } else {
                position += 1
                #expect(try shard.insert(position, sv: known).version == version + 1)
                version += 1
            }
            let now: (snapshots: [Int], tail: [Int]) = try #require(try shard.sealed())
            let covered: Int = try #require(now.snapshots.last)
            #expect(now.tail == Array(((covered + 1)..<(position + 1)).reversed()), "seed \(seed)")
        }
    }

    @Test("a full tail is 413 until it is compacted; a long snapshot is 413 and does not hinder edits")
    func room() throws {
        let shard: TestShard = try .init { $0.documentBytesMax = 4_096 }
        shard.seal()
        try shard.create()
        for number: Int in 1...1_024 { #expect(try shard.insert(number, sv: 1).version != nil) }
        #expect(try shard.insert(1_025, sv: 1) == .error(413))
        #expect(try shard.compact(1_024, over: [0], removing: 0..<1_024, sv: 1_025, clearBytes: 4_096) == .error(413))
        #expect(
            try shard.compact(1_000, over: [0], removing: 24..<1_024, sv: 1_025, clearBytes: 2_048).version == 1_026)
        #expect(try shard.insert(1_025, sv: 1).version == 1_027)
        let long: Int = 64 * 4_096
        for number: Int in 2_000..<2_002 { #expect(try shard.insert(number, sv: 1, clearBytes: long).code == nil) }
        #expect(try shard.insert(2_002, sv: 1, clearBytes: long) == .error(413), "1 MiB as base64url")
        let large: String = SealedText.snapshot(clearBytes: 4_096)
        #expect(try shard.send(SealedText.key(1), v: SealedText.creation(large)) == .error(413))
    }

    @Test("removals and EMPTY work as in open buckets", arguments: Memory.allCases)
    func removals(memory: Memory) throws {
        let shard = try TestShard(memory)
        shard.seal()
        for number: Int in 0..<3 { try shard.create(SealedText.key(number)) }
        #expect(try shard.insert(1, sv: 1).version == 2)
        #expect(
            try shard.send(SealedText.key(), .remove, sv: 1) == .error(405), "an edit came after version 1")
        #expect(try shard.send(SealedText.key(), .remove, sv: 2).version == 3)
        #expect(try shard.group([shard.submission("notes", .empty)]) == [], "it begins with the next group")
        #expect(try shard.group([]).map(\.version) == [2, 2])
        #expect(try shard.stored(SealedText.key(1)) == nil && shard.stored(SealedText.key(2)) == nil)
    }

    @Test("a capacity does not apply to sealed buckets: a removal by the server looks like a theft")
    func capacity() throws {
        let shard = try TestShard(.disk)
        shard.seal()
        let options: BucketID = try #require(BucketOptions.bucket(of: shard.bucket.app))
        try shard.group([try shard.submission("notes", d: ["capacity": 1], bucket: options)])
        for number: Int in 0..<3 { #expect(try shard.create(SealedText.key(number)).version == 1) }
        #expect(try shard.stored(SealedText.key(0)) != nil)
    }
}
