import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("Change of the access key, at a real server", .serialized, .timeLimit(.minutes(15)))
struct AccessKeyTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(_ line: BadLine? = nil) throws -> Accounts {
        let line = try line ?? BadLine(try calls) { _, _ in .none }
        return Accounts(app: "notes", device: "device-1", api: try line.api())
    }

    private var calls: ServerCalls {
        get throws {
            try ServerCalls(
                address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: "device-1", options: .init())
        }
    }

    private func signUp() async throws -> SignedIn {
        try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
    }

    private func signIn(_ password: String = "one", known: DeviceKeys? = nil) async throws -> SignedIn {
        let result = try await accounts().signIn(
            name: "ann", password: KeyBench.secret(password), known: known)
        guard case .open(let login) = result else { throw AccountError.locked }
        return login
    }

    private func change(
        _ login: SignedIn, to next: AccessKey, password: String = "one", _ line: BadLine? = nil
    ) async throws -> OpenAccount {
        try await accounts(line).changeAccessKey(
            of: login.account, to: next, accessToken: login.accessToken, password: KeyBench.secret(password))
    }

    @Test(
        "a new access key keeps secrets, id and login, the old words open nothing, and a new backup is needed"
    )
    func words() async throws {
        let ann = try await signUp()
        _ = try await accounts().update(ann.account, accessToken: ann.accessToken) {
            $0.backup = .confirmed(.words, at: 7)
            $0.buckets["diary"] = .init(mode: "sealed", epoch: 1)
        }
        let next = AccessKey.random()
        let changed = try await change(ann, to: next)
        #expect(changed.accessKey == next && changed.version == 3 && changed.user == ann.account.user)
        #expect(changed.needsBackup && changed.bundle.buckets.keys.sorted() == ["diary"])
        #expect(changed.bundle.vaultSecret == ann.account.bundle.vaultSecret)
        #expect(changed.bundle.signingKey.seed == ann.account.bundle.signingKey.seed)
        let read = try await accounts().refresh(changed, accessToken: ann.accessToken)
        #expect(read == changed, "the login is good, and what is kept opens")
        let old = await KeyBench.failure {
            _ = try await self.accounts().recover(
                name: "ann", accessKey: ann.account.accessKey, newPassword: KeyBench.secret("thief"))
        }
        #expect(old == .wrongWords)
        // A new device, by the password and by the new words.
        #expect(try await signIn().account == changed)
        let typed = try AccessKey(words: next.words)
        let back = try await accounts().recover(
            name: "ann", accessKey: typed, newPassword: KeyBench.secret("two"))
        #expect(back.account.bundle == changed.bundle && back.account.user == changed.user)
        #expect(try await signIn("two").account.bundle == changed.bundle)
    }

    @Test(
        "codes and pieces of the old key open nothing that the server serves to a new device"
    )
    func oldPapers() async throws {
        let ann = try await signUp()
        let (code, pieces) = (
            try RecoveryCode.make(ann.account.accessKey, passcode: KeyBench.secret("passcode")),
            try KeyPieces.split(ann.account.accessKey, needed: 2, count: 3)
        )
        let changed = try await change(ann, to: .random())
        let view = try await accounts().serverView(of: changed, accessToken: ann.accessToken)
        let papers = [
            try RecoveryCode.open(code, passcode: KeyBench.secret("passcode")),
            try KeyPieces.join(.joined([pieces[0], KeyBench.secret("\n"), pieces[2]])),
        ]
        for paper in papers {
            #expect(paper == ann.account.accessKey)
            let error = await KeyBench.failure {
                _ = try await self.accounts().recover(
                    name: "ann", accessKey: paper, newPassword: KeyBench.secret("thief"))
            }
            #expect(error == .wrongWords)
            let place = AccountPlace(app: "notes", user: changed.user, version: view.version)
            #expect(throws: CryptoError.openingFailed) { try place.openBundle(view.bundle, with: paper) }
        }
        #expect(try await signIn("one").account == changed)
    }

    @Test(
        "another device keeps its login and secrets, gets keyChanged at the bundle, and the key at its next login"
    )
    func otherDevice() async throws {
        let ann = try await signUp()
        let there = try await signIn()
        let kept = try DeviceKeys(there.account)
        let changed = try await change(ann, to: .random())
        let session = try await bench.notes().resume(there)
        let diary = try await session.bucket("diary", sealed: true)
        try await diary.set("a", to: ["n": 1])
        try await diary.waitUntilSynced(timeout: .seconds(120))
        await session.close()
        for _ in 0..<2 {
            let reported = await KeyBench.failure {
                _ = try await self.accounts().update(there.account, accessToken: there.accessToken) {
                    $0.buckets["lost"] = .init(mode: "sealed", epoch: 1)
                }
            }
            #expect(reported == .keyChanged)
        }
        let password = await KeyBench.failure {
            _ = try await self.accounts().changePassword(
                of: there.account, accessToken: there.accessToken, from: KeyBench.secret("one"),
                to: KeyBench.secret("two"))
        }
        #expect(password == .keyChanged, "or the new password would open nothing")
        let again = await KeyBench.failure {
            _ = try await self.accounts().changeAccessKey(
                of: there.account, to: .random(), accessToken: there.accessToken, password: KeyBench.secret("one"))
        }
        #expect(again == .keyChanged)
        let login = try await signIn(known: kept)
        #expect(login.account == changed)
        let back = try await accounts().recover(
            name: "ann", accessKey: changed.accessKey, newPassword: KeyBench.secret("two"), known: kept)
        #expect(back.account.bundle == changed.bundle, "or the new words")
    }

    @Test("a device with the old key cannot pair another one; a device with the new key can")
    func pairing() async throws {
        let ann = try await signUp()
        let there = try await signIn()
        let changed = try await change(ann, to: .random())
        let begun = try await accounts().beginPairing()
        let stale = await KeyBench.failure {
            _ = try await self.accounts().give(
                there.account, accessToken: there.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        #expect(stale == .keyChanged)
        #expect(try await accounts().receive(begun) == nil, "nothing was sent")
        _ = try await accounts().give(changed, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let received = try #require(try await accounts().receive(begun))
        #expect(try await accounts().open(received).account.bundle == changed.bundle)
    }

    @Test(
        "a key change with a wrong or empty password, the same key or a false bundle changes nothing")
    func refused() async throws {
        let ann = try await signUp()
        let wrong = await KeyBench.failure {
            _ = try await self.change(ann, to: .random(), password: "guess")
        }
        #expect(wrong == .wrongPassword(isChanged: false))
        for (key, password): (AccessKey, String) in [(ann.account.accessKey, "one"), (.random(), "")] {
            let error = await KeyBench.failure {
                _ = try await self.change(ann, to: key, password: password)
            }
            guard case .unusable? = error else { throw ClientError(.refused, "\(error as Any)") }
        }
        let lies: [(JSONObject, AccountError)] = [
            (["bundle": "AAAA"], .doesNotOpen), (["bundle": .null], .bundleMissing),
            (["version": 0], .rolledBack(seen: 1, shown: 0)),
            (["version": 2], .keyChanged),
        ]
        for (lie, expected) in lies {
            let line = BadLine(try calls) { _, request in
                request.path == "bundle" ? .says { $0.setting(lie) } : .none
            }
            let error = await KeyBench.failure { _ = try await self.change(ann, to: .random(), line) }
            #expect(error == expected)
            #expect(line.paths == ["bundle"], "it was read, and nothing written")
        }
        #expect(try await signIn().account == ann.account)
    }

    @Test("a concurrent bundle write survives a key change; a concurrent key or password change wins over it")
    func races() async throws {
        let ann: SignedIn = try await signUp()
        let other: Mutex<(@Sendable () async throws -> Void)?> = .init(nil)
        let calls = try calls
        let api = try AccountAPIClient(stretch: KeyBench.weak) { request throws(ClientError) in
            if request.path == "access",
                let meanwhile = other.withLock({ action in
                    defer { action = nil }
                    return action
                })
            {
                do { try await meanwhile() } catch { throw ClientError(.refused, "\(error)") }
            }
            return try await calls.ask(request)
        }
        let raced = Accounts(app: "notes", device: "device-1", api: api)
        let quiet = try accounts()
        other.withLock {
            $0 = {
                _ = try await quiet.update(ann.account, accessToken: ann.accessToken) {
                    $0.buckets["diary"] = .init(mode: "sealed", epoch: 1)
                }
            }
        }
        let changed: OpenAccount = try await raced.changeAccessKey(
            of: ann.account, to: .random(), accessToken: ann.accessToken, password: KeyBench.secret("one"))
        #expect(changed.bundle.buckets["diary"] != nil && changed.version == 3)
        let faster = AccessKey.random()
        other.withLock {
            $0 = {
                _ = try await quiet.changeAccessKey(
                    of: changed, to: faster, accessToken: ann.accessToken, password: KeyBench.secret("one"))
            }
        }
        let slower = await KeyBench.failure {
            _ = try await raced.changeAccessKey(
                of: changed, to: .random(), accessToken: ann.accessToken, password: KeyBench.secret("one"))
        }
        #expect(slower == .keyChanged)
        #expect(try await signIn().account.accessKey == faster)
        // After a concurrent password change the new password is required.
        let now: SignedIn = try await signIn()
        other.withLock {
            $0 = {
                _ = try await quiet.changePassword(
                    of: now.account, accessToken: now.accessToken, from: KeyBench.secret("one"),
                    to: KeyBench.secret("two"))
            }
        }
        let late = await KeyBench.failure {
            _ = try await raced.changeAccessKey(
                of: now.account, to: .random(), accessToken: ann.accessToken, password: KeyBench.secret("one"))
        }
        #expect(late != nil)
        #expect(try await signIn("two").account.accessKey == faster)
    }

    /// The outcome of one of many concurrent operations.
    private enum Done: Sendable {
        case key(AccessKey), bucket(String), password
        case refused(AccountError?)
    }

    private static func doing(_ done: Done, _ body: () async throws -> Void) async -> Done {
        let error = await KeyBench.failure(body)
        return error == nil ? done : .refused(error)
    }

    @Test(
        "of concurrent changes of key, bundle and password one key wins, and each confirmed write is kept")
    func storm() async throws {
        let ann: SignedIn = try await signUp()
        let accounts = try accounts()
        let all: [Done] = await withTaskGroup(of: Done.self) { group in
            for number in 0..<4 {
                let (key, name): (AccessKey, String) = (.random(), "b\(number)")
                group.addTask {
                    await Self.doing(.key(key)) {
                        _ = try await accounts.changeAccessKey(
                            of: ann.account, to: key, accessToken: ann.accessToken, password: KeyBench.secret("one"))
                    }
                }
                group.addTask {
                    await Self.doing(.bucket(name)) {
                        _ = try await accounts.update(ann.account, accessToken: ann.accessToken) {
                            $0.buckets[name] = .init(mode: "sealed", epoch: 1)
                        }
                    }
                }
            }
            group.addTask {
                await Self.doing(.password) {
                    _ = try await accounts.changePassword(
                        of: ann.account, accessToken: ann.accessToken, from: KeyBench.secret("one"),
                        to: KeyBench.secret("two"))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var (keys, names, password): ([AccessKey], [String], String) = ([], [], "one")
        for done in all {
            switch done {
            case .key(let key): keys.append(key)
            case .bucket(let name): names.append(name)
            case .password: password = "two"
            case .refused(let error):
                // Another device's key or password came first, or too many versions did; nothing else.
                let isClear: Bool =
                    [.keyChanged, .busy, .wrongPassword(isChanged: true)].contains(error) || error?.isEnded == true
                #expect(isClear, "\(error as Any)")
            }
        }
        #expect(keys.count <= 1, "all began with the same key, so one can follow it")
        let there: SignedIn = try await signIn(password)
        #expect(there.account.accessKey == keys.first ?? ann.account.accessKey)
        #expect(there.account.bundle.vaultSecret == ann.account.bundle.vaultSecret)
        for name in names { #expect(there.account.bundle.buckets[name] != nil, "\(name)") }
    }

    @Test("a server that only pretends a key change is noticed at the next read, and nothing is lost here")
    func pretended() async throws {
        let ann = try await signUp()
        let line = BadLine(try calls) { _, request in
            request.path == "access" ? .saysInstead { ["version": 2] } : .none
        }
        let changed = try await change(ann, to: .random(), line)
        let error = await KeyBench.failure {
            _ = try await self.accounts().refresh(changed, accessToken: ann.accessToken)
        }
        #expect(error == .rolledBack(seen: 2, shown: 1))
        #expect(try DeviceKeys(changed).open().bundle.vaultSecret == ann.account.bundle.vaultSecret)
        let other = BadLine(try calls) { _, request in
            request.path == "access" ? .saysInstead { ["version": 7] } : .none
        }
        let odd = await KeyBench.failure { _ = try await self.change(ann, to: .random(), other) }
        #expect(odd == .otherAccount)
    }

    @Test("a server that always reports a conflict is given up on after five tries")
    func conflicts() async throws {
        let ann = try await signUp()
        let line = BadLine(try calls) { _, request in
            request.path == "access" ? .refuses(ClientError(.refused, "somebody was faster", number: 409)) : .none
        }
        let error = await KeyBench.failure { _ = try await self.change(ann, to: .random(), line) }
        #expect(error == .busy && line.paths.filter { $0 == "access" }.count == 5)
    }

    @Test(
        "a device that missed the key change cannot unlock an account reset by mail; the old password can")
    func locked() async throws {
        let name = "ann@example.com"
        let ann = try await accounts().signUp(name: name, password: KeyBench.secret("one"))
        let kept = try DeviceKeys(ann.account)
        let changed = try await change(ann, to: .random())
        try await accounts().sendResetCode(name: name)
        try await accounts().reset(name: name, code: try bench.nextCode(), newPassword: KeyBench.secret("two"))
        guard
            case .locked(let account) = try await accounts().signIn(
                name: name, password: KeyBench.secret("two"), known: kept)
        else { throw ClientError(.refused, "it is not locked") }
        let stale = await KeyBench.failure {
            _ = try await self.accounts().unlock(account, accessKey: nil)
        }
        #expect(stale == .keyChanged)
        let refused = await KeyBench.failure {
            _ = try await self.accounts().changeAccessKey(
                of: changed, to: .random(), accessToken: account.accessToken, password: KeyBench.secret("two"))
        }
        guard case .server(let error)? = refused else { throw ClientError(.refused, "\(refused as Any)") }
        #expect(error.number == 403, "what is locked is not put under another key")
        let opened = try await accounts().unlock(account, oldPassword: KeyBench.secret("one"))
        #expect(opened.account.bundle == changed.bundle)
    }

    // MARK: - A lying server

    @Test(
        "a replayed bundle is detected by a device that saw the newer one and by the new words, not by a new device"
    )
    func replayed() async throws {
        let ann = try await signUp()
        let incoming = Mutex<JSONObject?>(nil)
        let listening = BadLine(try calls) { _, request in
            guard request.path == "login" else { return .none }
            return .says { answer in
                incoming.withLock { $0 = answer }
                return answer
            }
        }
        _ = try await accounts(listening).signIn(name: "ann", password: KeyBench.secret("one"))
        let old = try #require(incoming.withLock { $0 })
        let changed = try await change(ann, to: .random())
        let replaying = BadLine(try calls) { _, request in
            guard ["login", "bundle", "recover"].contains(request.path) else { return .none }
            return .says { answer in
                answer.setting([
                    "bundle": old["bundle"] ?? .null, "access": old["access"] ?? .null,
                    "version": old["version"] ?? .null,
                ])
            }
        }
        let lied = try accounts(replaying)
        let login = await KeyBench.failure {
            _ = try await lied.signIn(name: "ann", password: KeyBench.secret("one"), known: try DeviceKeys(changed))
        }
        #expect(login == .rolledBack(seen: 2, shown: 1))
        let read = await KeyBench.failure {
            _ = try await lied.refresh(changed, accessToken: ann.accessToken)
        }
        #expect(read == .rolledBack(seen: 2, shown: 1))
        // The limit that SECURITY-MODEL.md states: a device that has seen nothing logs in under the old key.
        guard case .open(let fooled) = try await lied.signIn(name: "ann", password: KeyBench.secret("one")) else {
            throw AccountError.locked
        }
        #expect(fooled.account.accessKey == ann.account.accessKey)
        let words = await KeyBench.failure {
            _ = try await lied.recover(
                name: "ann", accessKey: changed.accessKey, newPassword: KeyBench.secret("two"))
        }
        #expect(words == .doesNotOpen, "the new words open no old bundle")
    }

    @Test(
        "a device that knows the account rejects other secrets under another key as another account"
    )
    func impostor() async throws {
        let ann = try await signUp()
        let known = try DeviceKeys(ann.account)
        let key = AccessKey.random()
        let place = AccountPlace(app: "notes", user: ann.account.user, version: 9)
        let text = AccountBundle.make().text()
        let sealed = Base64.encodeURL(try place.seal(bundle: text, with: key))
        // An attacker with the password and the server seals a key of their own under it.
        let pin = try #require(ann.account.pin)
        let keys: PasswordKeys = try KeyBench.weak(KeyBench.secret("one"), pin.salt, .standard)
        let wrap = Base64.encodeURL(
            try AccountPlace.ofAccessKey(app: "notes", user: ann.account.user).seal(key, under: keys.vaultKey))
        let line = BadLine(try calls) { _, request in
            guard ["login", "recover", "bundle"].contains(request.path) else { return .none }
            return .says {
                $0.setting(["bundle": .string(sealed), "access": .string(wrap), "version": 9])
            }
        }
        let login = await KeyBench.failure {
            _ = try await self.accounts(line).signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        }
        #expect(login == .otherAccount)
        let settled = await KeyBench.failure {
            _ = try await self.accounts(line).finishKeyChange(
                try DeviceKeys(ann.account, next: key), accessToken: ann.accessToken)
        }
        #expect(settled == .otherAccount)
        let changed = await KeyBench.failure { _ = try await self.change(ann, to: key, line) }
        #expect(changed == .otherAccount)
    }

    @Test("kept device keys hold the next key, too, and return both; damage is an error")
    func kept() async throws {
        let ann = try await signUp()
        let next = AccessKey.random()
        let kept = try DeviceKeys(text: try DeviceKeys(ann.account, next: next).text)
        #expect(kept.next == next && kept.accessKey == ann.account.accessKey)
        #expect(try kept.open() == ann.account)
        #expect(try DeviceKeys(text: DeviceKeys(ann.account).text).next == nil)
        let text = try DeviceKeys(ann.account, next: next).text.withUnsafeBytes {
            String(decoding: $0, as: UTF8.self)
        }
        let short = text.replacing(#""next_access_key":""#, with: #""next_access_key":"AA"#)
        #expect(throws: AccountError.damaged) { try DeviceKeys(text: KeyBench.secret(short)) }
    }
}

extension AccountError {
    /// The login ended while it was used.
    fileprivate var isEnded: Bool {
        if case .server(let error) = self { return error.number == 401 }
        return false
    }
}
