import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("Accounts with keys, on a connection that dies at each step", .serialized, .timeLimit(.minutes(15)))
struct InterruptedTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    /// A fault of one request: the request or its answer is lost, alone or with all requests after it.
    struct Accident: Sendable, CustomStringConvertible {
        let number: Int
        let losesAnswer: Bool
        let staysDead: Bool
        var description: String {
            "\(losesAnswer ? "answer" : "request") \(number)\(staysDead ? " and all after it" : "")"
        }

        func fault(_ at: Int) -> BadLine.Fault {
            if at == number { return losesAnswer ? .losesAnswer : .losesRequest }
            return at > number && staysDead ? .losesRequest : .none
        }

        static let all = (1...4).flatMap { number in
            [false, true].flatMap { answer in
                [false, true].map { Accident(number: number, losesAnswer: answer, staysDead: $0) }
            }
        }
    }

    private func accounts(_ accident: Accident? = nil) throws -> Accounts {
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: "device-1", options: .init())
        let line = BadLine(calls) { number, _ in accident?.fault(number) ?? .none }
        return Accounts(app: "notes", device: "device-1", api: try line.api())
    }

    private func signIn(_ name: String, _ password: String) async throws -> SignedIn? {
        do {
            let result = try await accounts().signIn(name: name, password: KeyBench.secret(password))
            guard case .open(let login) = result else { throw AccountError.locked }
            return login
        } catch {
            guard case .wrongPassword? = error as? AccountError else { throw error }
            return nil
        }
    }

    @Test("an interrupted sign-up gives the account, an unknown outcome, or an error that leaves no account")
    func signUp() async throws {
        for (index, accident) in Accident.all.enumerated() {
            let name = "ann-\(index)"
            var made: SignedIn?
            let error = await KeyBench.failure {
                made = try await self.accounts(accident).signUp(name: name, password: KeyBench.secret("one"))
            }
            let there = try await signIn(name, "one")
            if let made {
                #expect(there?.account.bundle == made.account.bundle, "\(accident)")
            } else if case .unknown? = error {
                // The account may exist; then its password opens it.
            } else {
                #expect(there == nil, "\(accident): \(error as Any)")
            }
        }
    }

    @Test("after an interrupted password change one of both passwords opens the bundle, and the report is true")
    func password() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("password 0"))
        var (current, login) = (0, ann)
        // Few enough for the server's limit of 30 prelogin requests a minute.
        let accidents = Accident.all.filter { $0.number == 2 || $0.number == 3 }
        for accident in accidents {
            let next = current + 1
            let error = await KeyBench.failure {
                _ = try await self.accounts(accident).changePassword(
                    of: login.account, accessToken: login.accessToken, from: KeyBench.secret("password \(current)"),
                    to: KeyBench.secret("password \(next)"))
            }
            let (old, new) = (
                try await signIn("ann", "password \(current)"), try await signIn("ann", "password \(next)")
            )
            #expect((old == nil) != (new == nil), "\(accident)")
            switch error {
            case nil: #expect(new != nil, "\(accident)")
            case .unknown?: break
            default: #expect(old != nil, "\(accident): \(error as Any)")
            }
            let open = try #require(old ?? new)
            #expect(open.account.bundle == ann.account.bundle && open.account.version == 1, "\(accident)")
            if new != nil { current = next }
            login = open
        }
        #expect(current > 2, "some of the changes were made")
    }

    @Test("an interrupted recovery is repeated and ends at the same account")
    func recover() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("lost"))
        for (index, accident) in Accident.all.enumerated() {
            let password = "new \(index)"
            let error = await KeyBench.failure {
                _ = try await self.accounts(accident).recover(
                    name: "ann", accessKey: ann.account.accessKey, newPassword: KeyBench.secret(password))
            }
            if error != nil {
                _ = try await accounts().recover(
                    name: "ann", accessKey: ann.account.accessKey, newPassword: KeyBench.secret(password))
            }
            let open = try #require(try await signIn("ann", password))
            #expect(open.account.bundle == ann.account.bundle, "\(accident)")
        }
    }

    @Test("a repeated recovery also works by changed words, from which a device computes a wrong account id")
    func recoverByNewWords() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("lost"))
        let changed = try await accounts().changeAccessKey(
            of: ann.account, to: .random(), accessToken: ann.accessToken, password: KeyBench.secret("lost"))
        for (index, accident) in Accident.all.enumerated() {
            let password = "new \(index)"
            let error = await KeyBench.failure {
                _ = try await self.accounts(accident).recover(
                    name: "ann", accessKey: changed.accessKey, newPassword: KeyBench.secret(password))
            }
            if error != nil {
                _ = try await accounts().recover(
                    name: "ann", accessKey: changed.accessKey, newPassword: KeyBench.secret(password))
            }
            let open = try #require(try await signIn("ann", password), "\(accident)")
            #expect(open.account.bundle == changed.bundle, "\(accident)")
            bench.pass(60)
        }
    }

    @Test("an interrupted bundle write is applied once or not at all, and its outcome is reported as it is")
    func bundle() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        var account = ann.account
        for (index, accident) in Accident.all.enumerated() {
            let (before, bucket) = (account, "bucket-\(index)")
            let error = await KeyBench.failure {
                _ = try await self.accounts(accident).update(before, accessToken: ann.accessToken) {
                    $0.buckets[bucket] = .init(mode: "sealed", epoch: 1)
                }
            }
            account = try await accounts().refresh(before, accessToken: ann.accessToken)
            let isThere = account.bundle.buckets[bucket] != nil
            #expect(account.version == before.version + (isThere ? 1 : 0), "\(accident)")
            switch error {
            case nil: #expect(isThere, "\(accident)")
            case .unknown?: break
            default: #expect(!isThere, "\(accident): \(error as Any)")
            }
        }
    }

    @Test(
        "an interrupted key change leaves one key that opens, its report is true, and a repeat ends at the new key"
    )
    func accessKey() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        var account = ann.account
        for accident in Accident.all {
            let next = AccessKey.random()
            // Only what the device keeps before the request is left when the program dies.
            let kept = try DeviceKeys(account, next: next)
            let before = account
            let error = await KeyBench.failure {
                _ = try await self.accounts(accident).changeAccessKey(
                    of: before, to: next, accessToken: ann.accessToken, password: KeyBench.secret("one"))
            }
            let settled = try await accounts().finishKeyChange(kept, accessToken: ann.accessToken)
            switch error {
            case nil: #expect(settled.accessKey == next, "\(accident)")
            case .unknown?: break
            default: #expect(settled.accessKey == before.accessKey, "\(accident): \(error as Any)")
            }
            account = try await accounts().changeAccessKey(
                of: try kept.open(), to: next, accessToken: ann.accessToken, password: KeyBench.secret("one"))
            #expect(account.accessKey == next && account.version == before.version + 1, "\(accident)")
            // The server's clock advances, since it answers 30 prelogin requests a minute.
            bench.pass(60)
        }
        let there = try #require(try await signIn("ann", "one"))
        #expect(there.account.bundle == account.bundle && there.account.accessKey == account.accessKey)
    }

    @Test("an interrupted upgrade of an account without keys ends at one bundle, and the old login ends last")
    func upgrade() async throws {
        // Few enough for the server's limit of 30 prelogin requests a minute.
        for (index, accident) in Accident.all.filter({ $0.number < 4 }).enumerated() {
            let (old, new) = ("old-\(index)", "new-\(index)")
            let session = try await bench.notes().signUp(username: old, password: "sent")
            guard case .account(_, let user) = session.user else { throw ClientError(.invalidOptions, "no account") }
            await session.close()
            let before = UpgradeFlow.Old(
                user: user, login: .init(username: KeyBench.secret(old), password: KeyBench.secret("sent")),
                password: KeyBench.secret("sent"))
            var made: Upgraded?
            let error = await KeyBench.failure {
                made = try await self.accounts(accident).upgrade(before, to: new, password: KeyBench.secret("one"))
            }
            // Both logins are good, or the old one alone; what was reported is true.
            #expect(try await isGood(old), "\(accident)")
            let there = try await signIn(new, "one")
            if let made { #expect(there?.account.bundle == made.login.account.bundle, "\(accident)") }
            if there == nil { #expect(error != nil, "\(accident)") }
            let again = try await accounts().upgrade(before, to: new, password: KeyBench.secret("two"))
            #expect(again.isNew == (there == nil) && again.login.account.user == user, "\(accident)")
            if let there { #expect(again.login.account.bundle == there.account.bundle, "\(accident)") }
            var finished: SignedIn?
            _ = await KeyBench.failure {
                finished = try await self.accounts(accident).finishUpgrade(again.login.account)
            }
            let last = try await accounts().finishUpgrade(again.login.account)
            for login in [finished, last].compactMap({ $0 }) {
                let read = try await accounts().refresh(login.account, accessToken: login.accessToken)
                #expect(read.bundle == again.login.account.bundle, "\(accident)")
            }
            #expect(try await !isGood(old), "\(accident)")
        }
    }

    /// Whether the name and the sent password log in.
    private func isGood(_ name: String) async throws -> Bool {
        let app = try bench.notes()
        do throws(ClientError) {
            let session = try await app.signIn(username: name, password: "sent")
            await session.signOut()
            await session.close()
            return true
        } catch {
            guard error.number == 401 else { throw error }
            return false
        }
    }
}
