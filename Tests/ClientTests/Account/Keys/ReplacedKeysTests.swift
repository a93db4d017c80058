import Testing
import ThicketCrypto
import ThicketProtocol

@testable import ThicketClient

/// The keys under which an account is in the key log are replaced (treesystem 4.12, K13).
@Suite("Replaced keys of an account", .serialized, .timeLimit(.minutes(15)))
struct ReplacedKeysTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(
        _ device: String = "d/1",
        _ fault: @escaping @Sendable (Int, AccountRequest) -> BadLine.Fault = { _, _ in .none }
    ) throws -> Accounts {
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: device, options: .init())
        return Accounts(app: "notes", device: device, api: try BadLine(calls, fault).api())
    }

    private func signUp() async throws -> SignedIn {
        try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
    }

    @Test("the bundle keeps every key that was replaced, in order, and nothing else of the account changes")
    func kept() async throws {
        let ann = try await signUp()
        var (account, all) = (ann.account, [ann.account.bundle.keyPair])
        for _ in 0..<3 {
            account = try await accounts().replaceKeys(of: account, accessToken: ann.accessToken)
            all.append(account.bundle.keyPair)
        }
        #expect(account.bundle.earlierKeys == Array(all.dropLast()) && Set(all.map(\.signing.verifyingKey)).count == 4)
        let bundle = account.bundle
        #expect(bundle.vaultSecret == ann.account.bundle.vaultSecret)
        #expect(bundle.treeSecret == ann.account.bundle.treeSecret)
        #expect(account.accessKey == ann.account.accessKey && account.version == ann.account.version + 3)
        // A device that knows the account from before, a new one, and what a device stores.
        let known = try await accounts("d/2").refresh(ann.account, accessToken: ann.accessToken)
        guard
            case .open(let new) = try await accounts("d/3").signIn(name: "ann", password: KeyBench.secret("one"))
        else {
            Issue.record("locked")
            return
        }
        for each in [known, new.account, try DeviceKeys(text: try DeviceKeys(account).text).open()] {
            #expect(each.bundle == bundle && each.bundle.earlierKeys == bundle.earlierKeys)
        }
        let own = OwnEntries(account)
        #expect(own.earlier.map(\.signing.verifyingKey) == all.dropLast().map(\.signing.verifyingKey))
    }

    @Test("the key to which others seal is replaced alone: the signing key is the one that is in use by then")
    func exchangeOnly() async throws {
        let ann = try await signUp()
        let before = ann.account.bundle.keyPair
        let one = try await accounts().replaceExchangeKey(of: ann.account, accessToken: ann.accessToken)
        #expect(one.bundle.keyPair.signing.verifyingKey == before.signing.verifyingKey)
        #expect(one.bundle.keyPair != before && one.bundle.earlierKeys == [before])
        let two = try await accounts("d/2").replaceKeys(of: ann.account, accessToken: ann.accessToken)
        // The device knows neither: it puts its key beside the signing key that is in use by now.
        let next = X25519.PrivateKey.random()
        let three = try await accounts("d/3").replaceExchangeKey(
            of: ann.account, with: next, accessToken: ann.accessToken)
        #expect(three.bundle.keyPair == AccountKeyPair(two.bundle.signingKey, next))
        #expect(three.bundle.earlierKeys == [before, one.bundle.keyPair, two.bundle.keyPair])
        let again = try await accounts().replaceExchangeKey(of: three, with: next, accessToken: ann.accessToken)
        #expect(again.bundle == three.bundle && again.version == three.version, "the same key is no replacement")
    }

    @Test("a replacement whose answer is lost is known to be made or not, and repeated with the same keys is made once")
    func lost() async throws {
        let ann = try await signUp()
        let next = AccountKeyPair.make()
        for fault in [BadLine.Fault.losesRequest, .losesAnswer] {
            // The second request writes; the third shows what came of it.
            let made = try? await accounts("d/1") { number, _ in number == 2 ? fault : .none }
                .replaceKeys(of: ann.account, with: next, accessToken: ann.accessToken)
            let now = try await accounts().refresh(ann.account, accessToken: ann.accessToken)
            if case .losesAnswer = fault {
                #expect(made?.bundle == now.bundle && now.bundle.keyPair == next)
            } else {
                #expect(made == nil && now.bundle == ann.account.bundle)
            }
        }
        let again = try await accounts().replaceKeys(of: ann.account, with: next, accessToken: ann.accessToken)
        #expect(again.bundle.earlierKeys == [ann.account.bundle.keyPair] && again.version == ann.account.version + 1)
    }

    @Test("two devices that replace the keys at once both keep all keys, and the later one's are in use")
    func concurrent() async throws {
        let ann = try await signUp()
        let one = try await accounts().replaceKeys(of: ann.account, accessToken: ann.accessToken)
        let two = try await accounts("d/2").replaceKeys(of: ann.account, accessToken: ann.accessToken)
        #expect(two.bundle.earlierKeys == [ann.account.bundle.keyPair, one.bundle.keyPair])
    }

    @Test("after a restore the newer keys are put back, and the older ones stay; both sides may have replaced them")
    func putBack() async throws {
        let ann = try await signUp()
        let backup = try bench.backup(of: ann.account.user)
        let newest = try await accounts().replaceKeys(of: ann.account, accessToken: ann.accessToken)
        try bench.restore(backup)
        let back = try await accounts().putBack(newest, accessToken: ann.accessToken)
        #expect(back.account.bundle.keyPair == newest.bundle.keyPair)
        #expect(back.account.bundle.earlierKeys == newest.bundle.earlierKeys)

        try bench.restore(backup)
        let other = try await accounts("d/2").replaceKeys(of: ann.account, accessToken: ann.accessToken)
        let both = try await accounts().putBack(back.account, accessToken: ann.accessToken).account.bundle
        let all = [ann.account.bundle.keyPair, newest.bundle.keyPair, other.bundle.keyPair]
        for pair in all { #expect(both.keyPair == pair || both.earlierKeys.contains(pair)) }
        #expect(both.earlierKeys.count == 2 && both.earlierKeys.first == all[0])
    }

    @Test("keys of another account are no replaced ones, and a bundle keeps up to 64 pairs")
    func bounds() throws {
        let (bundle, other) = (AccountBundle.make(), AccountBundle.make())
        var full = bundle
        #expect(!bundle.hasSecrets(of: other))
        for _ in 0..<AccountKeyPair.earlierMax {
            let isReplaced = full.replaceKeys(with: .make())
            #expect(isReplaced)
        }
        let before = full
        let isReplaced = full.replaceKeys(with: .make())
        #expect(!isReplaced && full == before)
        #expect(try AccountBundle(text: full.text()) == full)
        #expect(full.hasSecrets(of: bundle) && bundle.hasSecrets(of: full))
        var repeated = bundle
        let isSame = repeated.replaceKeys(with: bundle.keyPair)
        #expect(!isSame && repeated == bundle && !"\(full.keyPair)".contains("key:"))
    }

    @Test("a member with earlier keys that no version writes is damage", arguments: ["", "AA", "null", "7", "[]"])
    func damaged(value: String) throws {
        let text = AccountBundle.make().text().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        let quoted = value.isEmpty || value == "AA" ? "\"\(value)\"" : value
        let changed = text.replacing(#""buckets":"#, with: #""earlier":\#(quoted),"buckets":"#, maxReplacements: 1)
        #expect(changed != text)
        #expect(throws: AccountError.self) { _ = try AccountBundle(text: KeyBench.secret(changed)) }
    }
}
