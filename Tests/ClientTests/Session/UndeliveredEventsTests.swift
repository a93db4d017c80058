import Testing
import ThicketNonces
import ThicketProtocol
import ThicketSealed

@testable import ThicketClient

/// An event that comes once must not be lost with the program that was about to deliver it.
@Suite("Undelivered conflicts and alarms", .nonceWatch, .timeLimit(.minutes(15)))
struct UndeliveredEventsTests {
    private static let key = "doc0"

    private func conflict(_ text: String) -> BucketEvent {
        .conflict(ConflictReport(key: "k", path: [], losing: .string(text), winning: nil))
    }

    private func losing(_ events: [BucketEvent]) -> [JSONValue?] {
        var reported = [JSONValue?]()
        for case .conflict(let report) in events { reported.append(report.losing) }
        return reported
    }

    // MARK: - Bounds

    /// The events that a store holds after these were added.
    private func kept(_ events: [BucketEvent], in undelivered: inout UndeliveredEvents) -> [BucketEvent] {
        var places = [Int: BucketEvent]()
        for event in events {
            let (place, kept) = undelivered.add(event)
            places[place] = kept
        }
        return places.sorted { $0.key < $1.key }.map(\.value)
    }

    @Test("undelivered events are bounded in number and bytes, over restarts too; the last one counts the missed")
    func bounds() {
        var undelivered = UndeliveredEvents()
        let many = kept(
            Array(repeating: conflict("a"), count: StreamLimits.undeliveredMax + 3), in: &undelivered)
        #expect(many.count == StreamLimits.undeliveredMax + 1 && many.last == .overrun(missed: 3))
        var again = UndeliveredEvents(many)
        #expect(again == undelivered && again.total == StreamLimits.undeliveredMax + 3)
        #expect(kept([conflict("b")], in: &again) == [.overrun(missed: 4)])
        var large = UndeliveredEvents()
        let text = String(repeating: "x", count: StreamLimits.undeliveredBytesMax / 2 - 100)
        let two = kept(Array(repeating: conflict(text), count: 4), in: &large)
        #expect(losing(two).count == 2 && two.last == .overrun(missed: 2))
    }

    @Test("the first events can be marked delivered one by one; with missed ones among them, only all of them")
    func first() {
        var undelivered = UndeliveredEvents()
        let events = kept(["a", "b", "c"].map { conflict($0) }, in: &undelivered)
        for (more, isAll, left) in [
            (4, false, ["a", "b", "c"]), (1, false, ["b", "c"]), (3, false, ["b", "c"]), (1, false, ["c"]),
            (1, true, []),
        ] {
            let wasAll = undelivered.markDelivered(more)
            #expect(wasAll == isAll && losing(undelivered.left(of: events)) == left.map { .string($0) }, "\(more)")
        }
        // Too large, and a small one after it: the event delivered first is not the one stored first.
        var large = UndeliveredEvents()
        let text = String(repeating: "x", count: StreamLimits.undeliveredBytesMax)
        let some = kept([conflict("a"), conflict(text), conflict("b")], in: &large)
        let (isPart, isWhole) = (large.markDelivered(2), large.markDelivered(3))
        #expect(!isPart && isWhole && large.left(of: some).isEmpty)
    }

    @Test("stored events can be given one by one; the missed ones are a single event, and the last")
    func given() {
        var undelivered = UndeliveredEvents()
        let text = String(repeating: "x", count: StreamLimits.undeliveredBytesMax)
        var events = kept(
            [conflict("a"), conflict("b"), conflict(text), conflict(text)], in: &undelivered)
        #expect(events.last == .overrun(missed: 2))
        for (more, isAll, left) in [(4, false, 3), (1, false, 2), (1, false, 1)] {
            let wasAll = undelivered.give(more)
            #expect(wasAll == isAll && undelivered.left(of: events) == Array(events.suffix(left)), "\(more)")
        }
        // Another event comes before the last one is given.
        let (place, event) = undelivered.add(conflict("c"))
        #expect(place == 2)
        events.insert(event, at: 2)
        #expect(undelivered.left(of: events) == [conflict("c"), .overrun(missed: 2)])
        let isAll = undelivered.give(2)
        #expect(isAll)
    }

    @Test("events delivered before the store failed stay delivered; later ones are delivered, then all are forgotten")
    func again() {
        var undelivered = UndeliveredEvents()
        let text = String(repeating: "x", count: StreamLimits.undeliveredBytesMax)
        var events = kept([conflict("a"), conflict("b"), conflict(text)], in: &undelivered)
        let isAll = undelivered.markDelivered(3)
        #expect(isAll)
        // It was not forgotten: the failing turn added nothing.
        _ = undelivered.add(conflict("lost"))
        undelivered = UndeliveredEvents(events, after: undelivered)
        #expect(undelivered.count == 2 && undelivered.total == 3 && undelivered.left(of: events).isEmpty)
        var one = undelivered
        events.insert(one.add(conflict("c")).event, at: 2)
        #expect(one.left(of: events) == [conflict("c")])
        events[3] = one.add(conflict(text)).event
        #expect(one.left(of: events) == [conflict("c"), .overrun(missed: 1)])
        var other = one
        let (isReported, isGiven) = (one.markDelivered(2), other.give(2))
        #expect(isReported && isGiven)
        // The store has less than was known: no more events count as delivered than it has.
        let less = UndeliveredEvents([conflict("a")], after: undelivered)
        #expect(less.delivered == 1 && less.total == 1)
    }

    // MARK: - The store

    @Test(
        "a store returns undelivered events as they were, in order, until they are delivered",
        arguments: StoreKind.allCases)
    func stores(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        let value = try JSONValue(parsing: Array(#"{"t":"a\u0000é🙂","n":[1.50,null]}"#.utf8))
        let events: [BucketEvent] = [
            .conflict(ConflictReport(key: "k", path: ["a.b", ""], losing: value, winning: .null)),
            .conflict(ConflictReport(key: "k", path: [], losing: nil, winning: value)),
            .integrity(IntegrityReport(key: "k", .forked(at: 12))), .integrity(IntegrityReport(key: "", .removed)),
            .integrity(IntegrityReport(key: "k", stoppedAfter: 3)),
            .integrity(IntegrityReport(modeChanged: "the server says something else")), .overrun(missed: 7),
        ]
        var batch = LocalBatch()
        batch.buckets = [BucketRecord(name: test.bucket, isSealed: true)]
        for (place, event) in events.enumerated().reversed() {
            batch.undelivered.append(UndeliveredWrite(bucket: test.bucket, place: place, event: event))
        }
        try test.store.commit(batch)
        for _ in 0..<2 {
            #expect(try test.store.undelivered(test.bucket) == events)
            #expect(try test.store.undelivered(BucketName("other")).isEmpty)
            try test.reopen()
        }
        var reported = LocalBatch()
        reported.delivered = [test.bucket]
        reported.undelivered = [UndeliveredWrite(bucket: test.bucket, place: 0, event: events[2])]
        try test.store.commit(reported)
        try test.reopen()
        #expect(
            try test.store.undelivered(test.bucket) == [events[2]], "what was told is gone, what came since is there")
    }

    // MARK: - The machine

    /// Two devices have set one member differently; the first is online again, and a tick brings it the other's value.
    private func meeting() throws -> Simulation {
        var world: Simulation = try .sealed(2, seed: 4)
        let key = try EntityKey(Self.key)
        try world.set(0, key, to: ["n": 0])
        world.expectSettled()
        world.cut(0)
        world.perform(0, world.clients[0].machine.goOffline(now: world.now))
        try world.set(0, key, to: ["n": "mine"])
        try world.set(1, key, to: ["n": "theirs"])
        world.expectSettled(only: 1)
        return world
    }

    @Test(
        "an event stored before a crash and not delivered is delivered after the restart, and then never again"
    )
    func crash() throws {
        var world = try meeting()
        world.goOnline(0)
        // Everything is read and stored, and nothing is delivered: the program crashes before that.
        world.isDeaf = true
        world.expectSettled()
        #expect(world.conflicts.isEmpty && world.alarms.isEmpty)
        world.isDeaf = false
        try world.crash(0)
        let (bucket, now) = (world.bucket, world.now)
        let (events, actions) = try world.clients[0].machine.takeUndelivered(
            bucket, now: now)
        world.perform(0, actions)
        #expect(losing(events) == [.string("theirs")])
        #expect(try world.clients[0].machine.takeUndelivered(bucket, now: now).0.isEmpty)
        try world.crash(0)
        #expect(try world.clients[0].machine.takeUndelivered(bucket, now: now).0.isEmpty)
    }

    @Test("a turn that the store refuses leaves no event; the next one that is stored does")
    func failingStore() throws {
        var world = try meeting()
        world.goOnline(0)
        world.isDeaf = true
        for _ in 0..<40 {
            world.clients[0].store.failsNextCommit = true
            _ = world.settle(rounds: 1)
            #expect(world.clients[0].store.undelivered(world.bucket).count <= 1)
        }
        world.expectSettled()
        #expect(losing(world.clients[0].store.undelivered(world.bucket)) == [.string("theirs")])
    }

    @Test("a delivered event is forgotten, and one of several delivered in part is not")
    func inPart() throws {
        var world = try meeting()
        world.goOnline(0)
        world.isDeaf = true
        world.expectSettled()
        let (bucket, now) = (world.bucket, world.now)
        _ = world.clients[0].machine.delivered(bucket, count: 2, now: now)
        #expect(world.clients[0].store.undelivered(bucket).count == 1)
        _ = world.clients[0].machine.delivered(bucket, count: 1, now: now)
        #expect(world.clients[0].store.undelivered(bucket).isEmpty)
        #expect(try world.clients[0].machine.takeUndelivered(bucket, now: now).0.isEmpty)
    }

    /// Both devices have set the member, the first one offline, and its value has lost: one more conflict is stored.
    private func lose(_ world: inout Simulation, _ theirs: String) throws {
        let key = try EntityKey(Self.key)
        try world.set(1, key, to: ["n": 0])
        world.expectSettled()
        world.cut(0)
        world.perform(0, world.clients[0].machine.goOffline(now: world.now))
        try world.set(0, key, to: ["n": .string("mine \(theirs)")])
        try world.set(1, key, to: ["n": .string(theirs)])
        world.expectSettled(only: 1)
        world.goOnline(0)
        world.expectSettled()
    }

    @Test("an event that the store fails to forget is not delivered again, and is forgotten with the next one")
    func failingToForget() throws {
        var world = try meeting()
        world.goOnline(0)
        world.expectSettled()
        let bucket = world.bucket
        world.clients[0].store.failsNextCommit = true
        world.perform(0, world.clients[0].machine.delivered(bucket, count: 1, now: world.now))
        world.expectSettled()
        #expect(world.clients[0].store.undelivered(bucket).count == 1)
        #expect(try world.clients[0].machine.undelivered(bucket).isEmpty)
        try lose(&world, "second")
        #expect(losing(try world.clients[0].machine.undelivered(bucket)) == ["second"])
        world.perform(0, world.clients[0].machine.delivered(bucket, count: 1, now: world.now))
        #expect(world.clients[0].store.undelivered(bucket).isEmpty)
        try lose(&world, "third")
        #expect(losing(try world.clients[0].machine.undelivered(bucket)) == ["third"], "no mark of old ones is left")
    }

    @Test("a turn or a query that fails in the store does not change which events are delivered")
    func failingBetween() throws {
        var world = try meeting()
        world.goOnline(0)
        world.expectSettled()
        try lose(&world, "second")
        let (bucket, now) = (world.bucket, world.now)
        world.perform(0, world.clients[0].machine.gave(bucket, count: 1, now: world.now))
        world.clients[0].store.failsNextCommit = true
        #expect(throws: ClientError.self) {
            _ = try world.clients[0].machine.set(bucket, EntityKey("other"), to: ["n": 1], now: now)
        }
        #expect(losing(try world.clients[0].machine.undelivered(bucket)) == ["second"])
        world.clients[0].store.failsNextCommit = true
        #expect(throws: ClientError.self) { try world.clients[0].machine.takeUndelivered(bucket, now: now) }
        #expect(losing(try world.clients[0].machine.undelivered(bucket)) == ["second"], "it was not given")
        world.perform(0, world.clients[0].machine.gave(bucket, count: 1, now: world.now))
        #expect(world.clients[0].store.undelivered(bucket).isEmpty)
    }

    // MARK: - Sessions

    /// A session over a file.
    private func session(_ server: LoopbackServer, _ path: String, _ isOnline: Bool = true) async throws -> Session {
        try await server.session(
            store: { () throws(ClientError) in try SQLiteLocalStore(path: path) }, startsOnline: isOnline)
    }

    /// Another client, which has created the object.
    private func writer(_ server: LoopbackServer, _ fields: [String] = ["n"]) async throws -> (Session, Bucket) {
        let session = try await server.session()
        let bucket = try await session.bucket("notes", .sealed)
        try await bucket.set(Self.key, to: JSONObject(fields.map { (key: $0, value: 0) }))
        try await bucket.waitUntilSynced(timeout: .seconds(120))
        return (session, bucket)
    }

    /// Both clients set one field or several, this one offline.
    private func contend(
        _ session: Session, _ mine: Bucket, _ theirs: Bucket, _ fields: [String] = ["n"]
    ) async throws {
        await session.goOffline()
        try await mine.set(Self.key, to: JSONObject(fields.map { (key: $0, value: .string("mine")) }))
        try await theirs.set(Self.key, to: JSONObject(fields.map { (key: $0, value: .string("theirs \($0)")) }))
        try await theirs.waitUntilSynced(timeout: .seconds(120))
        await session.goOnline()
    }

    @Test("the next session on a store gets the events once, by undelivered() or as the first of its events")
    func nextSession() async throws {
        for listens in [false, true] {
            let (server, folder) = (LoopbackServer(), try TemporaryFolder())
            let path = folder.file("a.db")
            let (other, theirs) = try await writer(server)
            let first = try await session(server, path)
            let mine = try await first.bucket("notes", .sealed)
            try await mine.waitUntilSynced(timeout: .seconds(120))
            try await contend(first, mine, theirs)
            try await mine.waitUntilSynced(timeout: .seconds(120))
            await first.close()

            let second = try await session(server, path, false)
            let again = try await second.bucket("notes", .sealed)
            if listens {
                var events = await again.changes.makeAsyncIterator()
                let event = await events.next()
                #expect(losing(event.map { [$0] } ?? []) == [.string("theirs n")])
            } else {
                #expect(losing(await again.undelivered()) == [.string("theirs n")])
            }
            #expect(await again.undelivered().isEmpty)
            await second.close()
            let third = try await session(server, path, false)
            #expect(await (try third.bucket("notes", .sealed)).undelivered().isEmpty)
            await third.close()
            await other.close()
        }
    }

    @Test("an event that a reader got is not delivered again, neither now nor after a restart")
    func reader() async throws {
        let (server, folder) = (LoopbackServer(), try TemporaryFolder())
        let path = folder.file("a.db")
        let (other, theirs) = try await writer(server)
        let first = try await session(server, path)
        let mine = try await first.bucket("notes", .sealed)
        try await mine.waitUntilSynced(timeout: .seconds(120))
        var events = await mine.changes.makeAsyncIterator()
        try await contend(first, mine, theirs)
        var reported = [JSONValue?]()
        while reported.isEmpty, let event = await events.next() { reported = losing([event]) }
        #expect(reported == [.string("theirs n")])
        try await mine.waitUntilSynced(timeout: .seconds(120))
        #expect(await mine.undelivered().isEmpty)
        await first.close()
        let second = try await session(server, path, false)
        #expect(await (try second.bucket("notes", .sealed)).undelivered().isEmpty)
        await second.close()
        await other.close()
    }

    // MARK: - Slow readers

    /// A device with a reader of one place, which is occupied, has lost conflicts in these fields.
    private func slow(
        _ server: LoopbackServer, _ path: String, _ fields: [String] = ["n"]
    ) async throws -> (session: Session, bucket: Bucket, stream: AsyncStream<BucketEvent>, other: Session) {
        let (other, theirs) = try await writer(server, fields)
        let session = try await self.session(server, path)
        let mine = try await session.bucket("notes", .sealed)
        try await mine.waitUntilSynced(timeout: .seconds(120))
        let stream = await reader(of: mine)
        try await contend(session, mine, theirs, fields)
        try await mine.waitUntilSynced(timeout: .seconds(120))
        return (session, mine, stream, other)
    }

    /// A reader with one place.
    private func reader(of bucket: Bucket, reportsCaughtUp: Bool = false) async -> AsyncStream<BucketEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: BucketEvent.self, bufferingPolicy: .bufferingOldest(1))
        await bucket.engine.listen(bucket.bucket, reportsCaughtUp: reportsCaughtUp, continuation)
        return stream
    }

    /// Reads until `count` conflicts have come.
    private func read(_ events: inout AsyncStream<BucketEvent>.Iterator, _ count: Int) async -> [BucketEvent] {
        var reported = [BucketEvent]()
        while losing(reported).count < count, let event = await events.next() { reported.append(event) }
        return reported
    }

    private func texts(_ events: [BucketEvent]) -> [String] { losing(events).compactMap { $0?.stringValue }.sorted() }

    private func isOverrun(_ event: BucketEvent) -> Bool { if case .overrun = event { true } else { false } }

    @Test("waiting events take no room from the caughtUp event of a bucket that was read before")
    func caughtUp() async throws {
        let (server, folder) = (LoopbackServer(), try TemporaryFolder())
        let (other, theirs) = try await writer(server)
        let session = try await session(server, folder.file("a.db"))
        let mine = try await session.bucket("notes", .sealed)
        try await mine.waitUntilSynced(timeout: .seconds(120))
        try await contend(session, mine, theirs)
        try await mine.waitUntilSynced(timeout: .seconds(120))
        var events = await reader(of: mine, reportsCaughtUp: true)
            .makeAsyncIterator()
        #expect(await events.next() == .caughtUp)
        #expect(texts(await read(&events, 1)) == ["theirs n"])
        await session.close()
        await other.close()
    }

    @Test("a reader without room gets the events once it has some, each once, after an overrun event")
    func room() async throws {
        let (server, folder) = (LoopbackServer(), try TemporaryFolder())
        let device = try await slow(server, folder.file("a.db"), ["n", "o", "p"])
        var events = device.stream.makeAsyncIterator()
        let reported = await read(&events, 3)
        #expect(texts(reported) == ["theirs n", "theirs o", "theirs p"])
        let place: Int = try #require(reported.firstIndex(where: isOverrun))
        #expect(losing(Array(reported[..<place])).isEmpty)
        #expect(await device.bucket.undelivered().isEmpty)
        await device.session.close()
        while let event = await events.next() { #expect(losing([event]).isEmpty) }
        let again = try await session(server, folder.file("a.db"), false)
        #expect(await (try again.bucket("notes", .sealed)).undelivered().isEmpty)
        await again.close()
        await device.other.close()
    }

    /// Makes the machine report this event, and store it.
    private func report(_ bucket: Bucket, _ position: Int) async throws {
        try await bucket.engine.act { (machine, now) throws(ClientError) in
            let actions = try machine.runTurn(now) { (machine) throws(ClientError) in
                let event = BucketEvent.integrity(IntegrityReport(key: "k", stoppedAfter: position))
                machine.buckets[0].reportOnce(event, &machine.turn)
            }
            return ((), actions)
        }
    }

    /// Number of times that the store was asked for all its undelivered events.
    private func reads(_ bucket: Bucket) async throws -> Int {
        try await bucket.engine.act { (machine, _) throws(ClientError) in
            ((machine.store as? MemoryLocalStore)?.undeliveredReads ?? -1, [])
        }
    }

    @Test("stored events are not read again for each new one while a reader has no room; it gets all in order, once")
    func manyMore() async throws {
        let session = try await LoopbackServer().session(
            store: { () throws(ClientError) in MemoryLocalStore() }, startsOnline: false)
        let bucket = try await session.bucket("notes", .sealed)
        for position in 0..<3 { try await report(bucket, position) }
        let before = try await reads(bucket)
        var events = await reader(of: bucket).makeAsyncIterator()
        for position in 3..<13 { try await report(bucket, position) }
        #expect(try await reads(bucket) == before + 1)
        for position in 0..<13 {
            let event = await events.next()
            #expect(event == .integrity(IntegrityReport(key: "k", stoppedAfter: position)))
        }
        #expect(await bucket.undelivered().isEmpty)
        #expect(try await reads(bucket) <= before + 3)
        await session.close()
    }

    /// The recipient of events that a reader had no room for.
    enum Adopter: CaseIterable { case asker, otherReader, nextGeneration }

    @Test(
        "events that a reader had no room for go to the next query, reader or session, once",
        arguments: Adopter.allCases)
    func adopters(adopter: Adopter) async throws {
        let (server, folder) = (LoopbackServer(), try TemporaryFolder())
        let device = try await slow(server, folder.file("a.db"))
        var found = [JSONValue?]()
        switch adopter {
        case .asker: found = losing(await device.bucket.undelivered())
        case .otherReader:
            var events = await device.bucket.changes.makeAsyncIterator()
            found = losing(await read(&events, 1))
        case .nextGeneration: break
        }
        if adopter != .nextGeneration { #expect(await device.bucket.undelivered().isEmpty) }
        await device.session.close()
        for await event in device.stream { #expect(losing([event]).isEmpty, "it never had them") }
        let again = try await session(server, folder.file("a.db"), false)
        found += losing(await (try again.bucket("notes", .sealed)).undelivered())
        #expect(found == [.string("theirs n")], "once")
        await again.close()
        await device.other.close()
    }

    @Test("a new reader with little room gets all events in turn, and a query in between the remaining ones")
    func smallReader() async throws {
        for asks in [false, true] {
            let (server, folder) = (LoopbackServer(), try TemporaryFolder())
            let device = try await slow(server, folder.file("a.db"), ["n", "o", "p"])
            await device.session.close()
            let again = try await session(server, folder.file("a.db"), false)
            let bucket = try await again.bucket("notes", .sealed)
            var events = await reader(of: bucket).makeAsyncIterator()
            let rest = asks ? await bucket.undelivered() : []
            #expect(rest.count == (asks ? 2 : 0))
            let reported = await read(&events, asks ? 1 : 3)
            #expect(texts(reported + rest) == ["theirs n", "theirs o", "theirs p"])
            #expect(await bucket.undelivered().isEmpty)
            await again.close()
            await device.other.close()
        }
    }
}
