import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// A device that has nothing of a sealed bucket reads all of it: without a reader of events many objects are opened at
/// once, else one by one.
@Suite("The first scan of a sealed bucket", .nonceWatch)
struct FirstScanTests {
    /// More objects than one thread opens at a time.
    private static let objects = 150

    /// A client has written the objects; one of them has more edits after its snapshot than a compaction needs.
    private func written(seed: UInt64) throws -> Simulation {
        var world = try Simulation(clients: 1, seed: seed, isSealed: true)
        world.mayForget = false
        let bucket = world.bucket
        for number in 0..<Self.objects {
            let (key, now) = (try EntityKey("key\(number)"), world.now)
            _ = try world.act(0) { (machine) throws(ClientError) in
                try machine.set(bucket, key, to: ["n": .number(JSONNumber(Int64(number)))], now: now)
            }
        }
        world.goOnline(0)
        try settle(&world)
        for _ in 0..<5 {
            try world.insertSomething(0, "key7")
            try settle(&world)
        }
        return world
    }

    private func settle(_ world: inout Simulation) throws {
        let isQuiet = world.settle()
        try #require(isQuiet, "a client never settles")
    }

    /// Two new devices read it, the second one with a reader of events.
    private func read(_ world: inout Simulation) throws -> (quiet: Simulation.Client, loud: Simulation.Client) {
        world.alarms = []
        for hasReader in [false, true] {
            let index = try world.addClient(hasReader: hasReader)
            world.goOnline(index)
            try settle(&world)
        }
        return (world.clients[1], world.clients[2])
    }

    private func serverKeys(_ world: Simulation) throws -> [EntityKey] {
        try (world.server.buckets["notes"]?.entities.keys.sorted() ?? []).map { try EntityKey($0) }
    }

    @Test("the first scan stores the same with and without a reader of events", arguments: [1, 2] as [UInt64])
    func same(seed: UInt64) throws {
        var world = try written(seed: seed)
        let (quiet, loud) = try read(&world)
        // An object that is opened in its page goes to the store as it came; opened one by one, it goes through memory.
        #expect(quiet.machine.cachedObjects < 10, "the quick way was not taken")
        #expect(loud.machine.cachedObjects > 100, "the test cannot tell the two ways apart")
        let keys = try serverKeys(world)
        #expect(keys.count == Self.objects)
        for key in keys {
            let address = EntityAddress(bucket: world.bucket, key: key)
            let kept = quiet.store.entity(address)
            #expect(kept?.name != nil && kept?.isLive == true)
            #expect(kept == loud.store.entity(address))
        }
        var machine = quiet.machine
        let truth = try world.truth()
        for (key, wanted) in truth {
            let object = try machine.object(world.bucket, try EntityKey(key))
            #expect(object == wanted.object)
        }
        #expect(world.alarms.isEmpty)
    }

    @Test("the first scan shows nothing of an object that does not open, and all the others")
    func damaged() throws {
        var world = try written(seed: 3)
        guard let sealing = world.keys else { return }
        let wrong = ["key3", "key70", "key149"]
        for name in wrong {
            let key = sealing.serverKey(of: name)
            var entity = try #require(world.server.buckets["notes"]?.entities[key])
            var sealed = try SealedEntity(try #require(entity.object))
            var bytes = SealedObject.bytes(of: sealed.snapshots[0] ?? "")
            bytes[bytes.count - 1] ^= 1
            sealed.snapshots[0] = Base64.encodeURL(bytes)
            if name == "key149" { entity.object = ["n": 149] } else { entity.object = sealed.object }
            world.server.buckets["notes"]?.entities[key] = entity
        }
        let (quiet, loud) = try read(&world)
        for client in [quiet, loud] {
            var machine = client.machine
            let shown = Set(
                try machine.keys(world.bucket, after: nil, limit: 1_000).map(\.text))
            #expect(shown.count == Self.objects - wrong.count)
            #expect(shown.isDisjoint(with: wrong))
            for name in wrong {
                let problem = try machine.problem(world.bucket, try EntityKey(name))
                #expect(problem != nil, "\(name) is not reported")
            }
        }
        #expect(world.alarms.count == 2 * wrong.count, "both report, with and without a reader")
    }

    @Test("the first scan shows no object under another name than its own, and reports it, reader or not")
    func misnamed() throws {
        var world = try written(seed: 4)
        guard let sealing = world.keys else { return }
        let names = ["key5", "no key!"]
        for (number, name) in names.enumerated() {
            let place = number == 0 ? "another" : name
            try world.putMisnamed(name, under: sealing.serverKey(of: place), nonce: UInt8(number))
        }
        let (quiet, loud) = try read(&world)
        for client in [quiet, loud] {
            var machine = client.machine
            let shown = try machine.keys(world.bucket, after: nil, limit: 1_000).map(\.text)
            #expect(shown.count == Self.objects && Set(shown).count == Self.objects)
            #expect(try machine.object(world.bucket, try EntityKey("key5")) == ["n": 5])
        }
        #expect(world.alarms.map(\.kind) == Array(repeating: .snapshotMismatch, count: 2 * names.count))
    }

    @Test(
        "the first scan keeps the first of two entries for one object",
        arguments: [[true, true], [true, false], [false, true]])
    func twice(areGood: [Bool]) throws {
        let keys = try Simulation.keys()
        let key = keys.serverKey(of: "a")
        let made = SealedObject(
            author: AuthorID(rawValue: 9),
            log: SealedLog(
                place: keys.place(serverKey: key), appKey: "a", incarnation: Array(repeating: 5, count: 16),
                object: ["t": "x"]))
        // The same object, sealed twice: other bytes.
        let texts = try areGood.enumerated().map { number, isGood in
            let snapshot = made.sealedSnapshot(
                id: Array(repeating: 1, count: 16), nonce: Array(repeating: UInt8(2 + number), count: 12),
                with: try keys.sealer(serverKey: key))
            return Base64.encodeURL(isGood ? snapshot : snapshot.dropLast() + [snapshot[snapshot.count - 1] ^ 1])
        }
        let list = texts.map { #"{"id":"\#(key)","v":1,"d":{"z":1,"s":{"0":"\#($0)"},"d":[]}}"# }
        let bucket = try BucketName("notes")
        let store = MemoryLocalStore(replaysSteps: true)
        var machine = try SyncMachine(
            options: SyncOptions(app: try AppID("app"), token: "token"), store: store, random: SeededRandom(seed: 1))
        machine.bucketsWithReaders = []
        _ = try machine.open(bucket, keys: keys, now: 1)
        _ = machine.goOnline(now: 1)
        _ = machine.opened(now: 1)
        for text in [
            "0:auth:user@example.com", #"0:i:{"current":"c1","index":[\#(list.joined(separator: ","))]}"#,
        ] { _ = machine.received(ServerBatch([Array(text.utf8)]), now: 1) }
        #expect(try machine.keys(bucket, after: nil, limit: 10).map(\.text) == (areGood[0] ? ["a"] : []))
        let problem = try machine.problem(bucket, try EntityKey("a"))
        #expect((problem == nil) == areGood[0], "\(problem ?? "no problem")")
        if areGood[0] {
            let record = store.entity(EntityAddress(bucket: bucket, key: try EntityKey(key)))
            #expect(record?.name == "a" && record?.ghost.version == 1 && record?.isLive == true)
            #expect(try record?.ghost.object.map { try SealedEntity($0).snapshots[0] } == texts[0], "the first stays")
        }
    }
}
