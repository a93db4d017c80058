import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("A paired device's checks of a server's password parameters", .serialized, .timeLimit(.minutes(15)))
struct PairedPinTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(
        _ device: String, stretch: @escaping AccountAPIClient.Stretch = KeyBench.weak,
        prelogin change: (@Sendable (JSONObject) -> JSONObject)? = nil
    ) throws -> Accounts {
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: device, options: .init())
        let line = BadLine(calls) { _, request in
            request.path == "prelogin" ? change.map(BadLine.Fault.says) ?? .none : .none
        }
        return Accounts(app: "notes", device: device, api: try line.api(stretch: stretch))
    }

    /// Signs in from the paired device, at a server whose prelogin answer is changed.
    private func failure(
        _ known: DeviceKeys, _ change: @escaping @Sendable (JSONObject) -> JSONObject, stretches: Bool = false
    ) async -> AccountError? {
        await KeyBench.failure {
            let accounts = try self.accounts(
                "new",
                stretch: { password, salt, cost throws(CryptoError) in
                    if !stretches { Issue.record("a password was stretched") }
                    return try KeyBench.weak(password, salt, cost)
                }, prelogin: change)
            _ = try await accounts.signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        }
    }

    @Test(
        "T7: a paired device refuses other parameters for the salt, and a salt of the server's choice opens nothing"
    )
    func paired() async throws {
        let (old, new) = (try accounts("old"), try accounts("new"))
        let ann = try await old.signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await new.beginPairing()
        _ = try await old.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let there = try await new.open(try #require(try await new.receive(begun)))
        // As it is kept between two runs.
        let known = try DeviceKeys(text: try DeviceKeys(there.account).text)
        #expect(known.pin == ann.account.pin && known.pin != nil)
        let changes: [(String, JSONValue)] = [("n", 18), ("n", 20), ("p", 2)]
        for (name, value) in changes {
            let error: AccountError? = await failure(known) { $0.setting([name: value]) }
            #expect(error == .downgrade("other parameters for the same password"), "\(name)")
        }
        let salted = await failure(
            known, { $0.setting(["salt": "AAAAAAAAAAAAAAAAAAAAAA"]) }, stretches: true)
        #expect(salted == .wrongPassword(isChanged: true))
        guard case .open(let login) = try await new.signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        else { throw ClientError(.refused, "an honest server is believed") }
        #expect(login.account.pin == known.pin)
    }

    /// A message as an old device of another version seals it, opened by the new device.
    private func receive(_ members: String, of ann: SignedIn) throws -> Pairing.Received {
        let begun = try Pairing.begin(app: "notes", device: "new", random: .system)
        let text = SecureBytes.joined([
            KeyBench.secret(#"{"access_key":""#), ann.account.accessKey.secret.base64URL,
            KeyBench.secret(#"","name":"ann","token":"\#(ann.accessToken)"\#(members)}"#),
        ])
        return try begun.open(
            try begun.pairing.seal(text: text, user: ann.account.user, from: "old", app: "notes"))
    }

    @Test("T7: a paired device refuses parameters weaker than the old device's, also under another salt")
    func weaker() async throws {
        let new = try accounts("new")
        let ann = try await new.signUp(name: "ann", password: KeyBench.secret("one"))
        let strong = try receive(
            #","pin":{"scheme":1,"kdf":1,"n":18,"r":8,"p":2,"salt":"BBBBBBBBBBBBBBBBBBBBBA"}"#, of: ann)
        let known = try DeviceKeys(try await new.open(strong).account)
        for (n, p): (JSONValue, JSONValue) in [(17, 2), (18, 1), (17, 1)] {
            let error: AccountError? = await failure(known) { $0.setting(["n": n, "p": p]) }
            #expect(error == .downgrade("weaker parameters than before"))
        }
    }

    @Test("an old device that sends no pin, or unknown members, is received as before")
    func others() async throws {
        let new = try accounts("new")
        let ann = try await new.signUp(name: "ann", password: KeyBench.secret("one"))
        for members in ["", #","pin":null"#, #","later":{"a":[1,"x"]},"even":7"#] {
            let there = try await new.open(try receive(members, of: ann))
            #expect(there.account.pin == nil && there.account.bundle == ann.account.bundle, "\(members)")
            guard
                case .open(let login) = try await new.signIn(
                    name: "ann", password: KeyBench.secret("one"), known: try DeviceKeys(there.account))
            else { throw ClientError(.refused, "locked") }
            #expect(login.account.pin == ann.account.pin, "the first login remembers")
        }
        // A pin with unknown members is accepted.
        let later = try receive(
            #","pin":{"scheme":1,"kdf":1,"n":17,"r":8,"p":1,"salt":"BBBBBBBBBBBBBBBBBBBBBA","later":[]}"#, of: ann)
        #expect(later.pin?.log2N == 17)
    }

    @Test("a malformed pin makes the whole answer forged, and nothing of it is kept")
    func malformed() async throws {
        let ann = try await accounts("new").signUp(name: "ann", password: KeyBench.secret("one"))
        for pin in [
            "1", #""x""#, "[]", "{}", #"{"scheme":1,"kdf":1,"n":17,"r":8,"p":1}"#,
            #"{"scheme":1,"kdf":1,"n":"17","r":8,"p":1,"salt":"BBBBBBBBBBBBBBBBBBBBBA"}"#,
            #"{"scheme":1,"kdf":1,"n":17,"r":8,"p":1,"salt":"not base64!"}"#,
        ] {
            #expect(throws: AccountError.pairingForged, "\(pin)") { try receive(#","pin":\#(pin)"#, of: ann) }
        }
    }

    @Test("a partner's user's new device remembers the content passphrase's parameters, too")
    func partner() async throws {
        let user = try bench.register()
        func accounts(_ device: String) throws -> Accounts {
            try bench.app(device: device).accounts(stretch: KeyBench.weak)
        }
        func token(_ device: String) -> String { bench.login(user, seconds: 600, device: device) }
        let made = try await accounts("d/1").openKeys(
            ofPartnerUser: user.entity, accessToken: token("d/1"), .passphrase(KeyBench.secret("content")), makes: true)
        guard case .open(let first, isNew: true) = made else { throw ClientError(.unauthorized, "not made") }
        let begun = try await accounts("d/2").beginPairing()
        _ = try await accounts("d/1").give(first, accessToken: token("d/1"), toDeviceWithCode: begun.pairing.code)
        let received = try #require(try await accounts("d/2").receive(begun))
        let there = try await accounts("d/2").open(
            received, ofPartnerUser: user.entity, accessToken: token("d/2"))
        guard case .open(let second, isNew: false) = there else { throw ClientError(.unauthorized, "closed") }
        #expect(second == first && second.pin != nil)
    }
}
