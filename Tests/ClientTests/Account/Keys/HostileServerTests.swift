import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("Accounts with keys, at a malicious server", .serialized, .timeLimit(.minutes(15)))
struct HostileServerTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private var calls: ServerCalls {
        get throws {
            try ServerCalls(
                address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: "device-1", options: .init())
        }
    }

    private func accounts(_ line: BadLine? = nil, stretch: @escaping AccountAPIClient.Stretch = KeyBench.weak) throws
        -> Accounts
    {
        let line = try line ?? BadLine(try calls) { _, _ in .none }
        return Accounts(app: "notes", device: "device-1", api: try line.api(stretch: stretch))
    }

    /// A connection whose server answers one kind of request with a lie.
    private func lying(_ path: String, _ change: @escaping @Sendable (JSONObject) -> JSONObject) throws -> BadLine {
        BadLine(try calls) { _, request in request.path == path ? .says(change) : .none }
    }

    private static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }

    // MARK: - Prelogin

    @Test(
        "T7: parameters out of bounds, another scheme and bad salts are refused before any stretching or sending")
    func bounds() async throws {
        let good: JSONObject = [
            "scheme": 1, "kdf": 1, "n": 17, "r": 8, "p": 1,
            "salt": .string(Base64.encodeURL(.init(repeating: 7, count: 16))),
        ]
        let changes = [
            ("n", 10), ("n", 16), ("n", 21), ("n", 30), ("n", 31), ("n", 0), ("n", -1), ("n", Self.number(.max)),
            ("r", 1), ("r", 9), ("r", Self.number(.max)), ("p", 0), ("p", 5), ("p", Self.number(.max)), ("scheme", 0),
            ("scheme", 2), ("kdf", 0), ("kdf", 2), ("salt", .string(Base64.encodeURL(.init(repeating: 7, count: 15)))),
            ("salt", .string("")),
        ]
        for (name, value) in changes {
            var answer = good
            answer[name] = value
            let said = answer
            let line = BadLine(nil) { _, _ in .saysInstead { said } }
            let accounts = try accounts(line) { _, _, _ throws(CryptoError) in
                Issue.record("\(name) \(value): a password was stretched")
                throw .outOfBounds(.cost)
            }
            let error: AccountError? = await KeyBench.failure {
                _ = try await accounts.signIn(name: "ann", password: KeyBench.secret("open sesame"))
            }
            guard case .downgrade? = error else { throw ClientError(.refused, "\(name) \(value): \(error as Any)") }
            #expect(line.paths == ["prelogin"])
        }
    }

    @Test("an answer without a valid number (null, text, fraction, array, bool) is a protocol violation")
    func nonsense() async throws {
        for value: JSONValue in [.null, "17", .number(try #require(JSONNumber(1.5))), .array([]), .bool(true)] {
            let line = BadLine(nil) { _, _ in
                .saysInstead { ["scheme": 1, "kdf": 1, "n": value, "r": 8, "p": 1, "salt": "AAAAAAAAAAAAAAAAAAAAAA"] }
            }
            let accounts = try accounts(line)
            let error: AccountError? = await KeyBench.failure {
                _ = try await accounts.signIn(name: "ann", password: KeyBench.secret("x"))
            }
            guard case .server(let reported)? = error else { throw ClientError(.refused, "\(error as Any)") }
            #expect(reported.code == .protocolViolation)
        }
    }

    @Test(
        "a device that knows the account rejects other parameters for its salt, and keeps its pin at another salt"
    )
    func pinned() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let known = try DeviceKeys(ann.account)
        let same: [(String, JSONValue)] = [("n", 18), ("n", 20), ("p", 2)]
        for (name, value) in same {
            let line: BadLine = try lying("prelogin") { $0.setting([name: value]) }
            let accounts = try accounts(line) { _, _, _ throws(CryptoError) in
                Issue.record("a password was stretched")
                throw .outOfBounds(.cost)
            }
            let error = await KeyBench.failure {
                _ = try await accounts.signIn(name: "ann", password: KeyBench.secret("one"), known: known)
            }
            #expect(error == .downgrade("other parameters for the same password"))
        }
        // A salt of the server's choice: the login fails, and the pin stays.
        let salted = try lying("prelogin") { $0.setting(["salt": "AAAAAAAAAAAAAAAAAAAAAA"]) }
        let error = await KeyBench.failure {
            _ = try await self.accounts(salted).signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        }
        #expect(error == .wrongPassword(isChanged: true))
        #expect(known.pin == ann.account.pin)
    }

    // MARK: - Bundles

    @Test("bundles, wraps, versions and ids of another account do not open, and nothing is written over them")
    func swapped() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("same"))
        _ = try await accounts().signUp(name: "eve", password: KeyBench.secret("same"))
        let received = Mutex<[JSONObject]>([])
        let listening = try lying("login") { answer in
            received.withLock { $0.append(answer) }
            return answer
        }
        for name in ["ann", "eve"] {
            _ = try await accounts(listening).signIn(name: name, password: KeyBench.secret("same"))
        }
        let (own, foreign) = received.withLock { ($0[0], $0[1]) }
        func member(_ name: String, _ object: JSONObject) -> JSONObject { [name: object[name] ?? .null] }
        let lies: [(JSONObject, AccountError)] = [
            (member("bundle", foreign), .doesNotOpen), (member("access", foreign), .doesNotOpen),
            (member("userid", foreign), .doesNotOpen), (["version": 2], .doesNotOpen), (["version": 0], .doesNotOpen),
            (["bundle": .null, "version": 0], .bundleMissing),
            (foreign.setting(member("access_token", own)), .doesNotOpen),
        ]
        for (lie, expected) in lies {
            let line = try lying("login") { $0.setting(lie) }
            let error: AccountError? = await KeyBench.failure {
                _ = try await self.accounts(line).signIn(name: "ann", password: KeyBench.secret("same"))
            }
            #expect(error == expected, "\(lie.keys)")
            #expect(!line.paths.contains("bundle"), "nothing is written in the place of what does not open")
        }
        // Another user's whole account, to a device that knows this one.
        let whole = try lying("login") { _ in foreign }
        let known = try DeviceKeys(ann.account)
        let error = await KeyBench.failure {
            _ = try await self.accounts(whole).signIn(name: "ann", password: KeyBench.secret("same"), known: known)
        }
        #expect(error == .otherAccount)
        let after = try await accounts().refresh(ann.account, accessToken: ann.accessToken)
        #expect(after == ann.account)
    }

    @Test("a device that saw a newer bundle detects an older one, also under the newer one's version")
    func rolledBack() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let received = Mutex<JSONObject?>(nil)
        let listening = try lying("bundle") { answer in
            received.withLock { $0 = $0 ?? answer }
            return answer
        }
        _ = try await accounts(listening).refresh(ann.account, accessToken: ann.accessToken)
        let old: JSONObject = try #require(received.withLock { $0 })
        let newer = try await accounts().update(ann.account, accessToken: ann.accessToken) {
            $0.buckets["notes"] = .init(mode: "sealed", epoch: 1)
        }
        #expect(newer.version == 2)
        for (lie, expected): (JSONObject, AccountError) in [
            (old, .rolledBack(seen: 2, shown: 1)), (old.setting(["version": 2]), .doesNotOpen),
            (old.setting(["version": 3]), .keyChanged),
        ] {
            let line = try lying("bundle") { _ in lie }
            let error = await KeyBench.failure {
                _ = try await self.accounts(line).update(newer, accessToken: ann.accessToken) {
                    $0.buckets["other"] = .init(mode: "sealed", epoch: 1)
                }
            }
            #expect(error == expected)
            #expect(line.paths == ["bundle"], "it was read and not written")
        }
        let login = try lying("login") { $0.setting(old) }
        let known = try DeviceKeys(newer)
        let error = await KeyBench.failure {
            _ = try await self.accounts(login).signIn(name: "ann", password: KeyBench.secret("one"), known: known)
        }
        #expect(error == .rolledBack(seen: 2, shown: 1))
    }

    @Test("a server that always reports a conflict is given up on after five tries")
    func conflicts() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("one"))
        let line = BadLine(try calls) { _, request in
            request.method == "PUT" ? .refuses(ClientError(.refused, "somebody was faster", number: 409)) : .none
        }
        let error = await KeyBench.failure {
            _ = try await self.accounts(line).update(ann.account, accessToken: ann.accessToken) {
                $0.buckets["notes"] = .init(mode: "sealed", epoch: 1)
            }
        }
        #expect(error == .busy && line.paths.count == 10)
    }

    @Test("a sign-up rejects a user id other than the account's")
    func otherID() async throws {
        let line = try lying("signup") { $0.setting(["userid": "00000000000000000000000000000000"]) }
        let error = await KeyBench.failure {
            _ = try await self.accounts(line).signUp(name: "ann", password: KeyBench.secret("one"))
        }
        #expect(error == .otherAccount)
    }

    // MARK: - Locked

    @Test("after a reset by mail only the words, the password from before, or a device with the keys open the account")
    func locked() async throws {
        let ann = try await accounts().signUp(name: "ann", password: KeyBench.secret("old"))
        let before = Mutex<JSONValue>(.null)
        let listening = try lying("login") { answer in
            before.withLock { $0 = answer["access"] ?? .null }
            return answer
        }
        _ = try await accounts(listening).signIn(name: "ann", password: KeyBench.secret("old"))
        let wrap = before.withLock { $0 }
        let salt = Base64.encodeURL(try #require(ann.account.pin).salt)
        _ = try await accounts().changePassword(
            of: ann.account, accessToken: ann.accessToken, from: KeyBench.secret("old"), to: KeyBench.secret("new"))
        func line(n: JSONValue = 17) throws -> BadLine {
            try lying("login") { answer in
                answer.setting([
                    "access": .null, "locked": .bool(true),
                    "before": ["kdf": 1, "n": n, "r": 8, "p": 1, "salt": .string(salt), "access": wrap],
                ])
            }
        }
        func locked(_ accounts: Accounts, known: DeviceKeys? = nil) async throws -> LockedAccount {
            guard
                case .locked(let locked) = try await accounts.signIn(
                    name: "ann", password: KeyBench.secret("new"), known: known)
            else { throw ClientError(.refused, "it is not locked") }
            return locked
        }
        let here = try accounts(try line())
        let account: LockedAccount = try await locked(here)
        #expect(account.acceptsOldPassword && !account.opensHere)
        let wrong: [(AccountError, AccountError?)] = [
            (
                .wrongPassword(isChanged: false),
                await KeyBench.failure {
                    _ = try await here.unlock(account, oldPassword: KeyBench.secret("guess"))
                }
            ),
            (
                .wrongWords,
                await KeyBench.failure {
                    _ = try await here.unlock(account, accessKey: .random())
                }
            ),
            (
                .locked,
                await KeyBench.failure {
                    _ = try await here.unlock(account, accessKey: nil)
                }
            ),
        ]
        for (expected, error) in wrong { #expect(error == expected) }
        let weak = try accounts(try line(n: 10))
        let bomb = try await locked(weak)
        let refused = await KeyBench.failure {
            _ = try await weak.unlock(bomb, oldPassword: KeyBench.secret("old"))
        }
        #expect(refused == .downgrade("kdf 1, N 2^10, r 8, p 1"))
        let known = try DeviceKeys(ann.account)
        for way in 0..<3 {
            let account = try await locked(here, known: way == 2 ? known : nil)
            let opened: SignedIn
            switch way {
            case 0: opened = try await here.unlock(account, oldPassword: KeyBench.secret("old"))
            case 1: opened = try await here.unlock(account, accessKey: ann.account.accessKey)
            default: opened = try await here.unlock(account, accessKey: nil)
            }
            #expect(opened.account.bundle == ann.account.bundle)
            guard case .open(let login) = try await accounts().signIn(name: "ann", password: KeyBench.secret("new"))
            else { throw ClientError(.refused, "locked") }
            #expect(login.account.accessKey == ann.account.accessKey)
        }
    }
}
