import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("A paired device knows the newest version of the account's bundle", .serialized, .timeLimit(.minutes(15)))
struct PairedVersionTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(
        _ device: String, app: String = "notes", bundle change: (@Sendable (JSONObject) -> JSONObject)? = nil
    ) throws -> Accounts {
        let key = app == "notes" ? bench.accountKey : bench.apiKey
        let calls = try ServerCalls(
            address: bench.address, app: app, apiKey: key, deviceId: device, options: .init())
        let line = BadLine(calls) { _, request in
            request.path == "bundle" && request.method == "GET" ? change.map(BadLine.Fault.says) ?? .none : .none
        }
        return Accounts(app: app, device: device, api: try line.api())
    }

    /// The bundle that the server keeps now, as it shows it.
    private func shown(_ account: OpenAccount, _ token: String, app: String = "notes") async throws -> JSONObject {
        let incoming = Mutex<JSONObject?>(nil)
        let listening = try accounts("d/1", app: app) { answer in
            incoming.withLock { $0 = answer }
            return answer
        }
        _ = try await listening.refresh(account, accessToken: token)
        return try #require(incoming.withLock { $0 })
    }

    /// Writes the bundle once more.
    private func written(
        _ account: OpenAccount, _ token: String, bucket: String = "notes", app: String = "notes"
    ) async throws -> OpenAccount {
        try await accounts("d/1", app: app).update(account, accessToken: token) {
            $0.buckets[bucket] = .init(mode: "sealed", epoch: 1)
        }
    }

    private func given(_ account: OpenAccount, _ token: String, app: String = "notes") async throws -> Pairing.Received
    {
        let new = try accounts("d/2", app: app)
        let begun = try await new.beginPairing()
        _ = try await accounts("d/1", app: app).give(account, accessToken: token, toDeviceWithCode: begun.pairing.code)
        return try #require(try await new.receive(begun))
    }

    @Test("a new device refuses an older bundle than the old device has seen, also under the newer one's version")
    func older() async throws {
        let ann = try await accounts("d/1").signUp(name: "ann", password: KeyBench.secret("one"))
        let old: JSONObject = try await shown(ann.account, ann.accessToken)
        let newer = try await written(ann.account, ann.accessToken)
        let received = try await given(newer, ann.accessToken)
        #expect(newer.version == 2 && received.version == 2)
        for (lie, expected): (JSONObject, AccountError) in [
            (old, .rolledBack(seen: 2, shown: 1)), (old.setting(["version": 0]), .rolledBack(seen: 2, shown: 0)),
            (old.setting(["version": 2]), .doesNotOpen), (old.setting(["version": 3]), .doesNotOpen),
        ] {
            let error = await KeyBench.failure {
                _ = try await self.accounts("d/2") { _ in lie }.open(received)
            }
            #expect(error == expected)
        }
        let there = try await accounts("d/2").open(received)
        #expect(there.account == newer)
    }

    @Test("a bundle newer than the old device's is accepted, and is the new device's minimum from then on")
    func newer() async throws {
        let ann = try await accounts("d/1").signUp(name: "ann", password: KeyBench.secret("one"))
        let second = try await written(ann.account, ann.accessToken)
        let reported = try await shown(second, ann.accessToken)
        // The old device does not know the second version, nor a third that is written after its answer.
        let received = try await given(ann.account, ann.accessToken)
        #expect(received.version == 1)
        let third = try await written(second, ann.accessToken, bucket: "diary")
        let there = try await accounts("d/2").open(received)
        #expect(there.account.version == 3 && there.account.bundle == third.bundle)
        let error = await KeyBench.failure {
            _ = try await self.accounts("d/2") { _ in reported }.refresh(there.account, accessToken: there.accessToken)
        }
        #expect(error == .rolledBack(seen: 3, shown: 2))
    }

    /// A message as an old device of another version seals it, opened by the new device.
    private func receive(_ members: String, of ann: SignedIn) throws -> Pairing.Received {
        let begun = try Pairing.begin(app: "notes", device: "d/2", random: .system)
        let text = SecureBytes.joined([
            KeyBench.secret(#"{"access_key":""#), ann.account.accessKey.secret.base64URL,
            KeyBench.secret(#"","name":"ann","token":"\#(ann.accessToken)"\#(members)}"#),
        ])
        return try begun.open(
            try begun.pairing.seal(text: text, user: ann.account.user, from: "d/1", app: "notes"))
    }

    @Test("an old device that sends no version is received as before: the bundle that is shown is believed")
    func others() async throws {
        let ann = try await accounts("d/1").signUp(name: "ann", password: KeyBench.secret("one"))
        let old = try await shown(ann.account, ann.accessToken)
        let newer = try await written(ann.account, ann.accessToken)
        for members in ["", #","version":null"#, #","versions":[9]"#] {
            let received = try receive(members, of: ann)
            #expect(received.version == nil)
            let first = try await accounts("d/2") { _ in old }.open(received)
            #expect(first.account.version == 1 && first.account.bundle == ann.account.bundle, "\(members)")
            let second = try await accounts("d/2").open(received)
            #expect(second.account.version == 2 && second.account.bundle == newer.bundle, "\(members)")
        }
        #expect(try receive(#","version":0"#, of: ann).version == 0)
        #expect(try receive(#","version":9223372036854775807"#, of: ann).version == UInt64(Int64.max))
    }

    @Test("a malformed version makes the whole answer forged, and nothing of it is kept")
    func malformed() async throws {
        let ann = try await accounts("d/1").signUp(name: "ann", password: KeyBench.secret("one"))
        for version in [
            "-1", "1.5", #""1""#, #""""#, "true", "[]", "[1]", "{}", "9223372036854775808", "1e400", "01", "x",
        ] {
            #expect(throws: AccountError.pairingForged, "\(version)") {
                try receive(#","version":\#(version)"#, of: ann)
            }
        }
        #expect(throws: AccountError.pairingForged) { try receive(#","version":1,"version":2"#, of: ann) }
    }

    @Test("a partner's user's new device, too, refuses an older bundle and accepts a newer one")
    func partner() async throws {
        let user: AccountServer.Registered = try bench.register()
        func token(_ device: String) -> String { bench.login(user, seconds: 600, device: device) }
        let made: PartnerKeys = try await accounts("d/1", app: "app").openKeys(
            ofPartnerUser: user.entity, accessToken: token("d/1"), .none, makes: true)
        guard case .open(let first, isNew: true) = made else { throw ClientError(.unauthorized, "not made") }
        let old: JSONObject = try await shown(first, token("d/1"), app: "app")
        let second: OpenAccount = try await written(first, token("d/1"), app: "app")
        let received: Pairing.Received = try await given(second, token("d/1"), app: "app")
        #expect(received.version == 2)
        let error: AccountError? = await KeyBench.failure {
            _ = try await self.accounts("d/2", app: "app") { _ in old }.open(
                received, ofPartnerUser: user.entity, accessToken: token("d/2"))
        }
        #expect(error == .rolledBack(seen: 2, shown: 1))
        var newest: OpenAccount = second
        for bucket: String in ["diary", "letters"] {
            let there: PartnerKeys = try await accounts("d/2", app: "app").open(
                received, ofPartnerUser: user.entity, accessToken: token("d/2"))
            guard case .open(let open, isNew: false) = there else { throw ClientError(.unauthorized, "closed") }
            #expect(open.version == newest.version && open.bundle == newest.bundle)
            newest = try await written(newest, token("d/1"), bucket: bucket, app: "app")
        }
    }
}
