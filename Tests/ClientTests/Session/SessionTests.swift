import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

@Suite("Sessions and buckets as an app uses them", .timeLimit(.minutes(15)))
struct SessionTests {
    private let server = LoopbackServer()

    @Test(
        "an object set in one session is readable in another one, which gets an event",
        arguments: BucketKind.allCases)
    func twoSessions(kind: BucketKind) async throws {
        let (one, two) = (try await server.session(), try await server.session())
        let (notes, other) = (
            try await one.bucket("notes", kind), try await two.bucket("notes", kind)
        )
        try await other.waitUntilSynced(timeout: .seconds(120))
        var events = await other.changes.makeAsyncIterator()
        try await notes.set("today", to: ["title": "Oak"])
        guard case .changed(let change)? = await events.next() else { throw NotAnObject() }
        #expect(change.key == "today" && change.isNew && change.origin == .remote)
        #expect(try await other.get("today") == ["title": "Oak"])
        try await other.editText("today", path: ["title"], at: 3, inserting: " tree")
        try await other.waitUntilSynced(timeout: .seconds(120))
        try await notes.waitUntilSynced(timeout: .seconds(120))
        #expect(try kind.object(server, "today") == ["title": "Oak tree"])
        #expect(try await other.keys() == ["today"])
        #expect(try await other.pendingCount == 0)
        await one.close()
        await two.close()
    }

    @Test(
        "a reader that asks for it gets caughtUp once, also for a bucket that was read before it listened",
        arguments: BucketKind.allCases)
    func followsLate(kind: BucketKind) async throws {
        let (one, two) = (try await server.session(), try await server.session())
        let (notes, other) = (
            try await one.bucket("notes", kind), try await two.bucket("notes", kind)
        )
        try await other.waitUntilSynced(timeout: .seconds(120))
        var events = await other.changesTellingCaughtUp.makeAsyncIterator()
        try await notes.set("today", to: ["title": "Oak"])
        #expect(await events.next() == .caughtUp)
        guard case .changed? = await events.next() else { throw NotAnObject() }
        await one.close()
        await two.close()

        // Not read before: the event comes when the bucket has been read, and only then.
        let third = try await server.session(startsOnline: false)
        let late = try await third.bucket("notes", kind)
        var all = await late.changesTellingCaughtUp.makeAsyncIterator()
        await third.goOnline()
        guard case .changed(let change)? = await all.next() else { throw NotAnObject() }
        #expect(change.key == "today")
        #expect(await all.next() == .caughtUp)
        await third.close()
    }

    @Test("edits made offline are sent when the session goes online", arguments: BucketKind.allCases)
    func offline(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        try await notes.set("a", to: ["n": 1])
        #expect(try await notes.pendingCount == 1)
        #expect(await session.currentStatus == .offline(.requested))
        await #expect(throws: ClientError.self) { try await notes.waitUntilSynced(timeout: .milliseconds(20)) }
        await session.goOnline()
        try await notes.waitUntilSynced(timeout: .seconds(120))
        #expect(try await notes.pendingCount == 0)
        await session.close()
    }

    @Test("the status leads from offline over connecting to up to date, and to closed", arguments: BucketKind.allCases)
    func status(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        var seen = [SyncStatus]()
        let stream = await session.status
        await session.goOnline()
        try await notes.waitUntilSynced(timeout: .seconds(120))
        await session.close()
        for await status in stream { seen.append(status) }
        #expect(seen.first == .offline(.requested))
        #expect(seen.contains(.connecting))
        #expect(seen.contains(.upToDate))
        #expect(seen.last == .offline(.closed))
    }

    @Test("the text of a status is a sentence without names of the program's code")
    func statusTexts() {
        let reasons: [OfflineReason] = [
            .requested, .unreachable("no route"), .untrusted("no route"), .unauthorized("no route"),
            .wrongAccount("ann"), .storeFailed("no route"), .closed,
        ]
        let statuses: [SyncStatus] = [
            .connecting, .indexing(done: 2, of: nil), .indexing(done: 2, of: 5), .syncing(pending: 1),
            .syncing(pending: 7), .upToDate,
        ]
        let texts = (statuses + reasons.map(SyncStatus.offline)).map(\.text)
        for text in texts {
            #expect(
                !text.isEmpty && !text.contains("(") && !text.contains("Optional") && !text.contains("\""), "\(text)")
        }
        #expect(Set(texts).count == texts.count - 1, "two of them say what they were told, as it is")
        #expect(texts[2] == "reading objects, 2 of 5 so far" && texts[4].hasPrefix("7 "))
        #expect(texts[7] == "no route" && texts[9].hasSuffix(": no route"))
    }

    @Test("a file store restores its objects at the next start, unsent edits included", arguments: BucketKind.allCases)
    func restart(kind: BucketKind) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let open: @Sendable () throws(ClientError) -> any LocalStore = { () throws(ClientError) in
            try SQLiteLocalStore(path: path)
        }
        let first = try await server.session(store: open)
        let notes = try await first.bucket("notes", kind)
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: .seconds(120))
        await first.goOffline()
        try await notes.set("b", to: ["n": 2])
        let refused = await #expect(throws: ClientError.self) { try await server.session(store: open) }
        #expect(refused?.code == .storeInUse)
        await first.close()
        let second = try await server.session(store: open)
        #expect(try await second.buckets == ["notes"])
        let again = try await second.bucket("notes", kind)
        #expect(try await again.keys() == ["a", "b"])
        try await again.waitUntilSynced(timeout: .seconds(120))
        #expect(try kind.object(server, "b") == ["n": 2])
        await second.close()
        let foreign = await #expect(throws: ClientError.self) {
            try await server.session(store: open, app: "another")
        }
        #expect(foreign?.code == .storeMismatch)
    }

    @Test("a session reconnects to a server that was down, and syncs", arguments: BucketKind.allCases)
    func outage(kind: BucketKind) async throws {
        let session = try await server.session()
        let notes = try await session.bucket("notes", kind)
        try await notes.waitUntilSynced(timeout: .seconds(120))
        server.setDown(true)
        for await status in await session.status { if case .offline = status { break } }
        try await notes.set("a", to: ["n": 1])
        server.setDown(false)
        try await notes.waitUntilSynced(timeout: .seconds(120))
        await session.close()
    }

    private struct Note: Codable, Equatable {
        var title: String
        var count: Int
    }

    @Test(
        "objects are read and written as values of the app's own types; unknown keys stay",
        arguments: BucketKind.allCases)
    func codable(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        try await notes.set("a", to: Note(title: "Oak", count: 1))
        #expect(try await notes.get("a", as: Note.self) == Note(title: "Oak", count: 1))
        try await notes.update("a") { $0?["extra"] = true }
        try await notes.update("a", as: Note(title: "", count: 0)) { $0.count += 1 }
        #expect(try await notes.get("a") == ["title": "Oak", "count": 2, "extra": true])
        try await notes.set("bad", to: ["title": 7])
        let wrong = await #expect(throws: ClientError.self) { try await notes.get("bad", as: Note.self) }
        #expect(wrong?.code == .invalidValue)
        await #expect(throws: ClientError.self) { try await notes.set("x", to: [1, 2, 3]) }
        await session.close()
    }

    @Test("old versions come from the server, newest first", arguments: BucketKind.allCases)
    func history(kind: BucketKind) async throws {
        let session = try await server.session()
        let notes: Bucket = try await session.bucket("notes", kind)
        try await notes.waitUntilSynced(timeout: .seconds(120))
        for number: Int64 in 1...25 {
            try await notes.set("a", to: ["n": .number(JSONNumber(number))])
            try await notes.waitUntilSynced(timeout: .seconds(120))
        }
        let all = try await notes.history(of: "a")
        #expect(all.map(\.version) == Array((1...25).reversed()))
        #expect(all.last?.object == ["n": 1])
        #expect(try await notes.history(of: "a", limit: 3).map(\.version) == [25, 24, 23])
        #expect(try await notes.version(99, of: "a") == nil)
        await session.goOffline()
        let missing = await #expect(throws: ClientError.self) { try await notes.history(of: "a") }
        #expect(missing?.code == .offline)
        await session.close()
    }

    @Test(
        "a reader that does not read gets the number of events that it missed",
        arguments: BucketKind.allCases)
    func overrun(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        let lazy = await notes.changes
        let name = try BucketName("notes")
        let key = try EntityKey("a")
        try await session.engine.act { (machine, now) throws(ClientError) in
            var actions = [SyncAction]()
            for number in 0..<StreamLimits.eventsMax + 10 {
                actions += try machine.set(name, key, to: ["n": .number(JSONNumber(Int64(number)))], now: now)
            }
            return ((), actions)
        }
        var missed = 0
        var seen = 0
        for await event in lazy {
            if case .overrun(let lost) = event {
                missed = lost
                break
            }
            seen += 1
        }
        #expect(seen == StreamLimits.eventsMax)
        #expect(missed == 10)
        await session.close()
    }

    @Test("a closed session fails with a clear error, and its streams end", arguments: BucketKind.allCases)
    func closed(kind: BucketKind) async throws {
        let session = try await server.session()
        let notes = try await session.bucket("notes", kind)
        let changes = await notes.changes
        await session.close()
        for await _ in changes {}
        let refused = await #expect(throws: ClientError.self) { try await notes.get("a") }
        #expect(refused?.code == .closed)
        await session.goOnline()
        #expect(await session.currentStatus == .offline(.closed))
    }

    @Test("a session that is no longer referenced ends by itself and frees its store", arguments: BucketKind.allCases)
    func forgotten(kind: BucketKind) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let open: @Sendable () throws(ClientError) -> any LocalStore = { () throws(ClientError) in
            try SQLiteLocalStore(path: path)
        }
        do {
            let session = try await server.session(store: open)
            let notes = try await session.bucket("notes", kind)
            try await notes.set("a", to: ["n": 1])
        }
        var again: Session?
        // Its thread ends asynchronously.
        let deadline = ContinuousClock.Instant.now + .seconds(120)
        while again == nil, .now < deadline {
            again = try? await server.session(store: open, startsOnline: false)
            await pauseBetweenLooks()
        }
        let notes = try await #require(again).bucket("notes", kind)
        #expect(try await notes.get("a") == ["n": 1])
        await again?.close()
    }

    @Test("a cancelled wait ends with an error", arguments: BucketKind.allCases)
    func cancelled(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        let task: Task<Void, any Error> = Task { try await notes.waitUntilSynced(timeout: .seconds(3_600)) }
        task.cancel()
        await #expect(throws: ClientError.self) { try await task.value }
        await session.close()
    }

    @Test(
        "an invalid key is refused: invalidName", arguments: ["", "a b", "a/b", String(repeating: "k", count: 257)],
        BucketKind.allCases)
    func names(key: String, kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        let refused = await #expect(throws: ClientError.self) { try await notes.set(key, to: [:]) }
        #expect(refused?.code == .invalidName)
        await session.close()
    }
}

@Suite("Server addresses")
struct EndpointTests {
    @Test(
        "an address with a known scheme, a port or a path is normalized",
        arguments: [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"), ("https://h.example/", "https://h.example"),
            ("ws://h:1/a/b/", "http://h:1/a/b"), ("WSS://[::1]:9", "https://[::1]:9"),
        ])
    func good(text: String, address: String) throws { #expect(try Endpoint(text).httpAddress == address) }

    @Test(
        "any other address is refused",
        arguments: [
            "", "example.com", "ftp://h", "http:/h", "http://", "http://u@h", "http://h?x", "http://h#x", "http://h h",
            "https://ü",
        ])
    func bad(text: String) { #expect(throws: ClientError.self) { try Endpoint(text) } }
}
