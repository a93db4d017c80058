import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketSealed

/// Operations of rules that this program does not know. A newer program is played by what those operations say under the
/// rules that are known: it finds the store that the older one has left, and the same operations readable.
@Suite("Operations of newer rules", .nonceWatch)
struct NewerRulesTests {
    private static let doc: String = "doc0"
    private static let newer: AuthorID = AuthorID(rawValue: 77)

    /// Operations of another device behind what the server holds, the oldest first: the first under newer rules, or not.
    private func operations(_ world: Simulation, isNewer: Bool) throws -> [String] {
        let keys: SealedBucketKeys = try #require(world.keys)
        let key: String = keys.serverKey(of: Self.doc)
        let sealer: ObjectSealer = try keys.sealer(serverKey: key)
        var log: SealedLog = try SealedObject.open(
            try entity(world), author: Self.newer, place: keys.place(serverKey: key), with: sealer
        ).object.log
        var sealed: [String] = []
        for (number, name): (Int, String) in ["first", "second"].enumerated() {
            let diff: ObjectDiff = ObjectDiff([(key: name, operation: .insert(.string("newer")))])
            let operation: SealedOperation = SealedOperation(
                base: log.position, head: try #require(log.chain[log.position]), incarnation: log.incarnationTag,
                author: Self.newer, content: .edit(try Edit(.object(diff))))
            var clear: JSONObject = try #require(try JSONValue(parsing: operation.clearBytes()).objectValue)
            if number == 0, isNewer { clear["t"] = 2 }
            // Not sealed under the one nonce twice where the text differs.
            let nonce: [UInt8] = Array(repeating: UInt8(number + (isNewer ? 0 : 100)), count: 12)
            let bytes: [UInt8] = sealer.seal(
                JSONValue.object(clear).serialized(), kind: .operation, id: Array(repeating: UInt8(number), count: 16),
                position: 0, nonce: nonce)
            sealed.append(Base64.encodeURL(bytes))
            // What the newer device makes of it.
            _ = log.append(bytes, clear: operation.clearBytes())
        }
        return sealed
    }

    private func entity(_ world: Simulation) throws -> SealedEntity {
        let key: String = try #require(world.keys).serverKey(of: Self.doc)
        return try SealedEntity(try #require(world.server.buckets["notes"]?.entities[key]?.object))
    }

    private func show(_ operations: [String], behind known: SealedEntity, _ world: inout Simulation) throws {
        let key: String = try #require(world.keys).serverKey(of: Self.doc)
        var shown: SealedEntity = known
        shown.tail = operations.reversed() + known.tail
        world.server.buckets["notes"]?.entities[key]?.object = shown.object
        world.server.buckets["notes"]?.entities[key]?.version += Version(operations.count)
        world.server.forgetLog("notes")
        // Nobody's position is known: everybody reads it.
        world.server.buckets["notes"]?.epoch += 1
    }

    private func object(_ world: inout Simulation, _ index: Int) throws -> JSONObject? {
        try world.clients[index].machine.object(world.bucket, try EntityKey(Self.doc))
    }

    private func settle(_ world: inout Simulation) {
        let isQuiet: Bool = world.settle()
        #expect(isQuiet, "somebody never gets to the end \(isQuiet ? "" : world.picture)")
    }

    @Test("the object stops and is read-only, what waited is kept, and a newer program reads on and sends it")
    func stops() throws {
        var world: Simulation = try Simulation(clients: 1, seed: 3, isSealed: true)
        world.perform(0, world.clients[0].machine.goOnline(now: 0))
        try world.insertSomething(0, Self.doc)
        settle(&world)
        let known: SealedEntity = try entity(world)
        world.cut(0)
        // Made offline, before anything was known.
        try world.insertSomething(0, Self.doc)
        let mine: JSONObject? = try object(&world, 0)
        let (old, new): ([String], [String]) = (
            try operations(world, isNewer: true), try operations(world, isNewer: false)
        )
        try show(old, behind: known, &world)
        settle(&world)
        #expect(world.alarms.map(\.kind) == [.unknownRules] && world.alarms.first?.position == 0)
        var now: JSONObject? = try object(&world, 0)
        #expect(now == mine, "nothing of it is shown, and nothing is lost")
        #expect(try entity(world).tail == old.reversed() + known.tail, "nothing is sent behind what was not understood")
        do {
            try world.insertSomething(0, Self.doc)
            Issue.record("an edit was taken that nobody can carry")
        } catch let error as ClientError { #expect(error.code == .integrity && error.detail.contains("newer rules")) }
        now = try object(&world, 0)
        #expect(now == mine)

        // The same program once more: it stops at the same place.
        try world.crash(0)
        world.perform(0, world.clients[0].machine.goOnline(now: world.now))
        settle(&world)
        now = try object(&world, 0)
        #expect(now == mine && world.alarms.count == 2)

        // A newer one, without a word from the server: what it needs is in the store.
        let address: EntityAddress = EntityAddress(
            bucket: world.bucket, key: try EntityKey(try #require(world.keys).serverKey(of: Self.doc)))
        try show([], behind: SealedEntity(snapshots: known.snapshots, tail: new.reversed() + known.tail), &world)
        var record: EntityRecord = try #require(world.clients[0].store.entity(address))
        let held: Ghost = try #require(record.edits.held)
        record.edits.held = Ghost(version: held.version, object: try entity(world).object)
        try replace(record, address, &world)
        try world.crash(0)
        world.perform(0, world.clients[0].machine.goOnline(now: world.now))
        settle(&world)
        let end: JSONObject = try #require(try object(&world, 0))
        #expect(end["first"] == "newer" && end["second"] == "newer")
        #expect(end["t"] == mine?["t"], "what waited is on top of it")
        #expect(try entity(world).tail.count == known.tail.count + 3, "and was sent")
        #expect(world.alarms.count == 2)
        try world.insertSomething(0, Self.doc)
    }

    private func replace(_ record: EntityRecord, _ address: EntityAddress, _ world: inout Simulation) throws {
        var batch: LocalBatch = LocalBatch()
        batch.entities = [EntityWrite(address, record, [.ghost, .edits, .marks])]
        try world.clients[0].store.commit(batch)
    }
}
