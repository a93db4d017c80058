import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("Keys of partners' users, at a real server", .serialized, .timeLimit(.minutes(15)))
struct PartnerKeyTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(_ device: String = "d/1") throws -> Accounts {
        try bench.app(device: device).accounts(stretch: KeyBench.weak)
    }

    private func open(_ keys: PartnerKeys) throws -> (account: OpenAccount, isNew: Bool) {
        guard case .open(let account, let isNew) = keys else { throw ClientError(.unauthorized, "closed") }
        return (account, isNew)
    }

    @Test(
        "the first device makes the keys; others open them with passphrase or words, and a token alone opens nothing"
    )
    func devices() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        let first = try open(
            try await accounts().openKeys(
                ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("content")), makes: true))
        #expect(first.isNew && first.account.user == user.entity)
        let other = bench.login(user, seconds: 600, device: "d/2")
        for opener: KeyOpener in [.passphrase(KeyBench.secret("content")), .accessKey(first.account.accessKey)] {
            let there = try open(
                try await accounts("d/2").openKeys(
                    ofPartnerUser: user.entity, accessToken: other, opener, makes: true))
            #expect(!there.isNew && there.account.bundle == first.account.bundle)
        }
        let wrong = await KeyBench.failure {
            _ = try await self.accounts("d/2").openKeys(
                ofPartnerUser: user.entity, accessToken: other, .passphrase(KeyBench.secret("guess")), makes: true)
        }
        #expect(wrong == .wrongPasscode)
        guard
            case .closed(acceptsPassphrase: true) = try await accounts("d/2").openKeys(
                ofPartnerUser: user.entity, accessToken: other, makes: true)
        else { throw ClientError(.unauthorized, "a token alone opened keys") }
    }

    @Test(
        "T23: a partner with forged tokens reads sealed bytes only and cannot replace the user's bundle by its own"
    )
    func partner() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        let made = try open(
            try await accounts().openKeys(
                ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("canary-passphrase")),
                makes: true)
        ).account
        // The partner signs a token for a device of its own and reads everything that the server returns.
        let forged = bench.login(user, seconds: 600, device: "partner")
        let calls = try ServerCalls(
            address: bench.address, app: "app", apiKey: bench.apiKey, deviceId: "partner", options: .init())
        let seen = try await calls.ask(AccountRequest.readBundle(.partner(token: forged))).members
        let text = JSONValue.object(seen).serialized()
        let stored = ["bundle", "access"].flatMap { name in
            Base64.decodeURL(Array((seen[name]?.stringValue ?? "").utf8)[...]) ?? []
        }
        #expect(stored.count > 512, "the search has something to look at")
        let secrets = [
            made.accessKey.secret, made.bundle.vaultSecret, made.bundle.treeSecret, made.bundle.signingKey.seed,
            made.bundle.exchangeKey.secret, KeyBench.secret("canary-passphrase"),
        ]
        for secret in secrets {
            let bytes: [UInt8] = secret.withUnsafeBytes { Array($0) }
            for needle in [bytes, Array(Base64.encodeURL(bytes).utf8), Array(Hex.encode(bytes).utf8)] {
                #expect(!text.contains(needle) && !stored.contains(needle))
            }
        }
        // The partner's own bundle in the place of the user's: refused without the proof, and with a guess at it.
        let own = AccessKey.random()
        for proof in [nil, try own.recoveryAuth()] {
            var members = AccountRequest.PartnerMembers()
            members.proof = proof
            do throws(ClientError) {
                _ = try await calls.ask(
                    .putBundle([1, 2, 3], replacing: 1, .partner(token: forged), members))
                Issue.record("the partner has replaced the bundle")
            } catch { #expect(error.number == 400 || error.number == 403) }
        }
        let now = try await accounts().refresh(made, accessToken: token)
        #expect(now == made)
    }

    @Test("keys that a partner writes first do not open with the user's passphrase")
    func firstWriter() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        _ = try await accounts("partner").openKeys(
            ofPartnerUser: user.entity, accessToken: bench.login(user, seconds: 600, device: "partner"),
            .passphrase(KeyBench.secret("the partner's")), makes: true)
        let error = await KeyBench.failure {
            _ = try await self.accounts().openKeys(
                ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("ann's")), makes: true)
        }
        #expect(error == .wrongPasscode)
    }

    @Test("four devices that begin at once open one bundle: the first writer's")
    func race() async throws {
        let user = try bench.register()
        let openers: [PartnerKeys] = try await withThrowingTaskGroup { group in
            for number in 1...4 {
                let accounts = try accounts("d/\(number)")
                let token = bench.login(user, seconds: 600, device: "d/\(number)")
                group.addTask {
                    try await accounts.openKeys(
                        ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("content")),
                        makes: true)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let opened = try openers.map(open)
        #expect(opened.filter(\.isNew).count == 1)
        #expect(opened.allSatisfy { $0.account.bundle == opened[0].account.bundle })
    }

    @Test("a passphrase is changed and removed with the access key's proof; the keys stay")
    func passphrase() async throws {
        let user = try bench.register()
        let token = bench.login(user, seconds: 600)
        let accounts = try accounts()
        var account = try open(
            try await accounts.openKeys(ofPartnerUser: user.entity, accessToken: token, makes: true)
        ).account
        account = try await accounts.setPassphrase(KeyBench.secret("one"), of: account, accessToken: token)
        account = try await accounts.setPassphrase(KeyBench.secret("two"), of: account, accessToken: token)
        #expect(account.version == 3)
        let opened = try open(
            try await accounts.openKeys(
                ofPartnerUser: user.entity, accessToken: token, .passphrase(KeyBench.secret("two")), makes: false)
        ).account
        #expect(opened.bundle == account.bundle)
        _ = try await accounts.setPassphrase(nil, of: account, accessToken: token)
        guard
            case .closed(acceptsPassphrase: false) = try await accounts.openKeys(
                ofPartnerUser: user.entity, accessToken: token, makes: true)
        else { throw ClientError(.unauthorized, "a token alone opened keys") }
    }
}
