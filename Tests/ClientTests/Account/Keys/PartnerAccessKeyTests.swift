import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("Change of a partner's user's access key, at a real server", .serialized, .timeLimit(.minutes(15)))
struct PartnerAccessKeyTests {
    private let bench: AccountServer
    private let user: AccountServer.Registered

    init() throws {
        bench = try AccountServer()
        user = try bench.register()
    }

    private func accounts(_ device: String = "d/1", _ line: BadLine? = nil) throws -> Accounts {
        guard let line else { return try bench.app(device: device).accounts(stretch: KeyBench.weak) }
        return Accounts(app: "app", device: device, api: try line.api())
    }

    private func token(_ device: String = "d/1") -> String { bench.login(user, seconds: 600, device: device) }

    private func open(_ opener: KeyOpener, known: DeviceKeys? = nil) async throws -> OpenAccount {
        let keys = try await accounts("d/2").openKeys(
            ofPartnerUser: user.entity, accessToken: token("d/2"), opener, known: known, makes: false)
        guard case .open(let account, _) = keys else { throw ClientError(.unauthorized, "closed") }
        return account
    }

    private func make(_ opener: KeyOpener) async throws -> OpenAccount {
        let keys = try await accounts().openKeys(
            ofPartnerUser: user.entity, accessToken: token(), opener, makes: true)
        guard case .open(let account, true) = keys else { throw ClientError(.unauthorized, "not made") }
        return account
    }

    private func change(
        _ account: OpenAccount, to next: AccessKey = .random(), _ passphrase: String?, _ line: BadLine? = nil
    ) async throws -> OpenAccount {
        try await accounts("d/1", line).changeAccessKey(
            of: account, to: next, accessToken: token(), password: passphrase.map(KeyBench.secret))
    }

    @Test(
        "the same passphrase and the new words open the new key, the old words nothing; the secrets stay")
    func passphrase() async throws {
        let made = try await make(.passphrase(KeyBench.secret("content")))
        let changed = try await change(made, "content")
        #expect(changed.bundle.vaultSecret == made.bundle.vaultSecret && changed.needsBackup && changed.version == 2)
        #expect(try await open(.passphrase(KeyBench.secret("content"))) == changed)
        #expect(try await open(.accessKey(changed.accessKey)).bundle == changed.bundle)
        let old = await KeyBench.failure { _ = try await self.open(.accessKey(made.accessKey)) }
        #expect(old == .doesNotOpen)
        // The old key's proof writes nothing either.
        let stale = await KeyBench.failure {
            _ = try await self.accounts().setPassphrase(nil, of: made, accessToken: self.token())
        }
        #expect(stale == .keyChanged)
    }

    @Test(
        "a device that missed the change gets keyChanged, opens by passphrase or words, and gives no old key")
    func otherDevice() async throws {
        let made = try await make(.passphrase(KeyBench.secret("content")))
        let known = try DeviceKeys(made)
        let changed = try await change(made, "content")
        let reported = await KeyBench.failure { _ = try await self.open(.none, known: known) }
        #expect(reported == .keyChanged)
        let oldWords = await KeyBench.failure {
            _ = try await self.open(.accessKey(made.accessKey), known: known)
        }
        #expect(oldWords == .keyChanged)
        let wrongWords = await KeyBench.failure {
            _ = try await self.open(.accessKey(.random()), known: known)
        }
        #expect(wrongWords == .wrongWords)
        let begun = try await accounts("d/3").beginPairing()
        let given = await KeyBench.failure {
            _ = try await self.accounts("d/2").give(
                made, accessToken: self.token("d/2"), toDeviceWithCode: begun.pairing.code)
        }
        #expect(given == .keyChanged)
        #expect(try await accounts("d/3").receive(begun) == nil)
        #expect(try await open(.passphrase(KeyBench.secret("content")), known: known) == changed)
        #expect(try await open(.accessKey(changed.accessKey), known: known).bundle == changed.bundle)
        let words = try await accounts("d/1").give(
            changed, accessToken: token(), toDeviceWithCode: begun.pairing.code)
        #expect(try await accounts("d/3").receive(begun)?.words == words)
    }

    @Test(
        "a passphrase is required where one is set, checked before any write, and refused where none is set"
    )
    func wanted() async throws {
        var account = try await make(.none)
        for given in ["content", ""] {
            let error = await KeyBench.failure { _ = try await self.change(account, given) }
            guard case .unusable? = error else { throw ClientError(.refused, "\(error as Any)") }
        }
        account = try await change(account, nil)
        account = try await accounts().setPassphrase(KeyBench.secret("content"), of: account, accessToken: token())
        let before = account
        let missing = await KeyBench.failure { _ = try await self.change(before, nil) }
        guard case .unusable? = missing else { throw ClientError(.refused, "\(missing as Any)") }
        let wrong = await KeyBench.failure { _ = try await self.change(before, "guess") }
        #expect(wrong == .wrongPasscode)
        #expect(try await open(.passphrase(KeyBench.secret("content"))) == before)
    }

    @Test(
        "an interrupted key change, repeated with the kept key, ends at that key, also without a passphrase"
    )
    func interrupted() async throws {
        var account = try await make(.none)
        for accident in InterruptedTests.Accident.all {
            let next = AccessKey.random()
            let calls = try ServerCalls(
                address: bench.address, app: "app", apiKey: bench.apiKey, deviceId: "d/1", options: .init())
            let line = BadLine(calls) { number, _ in accident.fault(number) }
            // Only what the device keeps before the request is left when the program dies.
            let kept = try DeviceKeys(account, next: next)
            let before = account
            var changed: OpenAccount?
            let error = await KeyBench.failure {
                changed = try await self.change(before, to: next, nil, line)
            }
            let settled = try await accounts().finishKeyChange(kept, accessToken: token())
            switch error {
            case nil: #expect(settled.accessKey == next && settled == changed, "\(accident)")
            case .unknown?: break
            default: #expect(settled.accessKey == before.accessKey, "\(accident): \(error as Any)")
            }
            account = try await change(try kept.open(), to: next, nil)
            #expect(account.accessKey == next && account.version == before.version + 1, "\(accident)")
            #expect(account.bundle.vaultSecret == before.bundle.vaultSecret, "\(accident)")
        }
    }
}
