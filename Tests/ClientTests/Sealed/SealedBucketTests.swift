import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

@Suite("Sealed buckets of sessions", .timeLimit(.minutes(10)))
struct SealedBucketTests {
    private let server = LoopbackServer()
    private let keys: SealedBucketKeys
    private static let patience = Duration.seconds(120)

    init() throws {
        keys = try Simulation.keys()
        server.with { $0.sealedBuckets = ["notes"] }
    }

    private func device(
        _ store: @escaping @Sendable () throws(ClientError) -> any LocalStore = { MemoryLocalStore() }
    ) async throws -> (Session, Bucket) {
        let session = try await server.session(store: store)
        return (session, try await session.bucket("notes", sealedBy: keys))
    }

    private func type(_ bucket: Bucket, _ key: String, at place: Int, _ text: String) async throws {
        try await bucket.editText(key, path: ["t"], at: place, inserting: text)
    }

    /// Everything that the server holds of the bucket, as one text.
    private var held: String {
        server.with { server in
            (server.buckets["notes"]?.entities ?? [:]).map { key, entity in
                key + (entity.object.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "-")
            }.joined()
        }
    }

    private func text(_ bucket: Bucket, _ key: String) async throws -> String? {
        try await bucket.get(key)?["t"]?.stringValue
    }

    @Test("two devices type into one object, both and a third end with one text, and the server holds none of it")
    func typing() async throws {
        let (_, first) = try await device()
        let (_, second) = try await device()
        try await first.set("diary", to: ["t": "secret"])
        try await first.waitUntilSynced(timeout: Self.patience)
        try await second.waitUntilSynced(timeout: Self.patience)
        for number in 0..<40 {
            try await type(first, "diary", at: 0, "a\(number % 10)")
            let length = try await text(second, "diary")?.utf16.count ?? 0
            if length > 0 { try await type(second, "diary", at: length, "b") }
            if number % 10 == 9 {
                try await first.waitUntilSynced(timeout: Self.patience)
                try await second.waitUntilSynced(timeout: Self.patience)
            }
        }
        for _ in 0..<2 {
            try await first.waitUntilSynced(timeout: Self.patience)
            try await second.waitUntilSynced(timeout: Self.patience)
        }
        let (_, third) = try await device()
        try await third.waitUntilSynced(timeout: Self.patience)
        let end = try await text(third, "diary")
        #expect(try await third.keys() == ["diary"])
        #expect(end?.filter { $0 == "a" }.count == 40)
        for letter in "secret" { #expect(end?.contains(letter) == true) }
        #expect(try await text(first, "diary") == end)
        #expect(try await text(second, "diary") == end)
        #expect(!held.contains("secret") && !held.contains("diary") && held.contains("\"z\":1"))
    }

    @Test("edits made offline are kept over a restart, and the store remembers that the bucket is sealed")
    func restart() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let make: @Sendable () throws(ClientError) -> any LocalStore = { () throws(ClientError) in
            try SQLiteLocalStore(path: path)
        }
        var (session, bucket) = try await device(make)
        try await bucket.set("one", to: ["t": "x"])
        try await bucket.waitUntilSynced(timeout: Self.patience)
        server.setDown(true)
        try await type(bucket, "one", at: 1, "y")
        try await type(bucket, "one", at: 2, "z")
        try await bucket.set("two", to: ["t": "new"])
        await session.close()
        session = try await server.session(store: make)
        await #expect { _ = try await session.bucket("notes") } throws: { ($0 as? ClientError)?.code == .sealed }
        bucket = try await session.bucket("notes", sealedBy: keys)
        #expect(try await text(bucket, "one") == "xyz")
        #expect(try await bucket.keys() == ["one", "two"])
        server.setDown(false)
        try await bucket.waitUntilSynced(timeout: Self.patience)
        let (_, other) = try await device()
        try await other.waitUntilSynced(timeout: Self.patience)
        #expect(try await text(other, "one") == "xyz")
        #expect(try await text(other, "two") == "new")
        let open = try await session.bucket("plain")
        try await open.set("k", to: ["t": "clear"])
        try await open.waitUntilSynced(timeout: Self.patience)
        let plain = try SealedBucketKeys(
            owner: "u", app: "app", bucket: "plain", secrets: [0: SecureBytes(copying: Array(repeating: 1, count: 32))])
        await #expect {
            _ = try await session.bucket("plain", sealedBy: plain)
        } throws: { ($0 as? ClientError)?.code == .sealed }
        await session.close()
    }

    @Test("long typing leaves a snapshot every 64 operations, from which a new device reads")
    func compaction() async throws {
        let (_, bucket) = try await device()
        try await bucket.set("long", to: ["t": ""])
        // Otherwise the first letter may still be part of the creation.
        try await bucket.waitUntilSynced(timeout: Self.patience)
        for number in 0..<200 {
            try await type(bucket, "long", at: number, "\(number % 10)")
            try await bucket.waitUntilSynced(timeout: Self.patience)
        }
        let key = keys.serverKey(of: "long")
        let entity = try SealedEntity(
            try #require(server.with { $0.buckets["notes"]?.entities[key]?.object }))
        #expect(entity.position == 200 && entity.tail.count < 64, "\(entity.position), \(entity.tail.count) behind")
        #expect((entity.newest?.position ?? 1) % 64 == 0 && entity.snapshots.count == 1)
        let (_, fresh) = try await device()
        try await fresh.waitUntilSynced(timeout: Self.patience)
        #expect(try await text(fresh, "long") == (0..<200).map { "\($0 % 10)" }.joined())
    }

    @Test("two devices that create one key at once keep both their members, and the losing value is reported")
    func createdTwice() async throws {
        let (one, first) = try await device()
        let (two, second) = try await device()
        await one.goOffline()
        await two.goOffline()
        let events = await second.changes
        try await first.set("k", to: ["a": 1, "t": "first"])
        try await second.set("k", to: ["b": 2, "t": "second"])
        await one.goOnline()
        try await first.waitUntilSynced(timeout: Self.patience)
        await two.goOnline()
        try await second.waitUntilSynced(timeout: Self.patience)
        try await first.waitUntilSynced(timeout: Self.patience)
        #expect(try await second.get("k") == ["a": 1, "b": 2, "t": "second"])
        let (_, third) = try await device()
        try await third.waitUntilSynced(timeout: Self.patience)
        #expect(try await third.get("k") == ["a": 1, "b": 2, "t": "second"])
        await two.close()
        var losing = [JSONValue]()
        for await event in events {
            if case .conflict(let report) = event, let value = report.losing { losing.append(value) }
        }
        #expect(losing == ["first"])
    }

    @Test("a deleted object is gone everywhere and from the server, and can be recreated without an alarm")
    func deleted() async throws {
        let (_, first) = try await device()
        let (other, second) = try await device()
        try await first.set("k", to: ["t": "one"])
        try await first.waitUntilSynced(timeout: Self.patience)
        try await second.waitUntilSynced(timeout: Self.patience)
        await other.goOffline()
        let events = await second.changes
        try await first.remove("k")
        try await first.waitUntilSynced(timeout: Self.patience)
        let key = keys.serverKey(of: "k")
        #expect(server.with { $0.buckets["notes"]?.entities[key]?.object } == nil)
        #expect(try await first.keys().isEmpty)
        await other.goOnline()
        try await second.waitUntilSynced(timeout: Self.patience)
        #expect(try await second.get("k") == nil)
        try await second.set("k", to: ["t": "two"])
        try await second.waitUntilSynced(timeout: Self.patience)
        try await first.waitUntilSynced(timeout: Self.patience)
        #expect(try await text(first, "k") == "two")
        await other.close()
        for await event in events {
            if case .integrity(let report) = event { Issue.record("a false alarm: \(report)") }
        }
    }

    @Test("old versions are read from what the server keeps")
    func history() async throws {
        let (_, bucket) = try await device()
        try await bucket.set("k", to: ["t": "one"])
        try await bucket.waitUntilSynced(timeout: Self.patience)
        try await bucket.set("k", to: ["t": "two"])
        try await bucket.waitUntilSynced(timeout: Self.patience)
        let versions = try await bucket.history(of: "k")
        #expect(versions.map(\.object) == [["t": "two"], ["t": "one"]])
    }

    @Test("a clear object is reported and not shown, and an open bucket does not write over a sealed object")
    func modes() async throws {
        let (_, sealed) = try await device()
        try await sealed.set("k", to: ["t": "one"])
        try await sealed.waitUntilSynced(timeout: Self.patience)
        let open = try await server.session()
        let bucket = try await open.bucket("notes")
        try await bucket.waitUntilSynced(timeout: Self.patience)
        let key = keys.serverKey(of: "k")
        await #expect { try await bucket.set(key, to: ["t": "clear"]) } throws: {
            ($0 as? ClientError)?.code == .sealed
        }
        // A server that accepts it anyway.
        let events = await sealed.changes
        server.with { $0.sealedBuckets = [] }
        try await bucket.set(keys.serverKey(of: "other"), to: ["t": "clear"])
        try await bucket.waitUntilSynced(timeout: Self.patience)
        var reported: IntegrityReport?
        for await event in events {
            guard case .integrity(let report) = event else { continue }
            reported = report
            break
        }
        #expect(reported?.kind == .clear && reported?.needsChoice == true)
        #expect(try await sealed.get("other") == nil)
        #expect(try await sealed.keys() == ["k"])
        await open.close()
    }

    @Test(
        "a bare removal hides nothing: the copy stays, read-only until the user keeps it or lets it go",
        arguments: [true, false])
    func removed(keepsMine: Bool) async throws {
        let (_, first) = try await device()
        try await first.set("k", to: ["t": "mine"])
        try await first.waitUntilSynced(timeout: Self.patience)
        let events = await first.changes
        let outsider = server.connect()
        server.send(
            Array(#"0:init:{"clientid":"c","api":"1.1","token":"token","app_id":"app","name":"notes"}"#.utf8),
            from: outsider)
        server.send(Array(#"0:c:{"id":"\#(keys.serverKey(of: "k"))","ccid":"x","o":"-"}"#.utf8), from: outsider)
        for await event in events {
            guard case .integrity(let report) = event else { continue }
            #expect(report.kind == .removed && report.key == "k")
            break
        }
        #expect(try await text(first, "k") == "mine")
        await #expect { try await type(first, "k", at: 0, "x") } throws: { ($0 as? ClientError)?.code == .integrity }
        if keepsMine {
            #expect(try await first.keepMine("k"))
            try await type(first, "k", at: 0, "still ")
            try await first.waitUntilSynced(timeout: Self.patience)
            let (_, second) = try await device()
            try await second.waitUntilSynced(timeout: Self.patience)
            #expect(try await text(second, "k") == "still mine")
        } else {
            #expect(try await first.takeServers("k"))
            #expect(try await first.get("k") == nil)
            try await first.waitUntilSynced(timeout: Self.patience)
        }
        #expect(try await first.problem(of: "k") == nil)
    }
}
