import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestServer
import ThicketTestSupport

@Suite("Accounts whose keys stay on the device, at a real server", .serialized, .timeLimit(.minutes(15)))
struct KeyedAccountTests {
    private let bench: AccountServer
    private static let patience = Duration.seconds(120)

    init() throws { bench = try AccountServer() }

    private func accounts() throws -> Accounts { try bench.notes().accounts(stretch: KeyBench.weak) }

    private func open(_ result: SignInResult) throws -> SignedIn {
        guard case .open(let login) = result else { throw ClientError(.unauthorized, "locked") }
        return login
    }

    @Test("a second device that logs in has the same keys and the server's user id, and both devices sync")
    func secondDevice() async throws {
        let ann = try await accounts().signUp(name: "Ann", password: KeyBench.secret("open sesame"))
        #expect(ann.account.user == (try AccountPlace.userID(app: "notes", key: ann.account.accessKey)))
        #expect(ann.account.version == 1 && ann.account.needsBackup)
        let there = try open(
            try await accounts().signIn(name: "ann", password: KeyBench.secret("open sesame")))
        #expect(there.account.bundle == ann.account.bundle && there.account.accessKey == ann.account.accessKey)
        #expect(there.account.user == ann.account.user && there.account.pin == ann.account.pin)
        let (one, two) = (
            try await bench.notes().resume(ann), try await bench.notes().resume(there)
        )
        let notes = try await one.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: Self.patience)
        let copy = try await two.bucket("notes")
        try await copy.waitUntilSynced(timeout: Self.patience)
        #expect(try await copy.get("a") == ["n": 1])
        await one.close()
        await two.close()
    }

    @Test(
        "a password is the same in either Unicode form; a wrong one is refused like an unknown name")
    func passwords() async throws {
        _ = try await accounts().signUp(name: "Zoë", password: KeyBench.secret("caf\u{E9}"))
        _ = try open(try await accounts().signIn(name: "Zoe\u{308}", password: KeyBench.secret("cafe\u{301}")))
        for (name, password) in [("Zoë", "cafe"), ("nobody", "cafe")] {
            let error = await KeyBench.failure {
                _ = try await self.accounts().signIn(name: name, password: KeyBench.secret(password))
            }
            #expect(error == .wrongPassword(isChanged: false))
        }
    }

    @Test("of six concurrent sign-ups with one name one wins, and its account is not changed by the others")
    func firstWriter() async throws {
        let accounts = try accounts()
        let results: [Result<SignedIn, AccountError>] = await withTaskGroup { group in
            for number in 0..<6 {
                group.addTask { () -> Result<SignedIn, AccountError> in
                    do throws(AccountError) {
                        return .success(
                            try await accounts.signUp(name: "ann", password: KeyBench.secret("password \(number)")))
                    } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let winners = results.compactMap { try? $0.get() }
        #expect(winners.count == 1)
        for case .failure(let error) in results { #expect(error == .nameTaken) }
        let winner = try #require(winners.first)
        let read = try await accounts.refresh(winner.account, accessToken: winner.accessToken)
        #expect(read == winner.account)
    }

    @Test("a password change keeps the bundle and ends the old password and other logins; a known device follows")
    func changePassword() async throws {
        let accounts = try accounts()
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret("one"))
        let there = try open(try await accounts.signIn(name: "ann", password: KeyBench.secret("one")))
        let changed = try await accounts.changePassword(
            of: ann.account, accessToken: ann.accessToken, from: KeyBench.secret("one"), to: KeyBench.secret("two"))
        #expect(changed.account.bundle == ann.account.bundle && changed.account.version == 1)
        #expect(changed.account.pin?.salt != ann.account.pin?.salt)
        let ended = await KeyBench.failure {
            _ = try await accounts.refresh(there.account, accessToken: there.accessToken)
        }
        guard case .server(let error)? = ended else { throw ClientError(.unauthorized, "\(ended as Any)") }
        #expect(error.number == 401)
        let known = try DeviceKeys(there.account)
        let old = await KeyBench.failure {
            _ = try await accounts.signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        }
        #expect(old == .wrongPassword(isChanged: true))
        let again = try open(
            try await accounts.signIn(name: "ann", password: KeyBench.secret("two"), known: known))
        #expect(again.account.bundle == ann.account.bundle && again.account.pin == changed.account.pin)
        let wrong = await KeyBench.failure {
            _ = try await accounts.changePassword(
                of: again.account, accessToken: again.accessToken, from: KeyBench.secret("guess"),
                to: KeyBench.secret("three"))
        }
        #expect(wrong == .wrongPassword(isChanged: false))
    }

    @Test("the recovery words alone restore everything under a new password; other words restore nothing")
    func recover() async throws {
        let accounts = try accounts()
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret("forgotten"))
        let words = try RecoveryWords.words(ann.account.accessKey.secret)
        let key = try AccessKey(try RecoveryWords.entropy(words))
        let other = await KeyBench.failure {
            _ = try await accounts.recover(name: "ann", accessKey: .random(), newPassword: KeyBench.secret("x"))
        }
        #expect(other == .wrongWords)
        let back = try await accounts.recover(
            name: "ann", accessKey: key, newPassword: KeyBench.secret("new"))
        #expect(back.account.bundle == ann.account.bundle && back.account.user == ann.account.user)
        let login = try open(try await accounts.signIn(name: "ann", password: KeyBench.secret("new")))
        #expect(login.account.bundle == ann.account.bundle)
    }

    @Test("four concurrent writes of the bundle are all in it afterwards")
    func merge() async throws {
        let accounts = try accounts()
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret("one"))
        let count = 4
        await withTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    let error = await KeyBench.failure {
                        _ = try await accounts.update(ann.account, accessToken: ann.accessToken) { bundle in
                            bundle.buckets["notes-\(number)"] = .init(mode: "sealed", epoch: 1)
                        }
                    }
                    #expect(error == nil)
                }
            }
        }
        let now = try await accounts.refresh(ann.account, accessToken: ann.accessToken)
        #expect(now.bundle.buckets.count == count && now.version == UInt64(1 + count))
        #expect(now.bundle.vaultSecret == ann.account.bundle.vaultSecret)
    }

    @Test("a write keeps members of later versions; a bundle of a later format is neither read nor replaced")
    func later() async throws {
        let accounts = try accounts()
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret("one"))
        let key = ann.account.accessKey
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: "later", options: .init())
        func place(_ version: UInt64) -> AccountPlace {
            AccountPlace(app: "notes", user: ann.account.user, version: version)
        }
        func text() async throws -> String {
            let view = try await accounts.serverView(of: ann.account, accessToken: ann.accessToken)
            return try place(view.version).openBundle(view.bundle, with: key).withUnsafeBytes {
                String(decoding: $0, as: UTF8.self)
            }
        }
        func write(_ text: String, replacing version: UInt64) async throws {
            let sealed = try place(version + 1).seal(bundle: KeyBench.secret(text), with: key)
            _ = try await calls.ask(.putBundle(sealed, replacing: version, .user(token: ann.accessToken)))
        }
        let member = #""later" : {"x":[1.50, "é\"}", null]}"#
        let inner = [#""old":{"mode":"sealed","epoch":7,"more":[1]}"#, #"{"kind":"stone","at":5,"by":"x"}"#]
        let before = try await text().replacing(
            #""buckets":{}"#, with: #""buckets":{\#(inner[0])},"backup":\#(inner[1])"#)
        try await write("{" + member + "," + before.dropFirst(), replacing: 1)
        _ = try await accounts.update(ann.account, accessToken: ann.accessToken) {
            $0.buckets["notes"] = .init(mode: "sealed", epoch: 1)
        }
        let kept = try await text()
        #expect(kept.contains(member) && kept.contains(#""notes""#) && kept.utf8.count % 512 == 0)
        for part in inner { #expect(kept.contains(part), "inside of members that it knows, too") }
        try await write(#"{"format":2}"#, replacing: 3)
        let error = await KeyBench.failure {
            _ = try await accounts.update(ann.account, accessToken: ann.accessToken) {
                $0.buckets["more"] = .init(mode: "sealed", epoch: 1)
            }
        }
        #expect(error == .newerFormat)
        #expect(try await text() == #"{"format":2}"#)
    }

    @Test("several accounts in one process have their own keys and ids, and none opens another's bundle")
    func several() async throws {
        let accounts = try accounts()
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret("same"))
        let bob = try await accounts.signUp(name: "bob", password: KeyBench.secret("same"))
        #expect(ann.account.user != bob.account.user && ann.account.accessKey != bob.account.accessKey)
        let mixed = try DeviceKeys(bob.account).open()
        let error = await KeyBench.failure {
            _ = try await accounts.refresh(mixed, accessToken: ann.accessToken)
        }
        #expect(error == .doesNotOpen)
        let sessions = [
            try await bench.notes().resume(ann), try await bench.notes().resume(bob),
        ]
        for (number, session) in sessions.enumerated() {
            let bucket = try await session.bucket("notes")
            try await bucket.set("who", to: ["n": .number(JSONNumber(Int64(number)))])
            try await bucket.waitUntilSynced(timeout: Self.patience)
        }
        for (number, session) in sessions.enumerated() {
            #expect(
                try await session.bucket("notes").get("who") == ["n": .number(JSONNumber(Int64(number)))])
            await session.close()
        }
    }

    @Test("kept device keys give the same account without a server, and show nothing when printed")
    func kept() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let kept = try DeviceKeys(text: try DeviceKeys(ann.account).text)
        #expect(try kept.open() == ann.account)
        #expect("\(kept) \(ann.account) \(ann.account.bundle)".contains("(") && !"\(kept)".contains("ann"))
        let text = kept.text
        for cut in stride(from: 0, to: text.count, by: 7) {
            #expect(throws: AccountError.damaged) { try DeviceKeys(text: text.part(0..<cut)) }
        }
        // Random changes are refused or read; keys that are read open the same account or fail.
        var random = SeededRandom(seed: 43)
        for _ in 0..<2_000 {
            var bytes: [UInt8] = text.withUnsafeBytes { Array($0) }
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let read = try? DeviceKeys(text: SecureBytes(copying: bytes)) else { continue }
            if let opened = try? read.open() { #expect(opened.bundle == ann.account.bundle) }
        }
    }
}
