import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol
import ThicketSealed

/// Read-only objects, and the choices about them, where the app or others have deleted the object.
@Suite("Choices for sealed objects that are read-only", .nonceWatch)
struct SealedRepairTests {
    /// The server loses what it holds of an object, and its log.
    private func lose(_ world: inout Simulation, _ key: EntityKey) throws {
        let wire = try world.serverKey(key.text)
        world.server.buckets["notes"]?.entities[wire]?.object = nil
        world.forgetPositions()
    }

    /// A device sends the creation of an object, and its connection ends with the creation in flight.
    private func createUndelivered(
        _ world: inout Simulation, _ key: EntityKey
    ) throws -> (creation: [UInt8], connection: Int) {
        try world.set(0, key, to: ["t": "first"])
        let sent: (creation: [UInt8], connection: Int) = (
            try #require(world.clients[0].up.first), try #require(world.clients[0].connection)
        )
        world.clients[0].up = []
        world.clients[0].connection = nil
        world.perform(0, world.clients[0].machine.closed(LinkClosure(detail: "cut"), now: world.now))
        return sent
    }

    @Test(
        "an object deleted here that the server has lost for an unknown reason is gone, without an alarm")
    func deletedOnBothSides() throws {
        var world: Simulation = try .sealed(1, seed: 2)
        let key = try EntityKey("doc0")
        try world.insertSomething(0, "doc0")
        world.expectSettled()
        world.cut(0)
        try world.remove(0, key)
        try lose(&world, key)
        world.expectSettled()
        #expect(world.alarms.isEmpty, "\(world.alarms)")
        #expect(try world.clients[0].machine.problems(world.bucket).isEmpty)
        #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        // The key is free again.
        try world.insertSomething(0, "doc0")
        world.expectSettled()
        #expect(try world.truth()["doc0"] != nil && world.alarms.isEmpty)
    }

    /// One device has deleted an object, and is then shown an older state of it.
    private func rolledBack(_ world: inout Simulation, _ key: EntityKey) throws {
        for _ in 0..<2 { try world.insertSomething(0, key.text) }
        world.expectSettled()
        let wire = try world.serverKey(key.text)
        let older = world.server.buckets["notes"]?.entities[wire]?.object
        try world.insertSomething(0, key.text)
        world.expectSettled()
        world.cut(0)
        try world.remove(0, key)
        world.server.buckets["notes"]?.entities[wire]?.object = older
        world.forgetPositions()
        world.server.buckets["notes"]?.entities[wire]?.version += 10
        world.expectSettled()
    }

    @Test("an object that the app has deleted can be read-only, too: it is listed, and both choices are possible")
    func deletedHere() throws {
        for keepsMine: Bool in [true, false] {
            var world: Simulation = try .sealed(1, seed: 2)
            let key = try EntityKey("doc0")
            try rolledBack(&world, key)
            #expect(world.alarms.map(\.kind) == [.rolledBack])
            #expect(try world.object(0, key) == nil)
            #expect(try world.clients[0].machine.keys(world.bucket, after: nil, limit: 9).isEmpty)
            #expect(try world.clients[0].machine.problems(world.bucket) == [key])
            let (bucket, now) = (world.bucket, world.now)
            let (isDone, actions) =
                keepsMine
                ? try world.clients[0].machine.keepMine(bucket, key, now: now)
                : try world.clients[0].machine.takeServers(bucket, key, now: now)
            #expect(isDone)
            world.perform(0, actions)
            world.expectSettled()
            #expect(try world.clients[0].machine.problems(bucket).isEmpty)
            #expect(try (world.object(0, key) == nil) == keepsMine)
            #expect(try (world.truth()["doc0"] == nil) == keepsMine)
            #expect(world.clients[0].machine.unconfirmed(bucket).edited == 0 && world.alarms.count == 1)
            // The deletion gives way where the server's state is taken, and only then.
            #expect(world.conflicts.map(\.losing) == (keepsMine ? [] : [nil]), "\(world.conflicts)")
            #expect(world.problems.isEmpty, "\(world.problems)")
        }
    }

    @Test("a deletion that is kept sends a tombstone: another device reports no hidden object")
    func tombstone() throws {
        var world: Simulation = try .sealed(1, seed: 2)
        let key = try EntityKey("doc0")
        try rolledBack(&world, key)
        let other = try world.addClient(hasReader: true)
        world.goOnline(other)
        world.expectSettled()
        #expect(try world.object(other, key) != nil)
        world.perform(0, try world.clients[0].machine.keepMine(world.bucket, key, now: world.now).1)
        world.expectSettled()
        #expect(try world.object(other, key) == nil)
        #expect(world.alarms.map(\.kind) == [.rolledBack], "\(world.alarms)")
    }

    @Test("taking the server's state while a newer one is requested does not lose the newer one")
    func takenWhileAsking() throws {
        var world: Simulation = try .sealed(1, seed: 2)
        let key = try EntityKey("doc0")
        try rolledBack(&world, key)
        #expect(try world.clients[0].machine.problems(world.bucket) == [key])
        let other = try world.addClient(hasReader: true)
        world.goOnline(other)
        world.expectSettled()
        for _ in 0..<2 {
            try world.insertSomething(other, "doc0")
            world.expectSettled(only: other)
        }
        // The first of the two changes is lost: the second one fits no state here, and the object is requested.
        world.clients[0].down.removeFirst()
        let place = EntityAddress(bucket: world.bucket, key: try EntityKey(try world.serverKey("doc0")))
        for _ in 0..<100 where world.clients[0].store.entity(place)?.edits.wanted == nil {
            _ = world.settle(rounds: 1, only: 0)
        }
        #expect(world.clients[0].store.entity(place)?.edits.wanted != nil)
        let now: Int64 = world.now
        world.perform(0, try world.clients[0].machine.takeServers(world.bucket, key, now: now).1)
        #expect(try world.object(0, key) != world.object(other, key), "the newest state that had arrived")
        world.expectSettled()
        #expect(try world.object(0, key) == world.object(other, key))
        #expect(try world.object(0, key)?["t"]?.stringValue?.count == 4)
        #expect(world.alarms.map(\.kind) == [.rolledBack], "\(world.alarms)")
        #expect(try world.clients[0].machine.problems(world.bucket).isEmpty && world.problems.isEmpty)
    }

    @Test("a creation refused once and accepted later from an older connection is not an older state")
    func lateCreation() throws {
        var world: Simulation = try .sealed(2, seed: 2)
        let key = try EntityKey("doc0")
        let (creation, connection) = try createUndelivered(&world, key)
        // In between another client has created the key: the first one's creation is refused, and rebased on top.
        try world.set(1, key, to: ["o": 1])
        world.expectSettled(only: 1)
        world.expectSettled()
        #expect(try world.object(1, key)?.keys.sorted() == ["o", "t"])
        // The other client deletes the object, and only now does the server read what it was sent first.
        world.cut(0)
        try world.remove(1, key)
        world.expectSettled(only: 1)
        world.serve(connection, creation)
        world.expectSettled()
        #expect(world.alarms.isEmpty, "\(world.alarms)")
        #expect(try world.object(0, key) == ["t": "first"] && world.object(1, key) == ["t": "first"])
    }

    @Test("taking an object that was rolled back after a deletion here and then removed is not a conflict")
    func goneBehindAnAlarm() throws {
        var world: Simulation = try .sealed(1, seed: 2)
        let key = try EntityKey("doc0")
        try rolledBack(&world, key)
        world.cut(0)
        try lose(&world, key)
        world.expectSettled()
        #expect(try world.clients[0].machine.servers(world.bucket, key) == nil)
        let actions = try world.clients[0].machine.takeServers(world.bucket, key, now: world.now).1
        world.perform(0, actions)
        world.expectSettled()
        #expect(world.conflicts.isEmpty, "\(world.conflicts)")
        #expect(try world.clients[0].machine.problems(world.bucket).isEmpty)
    }

    @Test(
        "a creation that the server accepted and forgot is the device's own: later edits of others stay")
    func ownCreation() throws {
        for crashes in [false, true] {
            var world: Simulation = try .sealed(2, seed: 2)
            let key = try EntityKey("doc0")
            let (creation, connection): ([UInt8], Int) = try createUndelivered(&world, key)
            // The creation arrives; its answer does not.
            world.serve(connection, creation)
            world.expectSettled(only: 1)
            #expect(try world.object(1, key) == ["t": "first"])
            try world.set(1, key, to: ["t": "first and second"])
            world.expectSettled(only: 1)
            // The server's log is cut: the answer to the same change is 405, not 409.
            world.forgetPositions()
            world.server.buckets["notes"]?.changeIDs = []
            if crashes { try world.crash(0) }
            world.expectSettled()
            #expect(try world.truth()["doc0"]?.object == ["t": "first and second"])
            #expect(try world.object(0, key) == ["t": "first and second"])
            #expect(world.alarms.isEmpty && world.conflicts.isEmpty, "\(world.alarms) \(world.conflicts)")
            #expect(world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
        }
    }

    /// The server sends a removal, or the index does not list the object any more.
    private func takeAway(_ world: inout Simulation, _ key: EntityKey, isReceived: Bool) throws {
        guard isReceived else {
            try lose(&world, key)
            world.cut(0)
            return world.expectSettled()
        }
        let wire = try world.serverKey(key.text)
        world.serve(
            try #require(world.clients[0].connection), Array(#"0:c:{"id":"\#(wire)","ccid":"removal","o":"-"}"#.utf8))
        world.expectSettled()
    }

    @Test(
        "a draft under the key of an unreadable object is read-only, and is sent once that object is gone",
        arguments: [true, false], [true, false])
    func draft(isReceived: Bool, hasDraft: Bool) throws {
        for (shown, kind): (JSONObject, IntegrityReport.Kind) in [(["t": "clear"], .clear), (["z": 2], .unknownRules)] {
            try expectSent(hasDraft: hasDraft, behind: shown, kind, isReceived: isReceived)
        }
    }

    private func expectSent(
        hasDraft: Bool, behind shown: JSONObject, _ kind: IntegrityReport.Kind, isReceived: Bool
    ) throws {
        var world = try Simulation(clients: 1, seed: 2, isSealed: true)
        let key = try EntityKey("doc0")
        if hasDraft { try world.set(0, key, to: ["t": "draft"]) }
        let wire = try world.serverKey(key.text)
        world.server.buckets["notes"] = ModelServer.Bucket()
        world.server.buckets["notes"]?.entities[wire] = ModelServer.Entity(version: 1, object: shown)
        world.goOnline(0)
        world.expectSettled()
        for _ in 0..<2 {
            #expect(world.alarms.map(\.kind) == [kind])
            #expect(throws: ClientError.self) { try world.set(0, key, to: ["t": "no"]) }
            #expect(try world.object(0, key) == (hasDraft ? ["t": "draft"] : nil))
            try world.crash(0)
            world.goOnline(0)
            world.expectSettled()
            #expect(world.server.buckets["notes"]?.entities[wire]?.object == shown, "nothing went over it")
        }
        try takeAway(&world, key, isReceived: isReceived)
        #expect(try world.clients[0].machine.problem(world.bucket, key) == nil)
        #expect(try world.truth()["doc0"]?.object == (hasDraft ? ["t": "draft"] : nil))
        try world.set(0, key, to: ["t": "after"])
        world.expectSettled()
        #expect(try world.truth()["doc0"]?.object == ["t": "after"])
        #expect(world.alarms.count == 1 && world.clients[0].machine.unconfirmed(world.bucket).edited == 0)
    }
}
