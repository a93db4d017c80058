import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketSealed

/// The work that devices of a sealed bucket do for each other, by a clock that the test steps.
@Suite("Maintenance of sealed buckets: heads and snapshots", .nonceWatch)
struct SealedUpkeepTests {
    private static let hour = SealedHeads.intervalSeconds * 1_000
    /// Longer than any device delays a compaction.
    private static let waitMax: Int64 = 32_000

    private func type(_ world: inout Simulation, _ index: Int, _ key: String) throws {
        try world.insertSomething(index, key)
        world.expectSettled(only: index)
    }

    private func pass(_ milliseconds: Int64, _ world: inout Simulation) {
        world.now += milliseconds
        world.expectSettled()
    }

    private func key(_ name: String, _ world: Simulation) throws -> String {
        try world.serverKey(name)
    }

    /// Operations in `heads`, and the objects it names; nil: it does not exist.
    private func heads(_ world: Simulation) throws -> (operations: Int, names: Set<String>)? {
        let key = try key(SealedHeads.appKey, world)
        guard let object = world.server.buckets["notes"]?.entities[key]?.object else { return nil }
        let keys: SealedBucketKeys = try #require(world.keys)
        let opened = try SealedObject.open(
            try SealedEntity(object), author: AuthorID(rawValue: 0), place: keys.place(serverKey: key),
            with: try keys.sealer(serverKey: key)
        ).object
        return (opened.log.position, Set(opened.log.object?.pairs.map(\.key) ?? []))
    }

    // MARK: - Heads

    @Test("a device writes changes to 'heads' at most once an hour, and nothing without changes")
    func hourly() throws {
        var world: Simulation = try .sealed(1, seed: 1)
        try type(&world, 0, "doc0")
        pass(Self.hour / 4 - 10_000, &world)
        #expect(try heads(world) == nil, "at no moment that all devices share")
        for minute in 0..<240 {
            try type(&world, 0, minute % 2 == 0 ? "doc0" : "doc1")
            pass(60_000, &world)
        }
        let written = try #require(try heads(world))
        #expect((3...4).contains(written.operations), "the first is the creation, then one an hour")
        #expect(written.names == [try key("doc0", world), try key("doc1", world)])
        for _ in 0..<2 { pass(Self.hour, &world) }
        let last = try #require(try heads(world)).operations
        for _ in 0..<6 { pass(Self.hour, &world) }
        #expect(try heads(world)?.operations == last, "silence is not written down")
        #expect(world.alarms.isEmpty && world.problems.isEmpty)
        #expect(try world.clients[0].machine.keys(world.bucket, after: nil, limit: 9).map(\.text) == ["doc0", "doc1"])
    }

    @Test(
        "a hidden object of another device is reported by its server key, and a deleted one is not"
    )
    func hidden() throws {
        var world: Simulation = try .sealed(2, seed: 1)
        try type(&world, 1, "doc0")
        pass(Self.hour, &world)
        pass(Self.hour, &world)
        #expect(try heads(world) != nil)
        world.cut(0)
        try type(&world, 1, "hidden")
        try type(&world, 1, "deleted")
        // The first hour ends the connection, which was silent for that long; in the second one it is reported.
        for _ in 0..<2 {
            world.now += Self.hour
            world.expectSettled(only: 1)
        }
        let (bucket, name) = (world.bucket, try EntityKey("deleted"))
        let now = world.now
        world.perform(1, try world.clients[1].machine.remove(bucket, name, now: now))
        world.expectSettled(only: 1)
        let hidden = try key("hidden", world)
        #expect(try heads(world)?.names.contains(hidden) == true)
        world.server.buckets["notes"]?.entities[hidden] = nil
        world.forgetPositions()
        world.expectSettled()
        let reported: [IntegrityReport] = world.alarms.filter { $0.kind == .removed && $0.key == hidden }
        #expect(reported.count == 1, "\(world.alarms)")
        let deleted = try key("deleted", world)
        #expect(!world.alarms.contains { $0.key == deleted || $0.key == "deleted" }, "\(world.alarms)")
    }

    @Test(
        "a roll-back of acknowledged operations is reported by 'heads' alone, and never again after a choice",
        arguments: [false, true])
    func rolledBack(choosesAlone: Bool) throws {
        var world: Simulation = try .sealed(2, seed: 1)
        for _ in 0..<4 { try type(&world, 0, "doc0") }
        world.expectSettled()
        let doc = try key("doc0", world)
        let before = world.server.buckets["notes"]?.entities[doc]?.object
        world.cut(1)
        try type(&world, 0, "doc0")
        try type(&world, 0, "doc0")
        world.server.buckets["notes"]?.entities[doc]?.object = before
        world.server.forgetLog("notes")
        world.expectSettled()
        #expect(world.alarms.isEmpty, "no device can know yet")
        // Both may write at once, and then the one that was further writes again.
        for _ in 0..<3 { pass(Self.hour, &world) }
        let (bucket, name) = (world.bucket, try EntityKey("doc0"))
        let problem: String? = try world.clients[1].machine.problem(bucket, name)
        #expect(problem == SealedIntegrity.rolledBack(to: 3).description, "\(world.alarms)")
        if choosesAlone { world.cut(1) }
        let now = world.now
        let (isDone, actions) = try world.clients[1].machine.takeServers(bucket, name, now: now)
        #expect(isDone)
        world.perform(1, actions)
        world.expectSettled()
        for _ in 0..<3 {
            try world.crash(1)
            world.perform(1, world.clients[1].machine.goOnline(now: world.now))
            pass(Self.hour, &world)
        }
        let left: String? = try world.clients[1].machine.problem(bucket, name)
        #expect(left == nil, "a choice is not reported again")
        // The device that has what was given up gets a report by the same object, once, and has lost nothing.
        #expect(world.alarms.map(\.kind) == [.rolledBack, .forked], "\(world.alarms)")
        var first = try world.clients[0].machine.object(bucket, name)
        #expect(first?["t"]?.stringValue?.count == 6)
        let later = world.now
        let (isTaken, last) = try world.clients[0].machine.takeServers(bucket, name, now: later)
        #expect(isTaken)
        world.perform(0, last)
        for _ in 0..<3 { pass(Self.hour, &world) }
        try type(&world, 1, "doc0")
        for _ in 0..<3 { pass(Self.hour, &world) }
        first = try world.clients[0].machine.object(bucket, name)
        let second = try world.clients[1].machine.object(bucket, name)
        #expect(first == second && first?["t"]?.stringValue?.count == 5 && world.alarms.count == 2)
    }

    @Test(
        "an early choice of the server's state does not give up newer operations: no other history is reported"
    )
    func takenEarly() throws {
        var world: Simulation = try .sealed(2, seed: 1)
        let headsKey = try key(SealedHeads.appKey, world)
        // The index has `heads` on an earlier page.
        let doc = try #require(try (0..<30).map { "doc\($0)" }.first { try key($0, world) > headsKey })
        let (bucket, name): (BucketName, EntityKey) = (world.bucket, try EntityKey(doc))
        try type(&world, 0, doc)
        world.expectSettled()
        // Deleted while the other device could not learn the reason; it takes the object for hidden.
        world.cut(1)
        try world.remove(0, name)
        world.expectSettled(only: 0)
        world.forgetPositions()
        world.expectSettled()
        #expect(world.alarms.map(\.kind) == [.removed])
        for _ in 0..<3 { try type(&world, 0, doc) }
        world.expectSettled()
        world.cut(1)
        for _ in 0..<3 { try type(&world, 0, doc) }
        for _ in 0..<2 {
            world.now += Self.hour
            world.expectSettled(only: 0)
        }
        #expect(try heads(world)?.names.contains(try key(doc, world)) == true)
        world.forgetPositions()
        world.server.pageObjects = 1
        let place = EntityAddress(bucket: bucket, key: try EntityKey(headsKey))
        for _ in 0..<1_000 where world.clients[1].store.entity(place)?.ghost.object == nil {
            _ = world.settle(rounds: 1, only: 1)
        }
        #expect(world.clients[1].store.entity(place)?.ghost.object != nil)
        let now = world.now
        let (isDone, actions) = try world.clients[1].machine.takeServers(bucket, name, now: now)
        #expect(isDone)
        let early: JSONObject? = try world.clients[1].machine.object(bucket, name)
        #expect(early?["t"]?.stringValue?.count == 3, "the newest state that had arrived")
        world.perform(1, actions)
        for _ in 0..<3 { pass(Self.hour, &world) }
        #expect(world.alarms.map(\.kind) == [.removed], "\(world.alarms)")
        for index in 0..<2 {
            let shown = try world.clients[index].machine.object(bucket, name)
            #expect(shown?["t"]?.stringValue?.count == 6, "device \(index)")
            let problem = try world.clients[index].machine.problem(bucket, name)
            #expect(problem == nil, "device \(index)")
        }
    }

    @Test("an app cannot set an object 'heads' in a sealed bucket")
    func reserved() throws {
        var world: Simulation = try .sealed(1, seed: 1)
        let name = try EntityKey(SealedHeads.appKey)
        var code: ClientError.Code?
        do throws(ClientError) {
            _ = try world.clients[0].machine.set(world.bucket, name, to: ["t": "mine"], now: world.now)
        } catch { code = error.code }
        #expect(code == .invalidName)
    }

    // MARK: - Compaction

    @Test("a tail that is not compacted is compacted by one of three devices, once, after a random wait")
    func compaction() throws {
        var waits = Set<Int64>()
        for seed: UInt64 in 1...6 {
            var world: Simulation = try .sealed(3, seed: seed)
            world.server.refusesCompactions = true
            for _ in 0...SealedLimits.tailCompactedBeyond + 1 { try type(&world, 0, "doc0") }
            world.server.refusesCompactions = false
            let tried = world.server.compactions
            world.expectSettled()
            let begun = world.now
            let doc = try key("doc0", world)
            while world.now < begun + Self.waitMax, world.server.compactions == tried { pass(250, &world) }
            waits.insert((world.now - begun) / 1_000)
            for _ in 0..<3 { pass(Self.waitMax, &world) }
            let entity = world.server.buckets["notes"]?.entities[doc]?.object
            #expect(try SealedEntity(try #require(entity)).tail.isEmpty, "seed \(seed)")
            #expect(world.server.compactions == tried + 1, "seed \(seed): one device, once")
            try type(&world, 1, "doc0")
            world.expectSettled()
            var shown = [JSONObject?]()
            for index in 0..<3 {
                shown.append(try world.clients[index].machine.object(world.bucket, try EntityKey("doc0")))
            }
            #expect(shown[0] == shown[1] && shown[1] == shown[2] && world.alarms.isEmpty)
        }
        #expect(waits.count > 3, "the wait is random: \(waits)")
    }

    // MARK: - Names

    @Test("an object under another name than its own is reported and not shown; the others are shown")
    func names() throws {
        var world: Simulation = try .sealed(1, seed: 1)
        let keys: SealedBucketKeys = try #require(world.keys)
        try type(&world, 0, "doc0")
        for (number, name) in ["no key!", "doc7"].enumerated() {
            try world.putMisnamed(name, under: keys.serverKey(of: number == 0 ? name : "another"), nonce: UInt8(number))
        }
        world.forgetPositions()
        world.cut(0)
        world.expectSettled()
        #expect(world.alarms.map(\.kind) == [.snapshotMismatch, .snapshotMismatch])
        #expect(try world.clients[0].machine.keys(world.bucket, after: nil, limit: 9).map(\.text) == ["doc0"])
        let other = try world.clients[0].machine.object(world.bucket, try EntityKey("doc7"))
        #expect(other == nil)
    }

    // MARK: - Mode

    @Test(
        "a client with the bucket as an open one neither writes into a sealed object nor removes it")
    func openClient() throws {
        var world = try Simulation(clients: 1, seed: 3)
        world.goOnline(0)
        try world.set(0, try EntityKey("doc1"), to: ["n": 1])
        world.expectSettled()
        let sealed: JSONObject = ["z": 1, "s": ["0": "AQ"], "d": []]
        world.server.buckets["notes"]?.entities["doc0"] = ModelServer.Entity(version: 1, object: sealed)
        world.forgetPositions()
        world.cut(0)
        world.expectSettled()
        let (bucket, key, now) = (world.bucket, try EntityKey("doc0"), world.now)
        #expect(try world.object(0, key) == sealed)
        let diff = ObjectDiff([(key: "n", operation: .insert(1))])
        let calls: [(inout SyncMachine) throws -> Void] = [
            { _ = try $0.set(bucket, key, to: ["n": 1], now: now) },
            { _ = try $0.edit(bucket, key, by: diff, now: now) },
            { _ = try $0.remove(bucket, key, now: now) },
        ]
        for call in calls {
            let refused: ClientError? = #expect(throws: ClientError.self) { try call(&world.clients[0].machine) }
            #expect(refused?.code == .sealed)
        }
        world.expectSettled()
        #expect(world.server.buckets["notes"]?.entities["doc0"]?.object == sealed)
    }

    @Test("a server's claim that a sealed bucket is open is reported once, and everything stays sealed")
    func mode() throws {
        var world: Simulation = try .sealed(1, seed: 1)
        try type(&world, 0, "doc0")
        for mode in ["sealed", "open", "open"] {
            world.clients[0].down.append(Array(#"0:o:{"mode":"\#(mode)"}"#.utf8))
            world.expectSettled()
        }
        #expect(world.alarms.map(\.kind) == [.modeChanged])
        try type(&world, 0, "doc0")
        for (_, entity) in world.server.buckets["notes"]?.entities ?? [:] {
            #expect(SealedEntity.looksSealed(try #require(entity.object)))
        }
        for mode in ["sealed", "open"] {
            world.clients[0].down.append(Array(#"0:o:{"mode":"\#(mode)"}"#.utf8))
            world.expectSettled()
        }
        #expect(world.alarms.count == 2, "reported again after it was sealed in between")
    }
}
