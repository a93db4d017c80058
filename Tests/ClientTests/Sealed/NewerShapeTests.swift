import Testing
import ThicketNonces
import ThicketProtocol
import ThicketSealed

@testable import ThicketClient

/// Objects of a shape that this program does not know. A newer program, or a server that shows the old shape again, is
/// simulated with what the server held before.
@Suite("Sealed objects of a newer shape", .nonceWatch)
struct NewerShapeTests {
    private static let doc = "doc0"

    /// Shapes that a newer program may have written, with unknown contents.
    private static let shapes: [JSONObject] = [
        ["z": 2], ["z": 2, "s": [:], "d": []], ["z": 7, "t": "clear"], ["z": 2, "s": ["0": "x"], "d": ["y"], "e": 1],
    ]

    /// A device with an object, and the object as the server has it.
    private func device() throws -> (world: Simulation, known: JSONObject) {
        var world: Simulation = try .sealed(1, seed: 5)
        try world.set(0, try EntityKey(Self.doc), to: ["t": "known"])
        world.expectSettled()
        return (world, try #require(try held(world)))
    }

    private func held(_ world: Simulation) throws -> JSONObject? {
        world.server.buckets["notes"]?.entities[try world.serverKey(Self.doc)]?.object
    }

    /// The server shows this object from now on; nil removes it.
    private func show(_ object: JSONObject?, _ world: inout Simulation) throws {
        let key = try world.serverKey(Self.doc)
        let version = world.server.buckets["notes"]?.entities[key]?.version ?? 0
        world.server.buckets["notes"]?.entities[key] = object.map {
            ModelServer.Entity(version: version + 1, object: $0)
        }
        world.forgetPositions()
        for index in world.clients.indices { world.cut(index) }
        world.expectSettled()
    }

    private func expectShown(
        _ object: JSONObject?, _ world: inout Simulation, _ index: Int = 0, _ line: SourceLocation = #_sourceLocation
    ) throws {
        let shown = try world.object(index, try EntityKey(Self.doc))
        #expect(shown == object, sourceLocation: line)
    }

    /// An edit that is made offline, and waits.
    private func wait(_ world: inout Simulation, _ object: JSONObject) throws {
        world.cut(0)
        world.perform(0, world.clients[0].machine.goOffline(now: world.now))
        try world.set(0, try EntityKey(Self.doc), to: object)
        world.goOnline(0)
    }

    private func expectRefused(_ world: inout Simulation, _ index: Int = 0) throws {
        do {
            try world.set(index, try EntityKey(Self.doc), to: ["t": "no"])
            Issue.record("an edit was taken that would go over what a newer program has written")
        } catch let error as ClientError { #expect(error.code == .integrity && error.detail.contains("newer shape")) }
    }

    /// No choice is requested, and a choice made anyway changes nothing.
    private func expectNoChoice(_ world: inout Simulation) throws {
        let (bucket, key, now) = (world.bucket, try EntityKey(Self.doc), world.now)
        let problems = try world.clients[0].machine.problems(bucket)
        #expect(problems.isEmpty)
        let (kept, sent) = try world.clients[0].machine.keepMine(bucket, key, now: now)
        let (taken, more): (Bool, [SyncAction]) = try world.clients[0].machine.takeServers(bucket, key, now: now)
        #expect(!kept && !taken && sent.isEmpty && more.isEmpty)
    }

    @Test(
        "an object of a newer shape is read-only and not overwritten; edits wait and are sent with the known shape",
        arguments: shapes)
    func stops(shape: JSONObject) throws {
        let (begun, known) = try device()
        var world = begun
        try wait(&world, ["t": "known", "n": "mine"])
        try show(shape, &world)
        #expect(world.alarms.map(\.kind) == [.unknownRules] && world.alarms.first?.key == Self.doc)
        #expect(world.alarms.first?.needsChoice == false && world.alarms.first?.position == nil)
        #expect(world.alarms.first?.detail.contains("update this program") == true)
        for _ in 0..<2 {
            #expect(try held(world) == shape, "nothing was written over it")
            try expectShown(["t": "known", "n": "mine"], &world)
            try expectRefused(&world)
            try expectNoChoice(&world)
            #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 1)
            // A restart of the same program.
            try world.crash(0)
            world.goOnline(0)
            world.expectSettled()
        }
        try show(["z": 3], &world)
        try show(known, &world)
        #expect(world.alarms.count == 1, "told once")
        try expectShown(["t": "known", "n": "mine"], &world)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        let now = try #require(try held(world))
        #expect(try SealedEntity(now).tail.count == SealedEntity(known).tail.count + 1, "what waited was sent, once")
        try world.set(0, try EntityKey(Self.doc), to: ["t": "after"])
        world.expectSettled()
        try expectShown(["t": "after"], &world)
        #expect(world.conflicts.isEmpty)
    }

    @Test("a change in flight when a newer shape comes waits, too, and is in the object once")
    func inFlight() throws {
        let (begun, known) = try device()
        var world = begun
        let key = try EntityKey(Self.doc)
        // Sent, and lost with the connection.
        try world.set(0, key, to: ["t": "known", "n": "mine"])
        world.clients[0].up = []
        world.cut(0)
        try show(["z": 2], &world)
        #expect(world.alarms.map(\.kind) == [.unknownRules])
        #expect(try held(world) == ["z": 2])
        #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 1)
        try show(known, &world)
        try expectShown(["t": "known", "n": "mine"], &world)
        let now = try #require(try held(world))
        #expect(try SealedEntity(now).tail.count == SealedEntity(known).tail.count + 1)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0 && world.alarms.count == 1)
    }

    @Test("a change in flight is not sent again until the known shape is back, and then at once on the connection")
    func live() throws {
        let (begun, known) = try device()
        var world = begun
        try world.set(0, try EntityKey(Self.doc), to: ["t": "known", "n": "mine"])
        world.clients[0].up = []
        world.cut(0)
        var newer = known
        newer["z"] = 2
        try show(newer, &world)
        let key = try world.serverKey(Self.doc)
        let address = EntityAddress(bucket: world.bucket, key: try EntityKey(key))
        let waiting = world.clients[0].store.entity(address)?.edits ?? EditState()
        #expect(
            waiting.pending != nil && waiting.refusal == nil && waiting.attempts == 0, "it was not sent")

        let version = try #require(world.server.buckets["notes"]?.entities[key]).version
        world.server.buckets["notes"]?.entities[key] = ModelServer.Entity(version: version + 1, object: known)
        let members = #""clientid":"other","cv":"9-9","ccids":["x"],"id":"\#(key)","o":"M""#
        let change =
            #"0:c:[{\#(members),"sv":\#(version),"ev":\#(version + 1),"v":{"z":{"o":"r","v":1}}}]"#
        world.perform(0, world.clients[0].machine.received(ServerBatch([Array(change.utf8)]), now: world.now))
        world.expectSettled()
        try expectShown(["t": "known", "n": "mine"], &world)
        let now = try #require(try held(world))
        #expect(try SealedEntity(now).tail.count == SealedEntity(known).tail.count + 1)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0 && world.alarms.count == 1)
    }

    @Test("a newer program reads the stored newer shape without a message from the server")
    func newerProgram() throws {
        let (begun, known) = try device()
        var world = begun
        try wait(&world, ["t": "known", "n": "mine"])
        try show(["z": 2, "s": [:], "d": []], &world)
        // The newer program can read it: here, because it has the known shape.
        let key = try world.serverKey(Self.doc)
        let address = EntityAddress(bucket: world.bucket, key: try EntityKey(key))
        world.server.buckets["notes"]?.entities[key]?.object = known
        var record = try #require(world.clients[0].store.entity(address))
        let version = try #require(record.edits.held).version
        record.edits.held = Ghost(version: version, object: known)
        var batch = LocalBatch()
        batch.entities = [EntityWrite(address, record, [.ghost, .edits, .marks])]
        try world.clients[0].store.commit(batch)
        try world.crash(0)
        world.goOnline(0)
        world.expectSettled()
        let now = try #require(try held(world))
        #expect(try SealedEntity(now).tail.count == SealedEntity(known).tail.count + 1, "what waited was sent")
        #expect(world.alarms.count == 1)
        try world.set(0, try EntityKey(Self.doc), to: ["t": "after"])
    }

    @Test(
        "a new device reports a newer object as newer, not as clear, and shows it once it is readable",
        arguments: [false, true], [false, true])
    func newDevice(hasReader: Bool, hasDraft: Bool) throws {
        let (begun, known) = try device()
        var world: Simulation = begun
        try show(["z": 2, "t": "hello"], &world)
        world.alarms = []
        let index: Int = try world.addClient(hasReader: hasReader)
        // Created here before anything of theirs was known.
        let draft: JSONObject? = hasDraft ? ["n": "draft"] : nil
        if let draft { try world.set(index, try EntityKey(Self.doc), to: draft) }
        world.goOnline(index)
        world.expectSettled()
        #expect(world.alarms.map(\.kind) == [.unknownRules] && world.alarms.first?.needsChoice == false)
        #expect(try held(world) == ["z": 2, "t": "hello"])
        try expectShown(draft, &world, index)
        try expectRefused(&world, index)
        try world.crash(index)
        world.goOnline(index)
        world.expectSettled()
        try show(known, &world)
        let both: JSONObject = hasDraft ? ["t": "known", "n": "draft"] : ["t": "known"]
        for one: Int in [0, index] { try expectShown(both, &world, one) }
        #expect(world.alarms.count == 1 && world.conflicts.isEmpty)
    }

    @Test("an object of a newer shape that is gone is reported as a removal without a deletion, with a choice")
    func gone() throws {
        var world = try device().world
        try show(["z": 2], &world)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 0, "nothing waits")
        try show(nil, &world)
        #expect(world.clients[0].machine.status == .upToDate)
        #expect(world.alarms.map(\.kind) == [.unknownRules, .removed] && world.alarms.last?.needsChoice == true)
        try expectShown(["t": "known"], &world)
        let (bucket, key, now) = (world.bucket, try EntityKey(Self.doc), world.now)
        let (kept, actions) = try world.clients[0].machine.keepMine(bucket, key, now: now)
        world.perform(0, actions)
        world.expectSettled()
        let made = try #require(try held(world))
        #expect(try kept && SealedEntity(made).tail.isEmpty)
        try expectShown(["t": "known"], &world)
    }

    @Test("an object with an open choice is not overwritten once a newer program has written it")
    func choice() throws {
        for isChosen in [false, true] {
            let (begun, known) = try device()
            var world: Simulation = begun
            let (bucket, key) = (world.bucket, try EntityKey(Self.doc))
            try show(["t": "clear"], &world)
            #expect(world.alarms.map(\.kind) == [.clear])
            if isChosen {
                // Chosen offline: the removal has not been sent.
                world.cut(0)
                world.perform(0, world.clients[0].machine.goOffline(now: world.now))
                world.perform(0, try world.clients[0].machine.keepMine(bucket, key, now: world.now).1)
                world.goOnline(0)
            }
            try show(["z": 2], &world)
            if !isChosen {
                let now = world.now
                #expect(throws: ClientError.self) { try world.clients[0].machine.keepMine(bucket, key, now: now) }
                #expect(throws: ClientError.self) { try world.clients[0].machine.takeServers(bucket, key, now: now) }
            }
            #expect(try held(world) == ["z": 2])
            try expectShown(["t": "known"], &world)
            try show(known, &world)
            try expectShown(["t": "known"], &world)
        }
    }

    // MARK: - Changes in flight

    /// A creation that the server has accepted: it answers with the object in a newer shape.
    ///
    /// - Returns: the device, and the object that it sent.
    private func createdNewer(isConfirmed: Bool) throws -> (world: Simulation, sent: JSONObject) {
        var world: Simulation = try .sealed(1, seed: 15)
        try world.set(0, try EntityKey(Self.doc), to: ["t": "mine"])
        let (connection, bytes) = (
            try #require(world.clients[0].connection), try #require(world.clients[0].up.first)
        )
        world.clients[0].up = []
        world.serve(connection, bytes)
        world.clients[0].down = []
        let sent = try #require(try held(world))
        let key = try world.serverKey(Self.doc)
        world.server.buckets["notes"]?.entities[key]?.object = ["z": 2]
        let pending = try #require(try world.record(0, Self.doc).edits.pending)
        let members =
            #""clientid":"me","cv":"9-9","ccids":["\#(pending.changeID.text)"],"id":"\#(key)","o":"M""#
        hear(#"0:c:[{\#(members),"ev":1,"v":{"z":{"o":"+","v":2}}}]"#, &world)
        if isConfirmed { try answer(409, &world) }
        #expect(world.alarms.map(\.kind) == [.unknownRules])
        #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 1)
        return (world, sent)
    }

    private func hear(_ text: String, _ world: inout Simulation) {
        world.perform(0, world.clients[0].machine.received(ServerBatch([Array(text.utf8)]), now: world.now))
    }

    /// The server refuses the change in flight.
    private func answer(_ code: Int, _ world: inout Simulation) throws {
        let pending = try #require(try world.record(0, Self.doc).edits.pending)
        let refused = RefusedChange(
            clientID: "x", key: try world.serverKey(Self.doc), error: code, ccids: [pending.changeID.text])
        hear(String(decoding: ServerMessage.channel(0, .changes([.refused(refused)])).encoded(), as: UTF8.self), &world)
    }

    @Test(
        "a creation that the server shows in a newer shape is done once the known shape is back",
        arguments: [true, false])
    func creation(isConfirmed: Bool) throws {
        var (world, sent) = try createdNewer(isConfirmed: isConfirmed)
        try show(["z": 2, "s": [:]], &world)
        try expectRefused(&world)
        try show(sent, &world)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0, "it has arrived")
        #expect(try held(world) == sent, "and was not sent again")
        try world.set(0, try EntityKey(Self.doc), to: ["t": "after"])
        world.expectSettled()
        #expect(try world.truth()[Self.doc]?.object == ["t": "after"])
        #expect(world.alarms.count == 1 && world.conflicts.isEmpty)
    }

    @Test("a creation shown in a newer shape and then removed is a draft again, and is sent", arguments: [true, false])
    func creationGone(isConfirmed: Bool) throws {
        var (world, _) = try createdNewer(isConfirmed: isConfirmed)
        // Removed, and the message of the removal is lost: no index lists the object.
        let key = try world.serverKey(Self.doc)
        world.server.buckets["notes"]?.entities[key]?.object = nil
        world.server.buckets["notes"]?.entities[key]?.version += 1
        world.forgetPositions()
        world.cut(0)
        world.expectSettled()
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        #expect(try world.truth()[Self.doc]?.object == ["t": "mine"])
        try world.set(0, try EntityKey(Self.doc), to: ["t": "after"])
        world.expectSettled()
        #expect(try world.truth()[Self.doc]?.object == ["t": "after"] && world.alarms.count == 1)
    }

    @Test(
        "a change in flight waits unchanged, whatever code the server answers",
        arguments: [400, 404, 405, 409, 412, 413, 440])
    func answers(code: Int) throws {
        let (begun, known) = try device()
        var world = begun
        try world.set(0, try EntityKey(Self.doc), to: ["t": "known", "n": "mine"])
        world.clients[0].up = []
        world.cut(0)
        try show(["z": 2], &world)
        let before = try world.record(0, Self.doc).edits
        try answer(code, &world)
        world.expectSettled()
        let after = try world.record(0, Self.doc).edits
        #expect(after.pending != nil && after.pending?.changeID == before.pending?.changeID)
        #expect(after.refusal == nil && after.attempts == 0 && after.sealed.later == nil)
        #expect(try held(world) == ["z": 2])
        // A change that the server says it has is not sent again.
        guard code != 409, code != 412 else { return }
        try show(known, &world)
        try expectShown(["t": "known", "n": "mine"], &world)
        let now = try #require(try held(world))
        #expect(try SealedEntity(now).tail.count == SealedEntity(known).tail.count + 1, "it went out, once")
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0 && world.alarms.count == 1)
    }

    @Test("a bucket with an object of a newer shape cannot be unsealed, one with only clear objects can")
    func modes() throws {
        for (shape, isOpened): (JSONObject, Bool) in [(["t": "clear"], true), (["z": 2, "t": "clear"], false)] {
            var world = try Simulation(clients: 1, seed: 6, isSealed: true)
            world.server.sealedBuckets = []
            world.server.buckets["notes"] = ModelServer.Bucket()
            world.server.buckets["notes"]?.entities["k"] = ModelServer.Entity(version: 1, object: shape)
            world.goOnline(0)
            world.expectSettled()
            let mode: [UInt8] = Array(#"0:o:{"mode":"open"}"#.utf8)
            world.perform(0, world.clients[0].machine.received(ServerBatch([mode]), now: world.now))
            #expect(world.alarms.last?.kind == .modeChanged)
            let (isUnsealed, _) = try world.clients[0].machine.unseal(
                world.bucket, now: world.now)
            #expect(isUnsealed == isOpened)
        }
        #expect(SealedEntity.looksSealed(["z": 2, "s": [:], "d": []]))
    }
}
