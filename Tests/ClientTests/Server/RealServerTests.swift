import Glibc
import Testing
import ThicketClient
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

@Suite("Sessions over real sockets and the real server", .timeLimit(.minutes(15)))
struct RealServerTests {
    private let store: MemoryStore
    private let server: TestServer

    init() throws {
        store = try MemoryStore.forTests()
        server = try TestServer(store: store)
    }

    private func session(
        _ token: String = "ann-token", store: StoreLocation = .memory, app: String = "app"
    ) async throws -> Session {
        try await Thicket.connect(server: "http://127.0.0.1:\(server.port)", app: app, token: token, store: store)
    }

    @Test(
        "two sessions type into one text at once: both end with every letter, in the same order",
        arguments: BucketKind.allCases)
    func typing(kind: BucketKind) async throws {
        let sessions = [try await session(), try await session()]
        let notes = [
            try await sessions[0].bucket("notes", kind), try await sessions[1].bucket("notes", kind),
        ]
        try await notes[0].set("doc", to: ["t": ""])
        for bucket in notes { try await bucket.waitUntilSynced(timeout: .seconds(300)) }
        try await waitFor(notes[1], "doc")
        let letters = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
        await withTaskGroup { group in
            for (bucket, text) in zip(notes, letters) {
                group.addTask {
                    for letter in text {
                        _ = try? await bucket.edit("doc") { object, _ in
                            let length = object?["t"]?.stringValue?.utf16.count ?? 0
                            var delta = TextDelta()
                            delta.retain(length / 2)
                            delta.insert(Array(String(letter).utf16))
                            delta.retain(length - length / 2)
                            return ObjectDiff([(key: "t", operation: .text(delta))])
                        }
                    }
                }
            }
        }
        try await agree(notes, "doc")
        let text = try await notes[0].get("doc")?["t"]?.stringValue ?? ""
        #expect(text.sorted() == letters.joined().sorted())
        for session in sessions { await session.close() }
        server.stop()
    }

    @Test(
        "edits made offline on two sides merge when both are back, and a fresh client has the same",
        arguments: BucketKind.allCases)
    func apart(kind: BucketKind) async throws {
        let sessions = [try await session(), try await session()]
        let notes = [
            try await sessions[0].bucket("notes", kind), try await sessions[1].bucket("notes", kind),
        ]
        try await notes[0].set("doc", to: ["t": "the quick fox", "n": 1])
        try await notes[0].set("old", to: ["x": true])
        for bucket in notes { try await bucket.waitUntilSynced(timeout: .seconds(300)) }
        try await waitFor(notes[1], "old")
        for session in sessions { await session.goOffline() }
        try await notes[0].editText("doc", path: ["t"], at: 9, inserting: " brown")
        try await notes[0].remove("old")
        try await notes[1].editText("doc", path: ["t"], at: 13, inserting: " jumps")
        try await notes[1].update("doc") { $0?["n"] = 2 }
        try await notes[1].set("old", to: ["x": false])
        try await notes[1].set("new", to: ["y": .array([1, nil, "z"])])
        for session in sessions { await session.goOnline() }
        try await agree(notes, "doc")
        #expect(try await notes[0].get("doc") == ["t": "the quick brown fox jumps", "n": 2])
        try await agree(notes, "old")
        let fresh = try await session()
        let bucket = try await fresh.bucket("notes", kind)
        try await bucket.waitUntilSynced(timeout: .seconds(300))
        #expect(try await bucket.keys() == notes[0].keys())
        for key in try await bucket.keys() {
            let (one, other) = (try await bucket.get(key), try await notes[1].get(key))
            #expect(one == other)
        }
        for session in sessions + [fresh] { await session.close() }
        server.stop()
    }

    @Test(
        "two sessions set one text to the same value at once, 20 times: it is in the text once",
        arguments: BucketKind.allCases)
    func sameAtOnce(kind: BucketKind) async throws {
        let sessions = [try await session(), try await session()]
        let notes = [
            try await sessions[0].bucket("notes", kind), try await sessions[1].bucket("notes", kind),
        ]
        try await notes[0].set("doc", to: ["t": "shopping:"])
        for bucket in notes { try await bucket.waitUntilSynced(timeout: .seconds(300)) }
        try await waitFor(notes[1], "doc")
        var text = "shopping:"
        for round in 1...20 {
            text += " item \(round)"
            let wanted = text
            await withTaskGroup { group in
                group.addTask { try? await notes[0].set("doc", to: ["t": .string(wanted)]) }
                group.addTask { try? await notes[1].update("doc") { $0?["t"] = .string(wanted) } }
            }
            for bucket in notes { try await bucket.waitUntilSynced(timeout: .seconds(300)) }
            try await agree(notes, "doc")
            #expect(try await notes[0].get("doc") == ["t": .string(wanted)], "round \(round)")
        }
        let fresh = try await session()
        let bucket = try await fresh.bucket("notes", kind)
        try await bucket.waitUntilSynced(timeout: .seconds(300))
        #expect(try await bucket.get("doc") == ["t": .string(text)], "merged by a device that comes later")
        for session in sessions + [fresh] { await session.close() }
        server.stop()
    }

    @Test(
        "a client finds a server that died and started again, and sends everything that waited",
        arguments: BucketKind.allCases)
    func restart(kind: BucketKind) async throws {
        let session = try await session()
        let notes = try await session.bucket("notes", kind)
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: .seconds(300))
        server.abort()
        try await notes.set("a", to: ["n": 2])
        try await notes.set("b", to: ["n": 3])
        let port = server.port
        let again = try TestServer(store: store) {
            $0.listen = ListenAddress(host: "127.0.0.1", port: UInt16(port))
        }
        try await notes.waitUntilSynced(timeout: .seconds(300))
        let other = try await self.session()
        let copy = try await other.bucket("notes", kind)
        try await copy.waitUntilSynced(timeout: .seconds(300))
        #expect(try await copy.get("a") == ["n": 2])
        #expect(try await copy.get("b") == ["n": 3])
        await session.close()
        await other.close()
        again.stop()
    }

    @Test("450 objects arrive with the first sync", arguments: BucketKind.allCases)
    func firstSync(kind: BucketKind) async throws {
        let writer = try await session()
        let notes = try await writer.bucket("notes", kind)
        for number in 0..<450 { try await notes.set("k\(number)", to: ["n": .number(JSONNumber(Int64(number)))]) }
        try await notes.waitUntilSynced(timeout: .seconds(300))
        let folder = try TemporaryFolder()
        let reader = try await session(store: .file(folder.file("a.db")))
        let copy = try await reader.bucket("notes", kind)
        try await copy.waitUntilSynced(timeout: .seconds(300))
        #expect(try await copy.keys().count == 450)
        #expect(try await copy.get("k449") == ["n": 449])
        await writer.close()
        await reader.close()
        server.stop()
    }

    @Test("with a read-only token edits stay local, and the app gets unauthorized", arguments: BucketKind.allCases)
    func readOnly(kind: BucketKind) async throws {
        let session = try await session("read-token")
        let notes = try await session.bucket("notes", kind)
        try await notes.waitUntilSynced(timeout: .seconds(300))
        var events = await notes.changes.makeAsyncIterator()
        try await notes.set("a", to: ["n": 1])
        var refused: RefusedEdit?
        while refused == nil, let event = await events.next() {
            if case .refused(let edit) = event { refused = edit }
        }
        #expect(refused?.error.code == .unauthorized)
        let error = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(error?.code == .unauthorized)
        #expect(try await notes.get("a") == ["n": 1])
        await session.close()
        server.stop()
    }

    @Test("an unknown token fails with unauthorized", arguments: BucketKind.allCases)
    func unknownToken(kind: BucketKind) async throws {
        let session = try await session("no-such-token")
        let notes = try await session.bucket("notes", kind)
        let error = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(error?.code == .unauthorized)
        await session.close()
        server.stop()
    }

    @Test(
        "an object larger than the server's limit is refused (413) and kept, and others still sync",
        arguments: BucketKind.allCases)
    func tooLarge(kind: BucketKind) async throws {
        let session = try await session()
        let notes = try await session.bucket("notes", kind)
        try await notes.set("large", to: ["t": .string(String(repeating: "x", count: 12 << 20))])
        try await notes.set("large2", to: ["t": .string(String(repeating: "x", count: 1_200_000))])
        try await notes.set("small", to: ["t": "y"])
        let error = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(error?.code == .refused)
        #expect(try await notes.info("large").refusal == 413)
        #expect(try await notes.info("small").version == 1)
        await session.close()
        server.stop()
    }

    @Test("old versions can be read, also of a removed object", arguments: BucketKind.allCases)
    func history(kind: BucketKind) async throws {
        let session = try await session()
        let notes: Bucket = try await session.bucket("notes", kind)
        for number: Int64 in 1...12 {
            try await notes.set("a", to: ["n": .number(JSONNumber(number))])
            try await notes.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(try await notes.history(of: "a").map(\.version) == Array((1...12).reversed()))
        try await notes.remove("a")
        try await notes.waitUntilSynced(timeout: .seconds(300))
        #expect(try await notes.history(of: "a").last?.object == ["n": 1])
        await session.close()
        server.stop()
    }

    @Test("an HTTP request returns its status, and fails with a network error without a server")
    func http() async throws {
        let client = try HTTPClient()
        let alive = try await client.request("http://127.0.0.1:\(server.port)/health/live")
        #expect(alive.status == 200)
        let missing = try await client.request("http://127.0.0.1:\(server.port)/none", body: [1, 2, 3])
        #expect(missing.status >= 400)
        server.stop()
        let error = await #expect(throws: ClientError.self) {
            try await client.request("http://127.0.0.1:\(server.port)/health/live")
        }
        #expect(error?.code == .network)
        await #expect(throws: ClientError.self) { try await client.request("file:///etc/passwd") }
        await #expect(throws: ClientError.self) { try await client.request("http://h/", fields: ["A: b\r\nC: d"]) }
    }

    // MARK: - Waiting

    /// Waits until the object exists.
    private func waitFor(_ bucket: Bucket, _ key: String) async throws {
        let events = await bucket.changes
        if try await bucket.get(key) != nil { return }
        for await event in events {
            if case .changed(let change) = event, change.key == key { return }
        }
    }

    /// Waits until all have confirmed everything and hold the same version of the object; bounded by the suite's time
    /// limit.
    private func agree(_ buckets: [Bucket], _ key: String) async throws {
        while true {
            for bucket in buckets { try await bucket.waitUntilSynced(timeout: .seconds(300)) }
            var versions = Set<Int64>()
            for bucket in buckets { versions.insert(try await bucket.info(key).version) }
            if versions.count == 1 { break }
            await pauseBetweenLooks()
        }
        var objects = [JSONObject?]()
        for bucket in buckets { objects.append(try await bucket.get(key)) }
        #expect(objects.allSatisfy { $0 == objects.first }, "\(objects)")
    }
}

@Suite("Errors of a connection that fails")
struct TransportTests {
    /// Runs the transport until it is closed or open.
    private func outcome(_ address: String, target: String) throws -> TransportEvent? {
        var options = TransportOptions()
        options.connectTimeoutMilliseconds = 5_000
        let transport: CurlWebSocketTransport = CurlWebSocketTransport(
            endpoint: try Endpoint(address), target: target, options: options)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw NotAnObject() }
        defer { for end in ends { close(end) } }
        transport.connect()
        for _ in 0..<1_000 {
            if let event = transport.events(limit: 10).first { return event }
            transport.wait(wake: ends[0], milliseconds: 100)
        }
        return nil
    }

    @Test("a connection to a closed port fails to connect")
    func refused() throws {
        guard case .closed(let closure)? = try outcome("http://127.0.0.1:1", target: "/sock") else {
            throw NotAnObject()
        }
        #expect(closure.detail.contains("connect"))
    }

    @Test("a connection to an unknown name closes with a reason")
    func unknownName() throws {
        guard case .closed(let closure)? = try outcome("http://nowhere.invalid", target: "/sock") else {
            throw NotAnObject()
        }
        #expect(!closure.detail.isEmpty)
    }

    @Test("a connection to an unknown path closes with the server's status 404")
    func notFound() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.stop() }
        let event = try outcome("http://127.0.0.1:\(server.port)", target: "/nothing/here")
        guard case .closed(let closure)? = event else { throw NotAnObject() }
        #expect(closure.httpStatus == 404)
    }

    @Test("TLS to a server without TLS closes with an SSL error")
    func noTLS() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.stop() }
        let event = try outcome("https://127.0.0.1:\(server.port)", target: "/sock/1/app/websocket")
        guard case .closed(let closure)? = event else { throw NotAnObject() }
        #expect(closure.detail.lowercased().contains("ssl"))
    }

    @Test("a wakeup ends the wait at once")
    func wake() throws {
        let transport: CurlWebSocketTransport = CurlWebSocketTransport(
            endpoint: try Endpoint("http://127.0.0.1:1"), target: "/", options: TransportOptions())
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw NotAnObject() }
        defer { for end in ends { close(end) } }
        var byte: UInt8 = 1
        _ = write(ends[1], &byte, 1)
        let before = monotonicMilliseconds()
        transport.wait(wake: ends[0], milliseconds: 30_000)
        #expect(monotonicMilliseconds() - before < 10_000)
    }
}
