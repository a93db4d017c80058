import Testing
import ThicketClient
import ThicketCrypto

@Suite("Accounts whose password was reset by mail, at a real server", .serialized, .timeLimit(.minutes(15)))
struct LockedAccountTests {
    private let bench: AccountServer
    private static let name = "ann@example.com"

    init() throws { bench = try AccountServer() }

    private func accounts() throws -> Accounts { try bench.notes().accounts(stretch: KeyBench.weak) }

    private func ann(_ password: String = "old") async throws -> SignedIn {
        try await accounts().signUp(name: Self.name, password: KeyBench.secret(password))
    }

    /// The state after a reset by mail: the account has another password and is still locked.
    private func reset(to password: String) async throws {
        // At most one code is sent in five minutes.
        bench.pass(301)
        let accounts = try accounts()
        try await accounts.sendResetCode(name: Self.name)
        try await accounts.reset(name: Self.name, code: try bench.nextCode(), newPassword: KeyBench.secret(password))
    }

    private func signIn(_ password: String, known: DeviceKeys? = nil) async throws -> SignInResult {
        try await accounts().signIn(name: Self.name, password: KeyBench.secret(password), known: known)
    }

    private func locked(_ password: String, known: DeviceKeys? = nil) async throws -> LockedAccount {
        guard case .locked(let account) = try await signIn(password, known: known) else {
            throw AccountError.unusable("it is not locked")
        }
        return account
    }

    private func expectOpen(_ password: String, _ ann: SignedIn) async throws {
        guard case .open(let login) = try await signIn(password) else { throw AccountError.locked }
        #expect(login.account.bundle == ann.account.bundle && login.account.accessKey == ann.account.accessKey)
        #expect(login.account.user == ann.account.user)
    }

    @Test("a reset by code logs in and opens nothing: the bundle is closed (403) until the old password opens it")
    func locked() async throws {
        let ann = try await ann()
        try await reset(to: "new")
        let old = await KeyBench.failure { _ = try await self.signIn("old") }
        #expect(old == .wrongPassword(isChanged: false))
        let account = try await locked("new")
        #expect(account.acceptsOldPassword && !account.opensHere)
        let write = await KeyBench.failure {
            _ = try await self.accounts().update(ann.account, accessToken: account.accessToken) {
                $0.buckets["b"] = .init(mode: "sealed", epoch: 1)
            }
        }
        guard case .server(let refused)? = write else { throw AccountError.unusable("\(write as Any)") }
        #expect(refused.number == 403)
        let wrong = await KeyBench.failure {
            _ = try await self.accounts().unlock(account, oldPassword: KeyBench.secret("guess"))
        }
        #expect(wrong == .wrongPassword(isChanged: false))
        let others = await KeyBench.failure {
            _ = try await self.accounts().unlock(account, accessKey: .random())
        }
        #expect(others == .wrongWords)
        // None of these attempts has unlocked it.
        _ = try await locked("new")
        let opened = try await accounts().unlock(account, oldPassword: KeyBench.secret("old"))
        #expect(opened.account.bundle == ann.account.bundle)
        try await expectOpen("new", ann)
    }

    @Test("the words, a code of them with its passcode, and a device with the keys unlock the account")
    func ways() async throws {
        let ann = try await ann()
        try await reset(to: "one")
        let words = try AccessKey(words: ann.account.accessKey.words)
        _ = try await accounts().unlock(try await locked("one"), accessKey: words)
        try await expectOpen("one", ann)
        // A code kept on paper, read again.
        let code = try RecoveryCode.make(ann.account.accessKey, passcode: KeyBench.secret("1234"))
        try await reset(to: "two")
        let wrong = await KeyBench.failure {
            _ = try RecoveryCode.open(code, passcode: KeyBench.secret("1235"))
        }
        #expect(wrong == .wrongPasscode)
        let read = try RecoveryCode.open(code, passcode: KeyBench.secret("1234"))
        _ = try await accounts().unlock(try await locked("two"), accessKey: read)
        try await expectOpen("two", ann)
        try await reset(to: "three")
        let known = try DeviceKeys(ann.account)
        let here = try await locked("three", known: known)
        #expect(here.opensHere)
        _ = try await accounts().unlock(here, accessKey: nil)
        try await expectOpen("three", ann)
        // The words alone, without a password.
        try await reset(to: "four")
        _ = try await accounts().recover(name: Self.name, accessKey: words, newPassword: KeyBench.secret("five"))
        try await expectOpen("five", ann)
    }

    @Test("a second reset keeps the first one's state: the last password that opened the bundle still unlocks it")
    func twice() async throws {
        let ann = try await ann()
        try await reset(to: "one")
        try await reset(to: "two")
        let opened = try await accounts().unlock(
            try await locked("two"), oldPassword: KeyBench.secret("old"))
        #expect(opened.account.bundle == ann.account.bundle)
        try await expectOpen("two", ann)
    }

    @Test("a reset code is valid for 15 minutes by the server's clock, once, for its own account, in digits only")
    func codes() async throws {
        let ann = try await ann()
        let accounts = try accounts()
        try await accounts.sendResetCode(name: Self.name)
        let late = try bench.nextCode()
        bench.pass(15 * 60 + 1)
        func code(_ code: SecureBytes, _ name: String = Self.name) async -> AccountError? {
            await KeyBench.failure {
                try await accounts.reset(name: name, code: code, newPassword: KeyBench.secret("new"))
            }
        }
        #expect(await code(late) == .wrongCode)
        try await expectOpen("old", ann)
        bench.pass(60)
        try await accounts.sendResetCode(name: Self.name)
        let good = try bench.nextCode()
        #expect(await code(KeyBench.secret("12ab")) == .unusable("a code consists of digits only"))
        #expect(await code(good, "bob@example.com") == .wrongCode)
        let spaced = SecureBytes.joined([good.part(0..<4), KeyBench.secret(" - "), good.part(4..<8)])
        #expect(await code(spaced) == nil)
        #expect(await code(good) == .wrongCode, "it is good once")
        _ = try await locked("new")
        // The answer does not reveal whether an account exists.
        try await accounts.sendResetCode(name: "nobody@example.com")
    }
}
