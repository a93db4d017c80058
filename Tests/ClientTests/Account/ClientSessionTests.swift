import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestServer

/// Sessions against a real server whose clock the test steps.
@Suite("Sessions of a partner's users", .serialized, .timeLimit(.minutes(15)))
struct ClientSessionTests {
    private let bench: AccountServer
    private let user: AccountServer.Registered

    init() throws {
        bench = try AccountServer()
        user = try bench.register()
    }

    /// A source that signs tokens as the partner's auth server does.
    private func source(seconds: Int64 = 60) -> TestSource {
        TestSource { [bench, user] request in
            #expect(request.deviceId == "d/1" && request.entityId == user.entity)
            return bench.login(user, seconds: seconds)
        }
    }

    private func session(_ source: TestSource?, seconds: Int64 = 60) async throws -> ClientSession {
        try await bench.app().createSession(
            accessToken: bench.login(user, seconds: seconds), entityId: user.entity, partnerId: bench.partner,
            tokens: source)
    }

    /// Another device of the user, a raw client whose token stays valid.
    private func other() throws -> TestClient {
        let token = bench.login(user, seconds: 1_800, device: "x")
        let client = try bench.server.client()
        _ = try client.ask(
            #"0:init:{"clientid":"o","api":"1.1","token":"\#(token)","app_id":"app","name":"notes","#
                + #""device_id":"x","cmd":"i:1:::10"}"#)
        _ = try client.receive()
        return client
    }

    private static let patience = Duration.seconds(120)

    @Test("a token that ends is renewed once: edits of both sides made meanwhile arrive, and none twice")
    func renewal() async throws {
        let source = source()
        source.shut()
        let session = try await session(source)
        var events = await session.events.makeAsyncIterator()
        let notes = try await session.bucket("notes")
        try await notes.set("doc", to: ["t": "the fox"])
        try await notes.waitUntilSynced(timeout: Self.patience)
        bench.pass(60)
        #expect(await events.next() == .expired)
        await source.asked(1)
        try await notes.editText("doc", path: ["t"], at: 7, inserting: " jumps")
        // Not earlier: after the clock's step it would count as silent for a minute, which ends a connection.
        let other = try other()
        let foreign =
            #"0:c:{"clientid":"o","id":"doc","o":"M","sv":1,"ccid":"o1","v":{"t":{"o":"d","v":"+Look: \t=7"}}}"#
        #expect(try other.ask(foreign).contains(#""ev":2"#))
        source.open()
        #expect(await events.next() == .renewed)
        try await notes.waitUntilSynced(timeout: Self.patience)
        #expect(try await notes.get("doc") == ["t": "Look: the fox jumps"])
        #expect(try await notes.info("doc").version == 3)
        #expect(source.count == 1 && bench.server.metrics.net.connectionsAccepted.value >= 2)
        await session.close()
    }

    @Test("two devices type while tokens end again and again: each letter arrives once, and both texts are equal")
    func typing() async throws {
        let sources = ["d/1", "d/2"].map { device in
            TestSource { [bench, user] _ in bench.login(user, seconds: 60, device: device) }
        }
        var sessions = [ClientSession]()
        for (source, device) in zip(sources, ["d/1", "d/2"]) {
            sessions.append(
                try await bench.app(device: device).createSession(
                    accessToken: bench.login(user, seconds: 60, device: device), entityId: user.entity,
                    partnerId: bench.partner, tokens: source))
        }
        let notes = [try await sessions[0].bucket("notes"), try await sessions[1].bucket("notes")]
        try await notes[0].set("doc", to: ["t": ""])
        try await notes[0].waitUntilSynced(timeout: Self.patience)
        // Its own change returns after the other's, which has arrived by then.
        try await notes[1].set("begin", to: ["n": 1])
        try await notes[1].waitUntilSynced(timeout: Self.patience)
        let letters = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
        for round in 1...4 {
            await withTaskGroup(of: Void.self) { group in
                for (bucket, text) in zip(notes, letters) {
                    group.addTask {
                        for (number, letter) in text.enumerated() {
                            await #expect(throws: Never.self) {
                                try await bucket.editText("doc", path: ["t"], at: 0, inserting: String(letter))
                            }
                            // Some changes go alone, some together, and some while there is no token.
                            if number % 5 == 0 { try? await bucket.waitUntilSynced(timeout: Self.patience) }
                        }
                    }
                }
                bench.pass(60)
                for source in sources { await source.asked(round) }
            }
        }
        for bucket in notes { try await bucket.waitUntilSynced(timeout: Self.patience) }
        // Each has sent everything; now each receives the other's last change.
        for bucket in notes { try await bucket.set("end", to: ["n": 1]) }
        for bucket in notes { try await bucket.waitUntilSynced(timeout: Self.patience) }
        var texts = [String]()
        for bucket in notes { texts.append(try await bucket.get("doc")?["t"]?.stringValue ?? "") }
        #expect(texts[0].sorted() == String(repeating: letters.joined(), count: 4).sorted())
        #expect(texts[0] == texts[1])
        for source in sources { #expect(source.count >= 4 && source.mostAtOnce == 1) }
        for session in sessions { await session.close() }
    }

    @Test("12 calls refused at once share one renewal, and all succeed with its token")
    func oneRenewal() async throws {
        let source = source()
        source.shut()
        let session = try await session(source)
        #expect(try await session.devices().map(\.isThisOne) == [true])
        bench.pass(60)
        let results: [Bool] = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<12 { group.addTask { (try? await session.devices().count) == 1 } }
            await source.asked(1)
            source.open()
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == Array(repeating: true, count: 12))
        #expect(source.count == 1 && source.mostAtOnce == 1)
        await session.close()
    }

    @Test("a session whose new token is refused, too, signs out; its edits stay and go out after the next sign-in")
    func signedOut() async throws {
        let source = source(seconds: 0)
        let session = try await session(source)
        var events = await session.events.makeAsyncIterator()
        let notes = try await session.bucket("notes")
        try await notes.waitUntilSynced(timeout: Self.patience)
        bench.pass(60)
        #expect(await events.next() == .expired)
        #expect(await events.next() == .renewed)
        #expect(await events.next() == .signedOut(.refused))
        #expect(source.count == 1)
        try await notes.set("offline", to: ["n": 1])
        let refused = await #expect(throws: ClientError.self) { try await session.devices() }
        #expect(refused?.code == .unauthorized && source.count == 1)
        #expect(try await notes.pendingCount == 1)
        // A session that goes online all the same is refused again.
        await session.sync.goOnline()
        let again = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: Self.patience)
        }
        #expect(again?.code == .unauthorized && source.count == 1)
        try await session.signIn(accessToken: bench.login(user, seconds: 60))
        try await notes.waitUntilSynced(timeout: Self.patience)
        #expect(try await notes.pendingCount == 0)
        let other = try bench.server.client()
        let token = bench.login(user, seconds: 60, device: "x")
        _ = try other.ask(
            #"0:init:{"clientid":"o","api":"1.1","token":"\#(token)","app_id":"app","name":"notes","device_id":"x"}"#)
        #expect(try other.ask("0:i:1:::10").contains(#""d":{"n":1}"#))
        await session.close()
    }

    @Test("a 403 renews nothing and is passed on")
    func forbidden() async throws {
        let source = source()
        let session = try await bench.app(apiKey: "no-such-key").createSession(
            accessToken: bench.login(user, seconds: 60), entityId: user.entity, partnerId: bench.partner,
            tokens: source)
        let error = await #expect(throws: ClientError.self) { try await session.devices() }
        #expect(error?.number == 403 && source.count == 0)
        #expect(await session.signOutReason == nil)
        await session.close()
    }

    @Test("a denying source signs out; a failing one does not, and its callers get unavailable")
    func failing() async throws {
        struct NoRoute: Error {}
        let denying = TestSource { _ in throw TokenDenied() }
        let denied = try await session(denying)
        bench.pass(60)
        await #expect(throws: ClientError.self) { try await denied.devices() }
        #expect(await denied.signOutReason == .denied && denying.count == 1)
        await denied.close()
        let failing = TestSource { _ in throw NoRoute() }
        let waiting = try await session(failing, seconds: 0)
        let error = await #expect(throws: ClientError.self) { try await waiting.devices() }
        #expect(error?.code == .unavailable)
        #expect(await waiting.signOutReason == nil, "perhaps next time")
        await waiting.close()
    }

    @Test("T18: a logout ends the connection, the token and a renewal under way; no second renewal begins")
    func logout() async throws {
        let source = source()
        source.shut()
        let session = try await session(source)
        let notes = try await session.bucket("notes")
        try await notes.waitUntilSynced(timeout: Self.patience)
        bench.pass(60)
        await source.asked(1)
        let call = Task { try await session.devices() }
        await session.signOut()
        await #expect(throws: ClientError.self) { try await call.value }
        #expect(await session.sync.currentStatus == .offline(.unauthorized("signed out")))
        source.open()
        await #expect(throws: ClientError.self) { try await session.devices() }
        #expect(source.count == 1)
        #expect(await session.signOutReason == .requested)
        // The renewal's good token is not used any more.
        #expect(await session.sync.currentStatus == .offline(.unauthorized("signed out")))
        await session.close()
    }

    @Test("a sign-out reaches the server: the token is refused with 403")
    func reported() async throws {
        let session = try await session(nil, seconds: 600)
        let token = await session.accessToken
        #expect(try await session.devices().count == 1)
        #expect(await session.signOut())
        await session.close()
        let again = try await bench.app().createSession(
            accessToken: token, entityId: user.entity, partnerId: bench.partner)
        let error = await #expect(throws: ClientError.self) { try await again.devices() }
        #expect(error?.number == 403)
        await again.close()
    }

    @Test("with passwords kept at the server: sign-up, renewal by ping, sign-out; a wrong one is unauthorized")
    func passwords() async throws {
        let app = try bench.app()
        let session = try await app.signUpAtPartner(
            username: "ann@example.com", password: "correct horse")
        let first = await session.accessToken
        let notes = try await session.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: Self.patience)
        bench.pass(1_800)
        #expect(try await session.devices().count == 1)
        #expect(await session.accessToken != first)
        try await notes.set("a", to: ["n": 2])
        try await notes.waitUntilSynced(timeout: Self.patience)
        await session.signOut()
        await session.close()
        let wrong = await #expect(throws: ClientError.self) {
            try await app.signInAtPartner(username: "ann@example.com", password: "wrong horse")
        }
        #expect(wrong?.code == .unauthorized)
    }

    @Test("the next token is fetched before the last one ends, and the connection uses it at once")
    func ahead() async throws {
        let clock = SteppedClock(unixSeconds: Double(bench.seconds))
        let source = source(seconds: 1_800)
        let app = try ThicketApp(
            server: bench.address, app: "app", apiKey: bench.apiKey, store: .memory, deviceId: "d/1",
            options: SessionOptions(), clock: clock)
        let session = try await app.createSession(
            accessToken: bench.login(user, seconds: 600), entityId: user.entity, partnerId: bench.partner,
            tokens: source)
        var events = await session.events.makeAsyncIterator()
        let notes = try await session.bucket("notes")
        try await notes.waitUntilSynced(timeout: Self.patience)
        let first = await session.accessToken
        // A tenth of ten minutes is one minute; with jitter it is up to one and a half.
        clock.pass(500_000)
        #expect(source.count == 0)
        clock.pass(70_000)
        #expect(await events.next() == .renewed)
        #expect(await session.accessToken != first)
        bench.pass(600)
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: Self.patience)
        #expect(try await session.devices().count == 1)
        #expect(source.count == 1, "no second request")
        await session.close()
    }

    @Test("a closed session fails as closed, and may still be signed out at the server")
    func closed() async throws {
        let source = source()
        let session = try await session(source, seconds: 600)
        let token = await session.accessToken
        var events = await session.events.makeAsyncIterator()
        await session.close()
        #expect(await events.next() == nil)
        let error = await #expect(throws: ClientError.self) { try await session.devices() }
        #expect(error?.code == .closed && source.count == 0)
        #expect(await session.signOut())
        let again = try await bench.app().createSession(
            accessToken: token, entityId: user.entity, partnerId: bench.partner)
        #expect(await #expect(throws: ClientError.self) { try await again.devices() }?.number == 403)
        await again.close()
    }
}
