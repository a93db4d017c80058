import Glibc
import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("T4: an attacker with the server's database", .serialized, .timeLimit(.minutes(15)))
struct StolenDatabaseTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    /// Encodings in which secret bytes might be stored.
    private func forms(_ bytes: [UInt8]) -> [[UInt8]] {
        let texts = [
            Base64.encode(bytes), Base64.encodeURL(bytes), Hex.encode(bytes), Hex.encode(bytes).uppercased(),
            Base32.encode(bytes),
        ]
        return [bytes, bytes.reversed()] + texts.map { Array($0.utf8) }
    }

    /// By the C library: in a debug build a search by the standard library takes minutes.
    private func holds(_ stored: [UInt8], _ form: [UInt8]) -> Bool {
        stored.withUnsafeBytes { all in
            guard let base = all.baseAddress, let first = form.first else { return false }
            var place = 0
            while place + form.count <= all.count {
                let rest = all.count - place - form.count + 1
                guard let found = memchr(base + place, Int32(first), rest) else {
                    return false
                }
                if memcmp(found, form, form.count) == 0 { return true }
                place = UnsafeRawPointer(found) - base + 1
            }
            return false
        }
    }

    @Test("the database holds no password, key or word through an account's life; a guess costs a scrypt of 2^17")
    func canaries() async throws {
        let received = Mutex<[(String, SecureBytes)]>([])
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: "device-1", options: .init())
        let line = BadLine(calls) { _, request in
            if let body = request.body { received.withLock { $0.append((request.path, body)) } }
            return .none
        }
        let accounts = Accounts(app: "notes", device: "device-1", api: try line.api())
        let (one, two, three) = ("canary-alpha", "canary-bravo", "canary-charlie")
        let ann = try await accounts.signUp(name: "ann", password: KeyBench.secret(one))
        let changed = try await accounts.changePassword(
            of: ann.account, accessToken: ann.accessToken, from: KeyBench.secret(one), to: KeyBench.secret(two))
        let written = try await accounts.update(changed.account, accessToken: changed.accessToken) {
            $0.buckets["canary-bucket"] = .init(mode: "sealed", epoch: 1)
        }
        let back = try await accounts.recover(
            name: "ann", accessKey: written.accessKey, newPassword: KeyBench.secret(three))
        let view = try await accounts.serverView(of: back.account, accessToken: back.accessToken)

        let stored = try bench.dump()
        #expect(holds(stored, view.bundle), "the search finds what is there")
        let bundle = ann.account.bundle
        var secrets: [(String, [UInt8])] = [one, two, three, "canary-bucket"].map { ($0, Array($0.utf8)) }
        let keys = [
            ("access key", ann.account.accessKey.secret), ("vault secret", bundle.vaultSecret),
            ("tree secret", bundle.treeSecret), ("seed", bundle.signingKey.seed),
            ("exchange key", bundle.exchangeKey.secret), ("proof", try ann.account.accessKey.recoveryAuth()),
            ("words", ann.account.accessKey.words),
        ]
        secrets += keys.map { name, secret in (name, secret.withUnsafeBytes { Array($0) }) }
        // The proofs sent to log in are kept as an HMAC under a key outside of the database.
        for (path, body) in received.withLock({ $0 }) {
            let object = try #require(
                try JSONValue(parsing: body.withUnsafeBytes { Array($0) }).objectValue)
            for name in ["a", "a_old", "r", "recover"] {
                guard let text = object[name]?.stringValue else { continue }
                secrets.append(("\(name) of \(path)", try #require(Base64.decodeURL(Array(text.utf8)[...]))))
            }
        }
        #expect(secrets.count > 16)
        for (name, bytes) in secrets {
            for form in forms(bytes) { #expect(!holds(stored, form), "\(name)") }
        }
        #expect(view.pin?.log2N == 17 && view.pin?.r == 8 && view.pin?.p == 1)
    }

    @Test(
        "of a sent password, an account's or a partner's user's, the database holds only a salted scrypt of 2^14"
    )
    func sentPasswords() async throws {
        let password = "canary-delta"
        let name = "old@example.com"
        let account = try await bench.notes().signUp(username: name, password: password)
        let partners = try await bench.app().signUpAtPartner(username: name, password: password)
        for session in [account, partners] { await session.close() }
        let stored = try bench.dump()
        for form in forms(Array(password.utf8)) { #expect(!holds(stored, form)) }
        let kept = try bench.sentPasswords()
        #expect(kept.count == 2 && kept[0].salt != kept[1].salt)
        for (salt, hash) in kept {
            #expect(salt.count == 16 && hash.count == 32 && holds(stored, hash), "the search finds what is there")
            let cost = Scrypt.Cost(n: 1 << 14, r: 8, p: 1)
            #expect(Scrypt.derive(Array(password.utf8), salt: salt, cost: cost) == hash)
        }
    }
}
