import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Operations of rules that this program does not know, and the object's state after the program is updated.
@Suite("Operations of newer rules", .nonceWatch)
struct NewerRulesTests {
    private static let doc = "doc0"

    /// A device with an object, and the object as the server has it.
    private func device(seed: UInt64) throws -> (world: Simulation, known: SealedEntity) {
        var world: Simulation = try .sealed(1, seed: seed)
        try world.insertSomething(0, Self.doc)
        world.expectSettled()
        return (world, try world.sealedEntity(Self.doc))
    }

    /// The same, with operations of newer rules after those that the device knows, and their readable form.
    private func stopped(seed: UInt64, isDeletion: Bool = false, hasEdit: Bool = true) throws -> (
        world: Simulation, shown: SealedEntity, readable: SealedEntity
    ) {
        var (world, known) = try device(seed: seed)
        world.cut(0)
        // Made offline, before the device knew of them.
        if hasEdit { try world.insertSomething(0, Self.doc) }
        let old = try world.newerOperations(Self.doc, isNewer: true, isDeletion: isDeletion)
        let new = try world.newerOperations(Self.doc, isNewer: false, isDeletion: isDeletion)
        try world.show(old, behind: known, of: Self.doc)
        world.expectSettled()
        #expect(world.alarms.map(\.kind) == [.unknownRules] && world.alarms.first?.position == 0)
        let shown = try world.sealedEntity(Self.doc)
        #expect(shown.tail == old.reversed() + known.tail, "nothing is sent behind what was not understood")
        known.tail = new.reversed() + known.tail
        return (world, shown, known)
    }

    private func object(_ world: inout Simulation) throws -> JSONObject? {
        try world.object(0, try EntityKey(Self.doc))
    }

    private func expectRefused(_ world: inout Simulation, _ line: SourceLocation = #_sourceLocation) throws {
        let before = try object(&world)
        do {
            try world.insertSomething(0, Self.doc)
            Issue.record("an edit was accepted that cannot be carried", sourceLocation: line)
        } catch let error as ClientError {
            #expect(error.code == .integrity && error.detail.contains("newer rules"), sourceLocation: line)
        }
        let after = try object(&world)
        #expect(before == after, sourceLocation: line)
    }

    /// The device receives nothing more; the server reads what was sent on that connection.
    private func disconnect(_ world: inout Simulation) {
        (world.clients[0].up, world.clients[0].down, world.clients[0].connection) = ([], [], nil)
        world.perform(0, world.clients[0].machine.closed(LinkClosure(detail: "cut"), now: world.now))
    }

    /// Restarts the same program.
    private func restart(_ world: inout Simulation) throws {
        try world.crash(0)
        world.goOnline(0)
        world.expectSettled()
    }

    @Test("an object with newer rules stops and is read-only; edits wait, and a newer program reads on and sends them")
    func stops() throws {
        var (world, _, readable) = try stopped(seed: 3)
        let mine = try #require(try object(&world))
        #expect(
            mine["first"] == nil && mine["t"]?.stringValue?.count == 2, "nothing of it is shown, and nothing is lost")
        try expectRefused(&world)

        // The same program once more: it stops at the same place, and has reported that already.
        try restart(&world)
        #expect(try object(&world) == mine && world.alarms.count == 1)

        // A newer program, without a message from the server: everything it needs is in the store.
        try world.update(0, Self.doc, reading: readable)
        let end = try #require(try object(&world))
        #expect(end["first"] == "newer" && end["second"] == "newer")
        #expect(end["t"] == mine["t"], "what waited is on top of it")
        #expect(try world.sealedEntity(Self.doc).tail.count == readable.tail.count + 1, "and was sent")
        #expect(world.alarms.count == 1)
        try world.insertSomething(0, Self.doc)
    }

    @Test("a stopped object stays stopped when it is evicted from memory, and after a restart")
    func forgotten() throws {
        var (world, shown, _) = try stopped(seed: 4, hasEdit: false)
        // Other objects are read until this one has left memory.
        for number in 0...SyncLimits.cachedObjectsMax { _ = try world.object(0, try EntityKey("other\(number)")) }
        try expectRefused(&world)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 0, "nothing waits")
        world.expectSettled()
        #expect(try world.sealedEntity(Self.doc) == shown, "nothing went behind what was not understood")
        try world.crash(0)
        try expectRefused(&world)
        world.goOnline(0)
        world.expectSettled()
        try expectRefused(&world)
        #expect(try world.sealedEntity(Self.doc) == shown && world.alarms.count == 1)
    }

    @Test("a store that fails while a newer program reads on does not prevent it", arguments: 0..<2)
    func failingStore(commits: Int) throws {
        var (world, _, readable) = try stopped(seed: 5)
        try world.update(0, Self.doc, reading: readable, failingAfter: commits)
        #expect(world.clients[0].store.commitsUntilFailure == nil, "it has failed")
        #expect(try object(&world)?["second"] == "newer")
        #expect(try world.sealedEntity(Self.doc).tail.count == readable.tail.count + 1)
    }

    @Test("an object that stops at another place when it is read on reports that")
    func stopsAgain() throws {
        var (world, _, readable) = try stopped(seed: 6, hasEdit: false)
        var further = readable
        // The first operation is readable by then, the second is not.
        let newest = SealedObject.bytes(of: try #require(further.tail.first))
        let keys = try #require(world.keys)
        let sealer = try keys.sealer(serverKey: try world.serverKey(Self.doc))
        let clear = try #require(sealer.open(newest, kind: .operation, position: 0)?.clear)
        var changed = try #require(try JSONValue(parsing: clear).objectValue)
        changed["t"] = 3
        let sealed = sealer.seal(
            JSONValue.object(changed).serialized(), kind: .operation, id: Array(repeating: 9, count: 16), position: 0,
            nonce: Array(repeating: 9, count: 12))
        further.tail[0] = Base64.encodeURL(sealed)
        try world.update(0, Self.doc, reading: further)
        #expect(try object(&world)?["first"] == "newer" && object(&world)?["second"] == nil)
        #expect(world.alarms.map(\.position) == [0, 1])
        try expectRefused(&world)
    }

    @Test(
        "a change in flight that may be among the unread operations waits, and is in the object once",
        arguments: [true, false])
    func inFlight(isTaken: Bool) throws {
        var (world, known) = try device(seed: 7)
        try world.insertSomething(0, Self.doc)
        let mine: JSONObject = try #require(try object(&world))
        let (sent, connection) = (
            try #require(world.clients[0].up.first), try #require(world.clients[0].connection)
        )
        disconnect(&world)
        let old = try world.newerOperations(Self.doc, isNewer: true)
        let new = try world.newerOperations(Self.doc, isNewer: false)
        try world.show(old, behind: known, of: Self.doc)
        // After them the server accepts ours; its answer is lost.
        if isTaken { world.serve(connection, sent) }
        let own = isTaken ? [try #require(try world.sealedEntity(Self.doc).tail.first)] : []
        world.forgetPositions()
        known.tail = own + new.reversed() + known.tail
        world.expectSettled()
        for _ in 0..<2 {
            #expect(world.alarms.map(\.kind) == [.unknownRules])
            #expect(world.server.refusals.isEmpty && world.clients[0].machine.unconfirmed(world.bucket).refused == 1)
            #expect(try world.sealedEntity(Self.doc).tail.count == known.tail.count, "it was not sent again")
            #expect(try object(&world) == mine)
            try sendDuplicate(&world)
            try restart(&world)
        }
        try world.update(0, Self.doc, reading: known)
        let end = try #require(try object(&world))
        #expect(end["second"] == "newer" && end["t"] == mine["t"], "once")
        #expect(try world.truth()[Self.doc]?.object == end)
        #expect(try world.sealedEntity(Self.doc).tail.count == known.tail.count + (isTaken ? 0 : 1))
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0 && world.alarms.count == 1)
    }

    /// The server answers on an open connection that it has the change in flight.
    private func sendDuplicate(_ world: inout Simulation) throws {
        let pending = try #require(try world.record(0, Self.doc).edits.pending, "it waits")
        let answer = RefusedChange(
            clientID: "x", key: try world.serverKey(Self.doc), error: 409, ccids: [pending.changeID.text])
        let text = ServerMessage.channel(0, .changes([.refused(answer)])).encoded()
        world.perform(0, world.clients[0].machine.received(ServerBatch([text]), now: world.now))
        world.expectSettled()
    }

    @Test("a creation of ours with operations of newer rules after it is known to have arrived")
    func creation() throws {
        var world: Simulation = try .sealed(1, seed: 8)
        try world.insertSomething(0, Self.doc)
        let mine: JSONObject? = try object(&world)
        let (sent, connection) = (
            try #require(world.clients[0].up.first), try #require(world.clients[0].connection)
        )
        disconnect(&world)
        world.serve(connection, sent)
        var known = try world.sealedEntity(Self.doc)
        let old = try world.newerOperations(Self.doc, isNewer: true)
        let new = try world.newerOperations(Self.doc, isNewer: false)
        try world.show(old, behind: known, of: Self.doc)
        world.expectSettled()
        #expect(try object(&world) == mine && world.alarms.map(\.kind) == [.unknownRules])
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        try restart(&world)
        try expectRefused(&world)
        known.tail = new.reversed() + known.tail
        try world.update(0, Self.doc, reading: known)
        #expect(try object(&world)?["second"] == "newer" && object(&world)?["t"] == mine?["t"])
        #expect(try world.sealedEntity(Self.doc).tail == known.tail && world.alarms.count == 1)
    }

    @Test("a requested state is read first: a change in flight is not sent after operations that may be unknown")
    func askedFor() throws {
        var (world, known) = try device(seed: 12)
        try world.insertSomething(0, Self.doc)
        disconnect(&world)
        let new = try world.newerOperations(Self.doc, isNewer: false)
        try world.show(try world.newerOperations(Self.doc, isNewer: true), behind: known, of: Self.doc)
        world.expectSettled()
        known.tail = new.reversed() + known.tail
        for _ in 0..<2 {
            // The program ends while it requests the newest state.
            try moveOn(&world)
            try restart(&world)
            #expect(try world.sealedEntity(Self.doc).tail.count == known.tail.count, "nothing was sent")
            let edits = try world.record(0, Self.doc).edits
            #expect(edits.pending != nil && edits.wanted == nil)
        }
        try moveOn(&world)
        try world.update(0, Self.doc, reading: known)
        #expect(try world.sealedEntity(Self.doc).tail.count == known.tail.count + 1, "it was sent, once")
        #expect(try object(&world)?["second"] == "newer" && world.truth()[Self.doc]?.object == object(&world))
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0 && world.alarms.count == 1)
    }

    /// The server has one version more, and the device's store says that it was requested.
    private func moveOn(_ world: inout Simulation) throws {
        let key = try EntityKey(try world.serverKey(Self.doc))
        world.server.buckets["notes"]?.entities[key.text]?.version += 1
        var record = try world.record(0, Self.doc)
        record.edits.wanted = try #require(world.server.buckets["notes"]?.entities[key.text]).version
        var batch = LocalBatch()
        batch.entities = [EntityWrite(EntityAddress(bucket: world.bucket, key: key), record, .edits)]
        try world.clients[0].store.commit(batch)
    }

    // MARK: - Removed on the server

    /// Another device's program removes the object: this device receives the removal, or only misses the object in the
    /// index.
    private func remove(_ world: inout Simulation, isReceived: Bool) throws {
        let connection = try #require(world.clients[0].connection)
        if !isReceived { disconnect(&world) }
        let key = try world.serverKey(Self.doc)
        world.serve(connection, Array(#"0:c:{"id":"\#(key)","ccid":"removal","o":"-"}"#.utf8))
        #expect(!world.hasOnServer(Self.doc))
        world.expectSettled()
    }

    /// The object stays as it is, read-only and unreported, until a newer program knows why; waiting edits are neither
    /// lost nor sent.
    private func expectKept(_ isReceived: Bool, isDeletion: Bool, hasEdit: Bool) throws {
        var (world, _, readable) = try stopped(
            seed: 9, isDeletion: isDeletion, hasEdit: hasEdit)
        let mine = try #require(try object(&world))
        try remove(&world, isReceived: isReceived)
        for _ in 0..<2 {
            #expect(try object(&world) == mine && world.alarms.count == 1)
            #expect(!world.hasOnServer(Self.doc))
            let waiting = world.clients[0].machine.unconfirmed(world.bucket)
            #expect(waiting == (hasEdit ? (1, 1) : (0, 0)))
            try expectRefused(&world)
            try world.crash(0)
            try expectRefused(&world)
            world.goOnline(0)
            // Also while the server is asked for the last state.
            for _ in 0..<1_000 where !world.settle(rounds: 1) { try expectRefused(&world) }
            world.expectSettled()
        }
        try world.update(0, Self.doc, reading: readable)
        let problem = try world.clients[0].machine.problem(world.bucket, try EntityKey(Self.doc))
        #expect((problem == nil) == isDeletion)
        #expect(world.alarms.map(\.kind) == (isDeletion ? [.unknownRules] : [.unknownRules, .removed]))
        let end = try object(&world)
        guard isDeletion else { return #expect(end?["t"] == mine["t"] && end?["second"] == "newer") }
        // As on a device that knows the rules: an edit of an object that others deleted recreates it.
        #expect(end?["t"] == (hasEdit ? mine["t"] : nil))
        #expect(try world.truth()[Self.doc]?.object == end)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
    }

    @Test(
        "an unreadable object removed on the server stays, read-only and unreported, until a newer program knows why",
        arguments: [true, false], [true, false])
    func removed(isReceived: Bool, isDeletion: Bool) throws {
        try expectKept(isReceived, isDeletion: isDeletion, hasEdit: false)
    }

    @Test(
        "waiting edits of an unreadable removed object are kept and not sent", arguments: [true, false], [true, false])
    func removedBelowEdits(isReceived: Bool, isDeletion: Bool) throws {
        try expectKept(isReceived, isDeletion: isDeletion, hasEdit: true)
    }

    @Test(
        "a removed object whose last state the server has forgotten is reported with a choice",
        arguments: [true, false])
    func removedAndForgotten(isReceived: Bool) throws {
        var (world, _, _) = try stopped(seed: 10)
        let mine = try object(&world)
        try remove(&world, isReceived: isReceived)
        world.forgetPositions()
        try restart(&world)
        #expect(world.alarms.map(\.kind) == [.unknownRules, .removed] && world.alarms.last?.needsChoice == true)
        #expect(try object(&world) == mine, "what waited is kept")
        let (bucket, now) = (world.bucket, world.now)
        let (isKept, actions) = try world.clients[0].machine.keepMine(
            bucket, try EntityKey(Self.doc), now: now)
        world.perform(0, actions)
        world.expectSettled()
        #expect(isKept)
        #expect(try world.truth()[Self.doc]?.object == mine)
    }

    /// The program was restarted, and has just requested the last states of the removed objects.
    private func asking(_ world: inout Simulation) throws {
        try world.crash(0)
        world.goOnline(0)
        for _ in 0..<1_000 {
            if world.clients[0].up.contains(where: { $0.starts(with: "0:e:".utf8) }) { return }
            _ = world.settle(rounds: 1)
        }
        Issue.record("nothing was asked for")
    }

    private func hear(_ text: String, _ world: inout Simulation) {
        world.perform(0, world.clients[0].machine.received(ServerBatch([Array(text.utf8)]), now: world.now))
    }

    @Test(
        "an old version that the app requests and the server lacks is not an answer to the device's own request")
    func otherAnswer() throws {
        var (world, _, _) = try stopped(seed: 13, isDeletion: true)
        try remove(&world, isReceived: true)
        try asking(&world)
        hear("0:e:\(try world.serverKey(Self.doc)).4000\n?", &world)
        world.expectSettled()
        #expect(world.alarms.map(\.kind) == [.unknownRules], "its deletion may be among what is not read")
        try expectRefused(&world)
    }

    @Test("an index scan during many open requests cancels none of them")
    func manyQuestions() throws {
        let names = (0..<SyncLimits.reloadsInFlightMax + 6).map { "many\($0)" }
        var world: Simulation = try .sealed(1, seed: 14)
        for name in names { try world.insertSomething(0, name) }
        world.expectSettled()
        let connection = try #require(world.clients[0].connection)
        disconnect(&world)
        var last = [String: SealedEntity]()
        for name in names {
            let known = try world.sealedEntity(name)
            let new = try world.newerOperations(name, isNewer: false, isDeletion: true)
            try world.show(
                try world.newerOperations(name, isNewer: true, isDeletion: true), behind: known, of: name)
            var readable = known
            readable.tail = new.reversed() + known.tail
            last[name] = readable
        }
        world.expectSettled()
        #expect(world.alarms.count == names.count)
        disconnect(&world)
        for name in names {
            let key = try world.serverKey(name)
            world.serve(connection, Array(#"0:c:{"id":"\#(key)","ccid":"r-\#(name)","o":"-"}"#.utf8))
        }
        world.expectSettled()
        // The newer program can read what the server held.
        for name in names {
            let key = try world.serverKey(name)
            let step = try #require(world.server.buckets["notes"]?.entities[key]?.steps.last)
            world.server.buckets["notes"]?.entities[key]?.steps = [
                ModelServer.Step(version: step.version, before: try #require(last[name]).object, diff: nil)
            ]
        }
        try asking(&world)
        // A message that cannot be parsed has the index read.
        hear("0:c:?", &world)
        world.expectSettled()
        for name in names { #expect(try world.object(0, try EntityKey(name)) == nil, "\(name) was deleted") }
        #expect(world.alarms.count == names.count)
    }

    @Test("an object deleted here before it was removed is gone at once, without a report", arguments: [true, false])
    func removedOnBothSides(isReceived: Bool) throws {
        var (world, known) = try device(seed: 11)
        world.cut(0)
        try world.remove(0, try EntityKey(Self.doc))
        try world.show(try world.newerOperations(Self.doc, isNewer: true), behind: known, of: Self.doc)
        world.expectSettled()
        #expect(world.hasOnServer(Self.doc), "the deletion waits")
        #expect(world.clients[0].machine.unconfirmed(world.bucket).refused == 1)
        try remove(&world, isReceived: isReceived)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        #expect(try object(&world) == nil && world.alarms.map(\.kind) == [.unknownRules])
        // The key is free again.
        try world.insertSomething(0, Self.doc)
        world.expectSettled()
        #expect(try world.truth()[Self.doc]?.object == object(&world) && world.alarms.count == 1)
    }
}
