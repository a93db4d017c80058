import Testing
import ThicketClient
import ThicketCrypto

@Suite(
    "An account's keys after a restore: what other devices have seen, and locks", .serialized, .timeLimit(.minutes(15)))
struct PutBackBesideTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func calls(_ device: String) throws -> ServerCalls {
        try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: device, options: .init())
    }

    private func accounts(_ device: String = "d/1", line: BadLine? = nil) throws -> Accounts {
        let line = try line ?? BadLine(try calls(device)) { _, _ in .none }
        return Accounts(app: "notes", device: device, api: try line.api())
    }

    private func noted(
        _ buckets: String..., in account: OpenAccount, _ token: String
    ) async throws -> OpenAccount {
        var account = account
        for bucket in buckets {
            account = try await accounts().keepSealed(bucket, of: account, accessToken: token)
        }
        return account
    }

    private func opened(_ result: SignInResult) throws -> SignedIn {
        guard case .open(let login) = result else { throw AccountError.locked }
        return login
    }

    private func buckets(_ account: OpenAccount) -> [String] { account.bundle.buckets.keys.sorted() }

    @Test("a version that another device has put back otherwise is rolledBack on every path; nothing is written")
    func sameNumber() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let backup = try bench.backup(of: ann.account.user)
        let one = try await noted("diary1", in: ann.account, ann.accessToken)
        let two = try await noted("diary2", in: one, ann.accessToken)
        try bench.restore(backup)
        let first = try await accounts().putBack(one, accessToken: ann.accessToken)
        #expect(first.account.version == 3 && two.version == 3)
        #expect(buckets(first.account) == ["diary1"] && buckets(two) == ["diary1", "diary2"])
        // A device that has seen this very content continues.
        #expect(try await accounts().refresh(first.account, accessToken: ann.accessToken) == first.account)

        let (known, token) = (try DeviceKeys(two), ann.accessToken)
        let ways: [(String, @Sendable (Accounts) async throws -> Void)] = [
            ("refresh", { _ = try await $0.refresh(two, accessToken: token) }),
            ("keep", { _ = try await $0.keepSealed("more", of: two, accessToken: token) }),
            ("settle", { _ = try await $0.finishKeyChange(DeviceKeys(two, next: .random()), accessToken: token) }),
            (
                "access key",
                {
                    _ = try await $0.changeAccessKey(
                        of: two, to: .random(), accessToken: token, password: KeyBench.secret("one"))
                }
            ),
            ("login", { _ = try await $0.signIn(name: "ann", password: KeyBench.secret("one"), known: known) }),
        ]
        for (what, way) in ways {
            let accounts = try accounts("d/2")
            let error = await KeyBench.failure { try await way(accounts) }
            #expect(error == .rolledBack(seen: 3, shown: 3), "\(what)")
            #expect(error?.description.contains("another content for version 3") == true)
        }
        let now = try bench.backup(of: ann.account.user)
        #expect(now.version == 3, "nothing of that was written")
        let both = try await accounts("d/2").putBack(two, accessToken: token)
        #expect(both.account.version == 4 && buckets(both.account) == ["diary1", "diary2"])
        #expect(try await accounts().refresh(first.account, accessToken: token) == both.account)
        // With the words the password is set first, and the bundle is still reported as rolled back.
        try bench.restore(now)
        let recovered = await KeyBench.failure {
            _ = try await self.accounts("d/2").recover(
                name: "ann", accessKey: two.accessKey, newPassword: KeyBench.secret("two"), known: known)
        }
        #expect(recovered == .rolledBack(seen: 3, shown: 3))
    }

    @Test("a device accepts a greater version, and still puts back what only its own kept keys have")
    func greaterNumber() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let backup = try bench.backup(of: ann.account.user)
        let one = try await noted("diary1", in: ann.account, ann.accessToken)
        let two = try await noted("diary2", in: one, ann.accessToken)
        try bench.restore(backup)
        let first = try await accounts().putBack(one, accessToken: ann.accessToken)
        let later = try await noted("more", in: first.account, ann.accessToken)
        #expect(later.version == 4)
        // As decision 0043 says: nothing distinguishes this from entries that another device has removed.
        let read = try await accounts("d/2").refresh(two, accessToken: ann.accessToken)
        #expect(buckets(read) == ["diary1", "more"])
        let both = try await accounts("d/2").putBack(two, accessToken: ann.accessToken)
        #expect(buckets(both.account) == ["diary1", "diary2", "more"] && both.account.version == 5)
    }

    @Test("an account locked after the restore is opened with the device's key, and its keys are put back")
    func lockedAccount() async throws {
        let name = "ann@example.com"
        let ann = try await accounts().signUp(name: name, password: KeyBench.secret("one"))
        let backup = try bench.backup(of: ann.account.user)
        let newest = try await noted("diary", "letters", in: ann.account, ann.accessToken)
        let known = try DeviceKeys(newest)
        try bench.restore(backup)
        bench.pass(301)
        try await accounts().sendResetCode(name: name)
        try await accounts().reset(name: name, code: try bench.nextCode(), newPassword: KeyBench.secret("two"))
        let over = await KeyBench.failure {
            _ = try await self.accounts().putBack(newest, accessToken: ann.accessToken)
        }
        guard case .server(let reason)? = over else { throw ClientError(.refused, "\(over as Any)") }
        #expect(reason.number == 401, "the reset has ended all logins")
        guard
            case .locked(let locked) = try await accounts().signIn(
                name: name, password: KeyBench.secret("two"), known: known)
        else { throw ClientError(.refused, "it is not locked") }
        let stuck = await KeyBench.failure {
            _ = try await self.accounts().unlock(locked, accessKey: nil)
        }
        #expect(stuck == .rolledBack(seen: 3, shown: 1))
        // A bundle that does not open is not unlocked, and does not count as a change of the key either.
        let line = BadLine(try calls("d/1")) { _, request in
            request.path == "login" ? .says { $0.setting(["bundle": "AAAA"]) } : .none
        }
        let foreign = await KeyBench.failure {
            _ = try await self.accounts(line: line).signInAfterRestore(
                password: KeyBench.secret("two"), known: known)
        }
        #expect(foreign == .doesNotOpen && line.paths == ["prelogin", "login"])

        let token = try await accounts().signInAfterRestore(password: KeyBench.secret("two"), known: known)
        let back = try await accounts().putBack(newest, accessToken: token)
        #expect(back.account.version == 4 && buckets(back.account) == ["diary", "letters"])
        let login = try opened(
            try await accounts().signIn(name: name, password: KeyBench.secret("two"), known: known))
        #expect(login.account.bundle == newest.bundle)
    }
}
