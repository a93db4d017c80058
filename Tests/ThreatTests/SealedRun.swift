import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketSealed
import ThicketThreats

/// A whole life of an account with keys and a sealed bucket, by the client library: signed up, written, changed,
/// removed, on a second device by pairing, another password, another access key, recovered by words, logged out,
/// deleted. Secrets are recorded.
final class SealedRun {
    static let patience = Duration.seconds(120)

    /// Secrets to search for in all spellings and as hashes.
    private(set) var texts = [(name: String, secret: String)]()
    /// Bytes: keys, and the words three by three.
    private(set) var canaries = [Canary]()
    /// Values that the server gets, as they are sent.
    private(set) var sent = [(name: String, text: String)]()
    let name = "ann-\(RandomBytes.hex(6))"

    private let app: ThicketApp
    private let house: ThreatHouse
    private let place: String

    /// - Parameter port: of the recording proxy.
    init(_ house: ThreatHouse, port: UInt16, store: StoreLocation = .memory) throws {
        (self.house, place) = (house, "http://127.0.0.1:\(port)")
        app = try ThicketApp(
            server: place, app: ThreatHouse.app, apiKey: house.apiKey, store: store, deviceId: "first")
    }

    private func text(_ name: String) -> String {
        let text = "canary-\(name)-\(RandomBytes.hex(12))"
        texts.append(("the \(name)", text))
        return text
    }

    private static func secret(_ text: String) -> SecureBytes { .init(copying: Array(text.utf8)) }
    private static func octets(_ secret: SecureBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

    func live() async throws {
        let (one, two, three) = (text("password"), text("second"), text("third"))
        let accounts = try app.accounts()
        let ann = try await accounts.signUp(name: name, password: Self.secret(one))
        try record(ann, password: one)
        try await write(ann)
        try await pair(ann)
        let changed = try await accounts.changePassword(
            of: ann.account, accessToken: ann.accessToken, from: Self.secret(one), to: Self.secret(two))
        let bucket = text("bucket")
        let written = try await accounts.update(changed.account, accessToken: changed.accessToken) {
            $0.buckets[bucket] = .init(mode: "sealed", epoch: 1)
        }
        let renewed = try await accounts.changeAccessKey(
            of: written, to: .random(), accessToken: changed.accessToken, password: Self.secret(two))
        guard case .open(let fresh) = try await accounts.signIn(name: name, password: Self.secret(two)) else {
            throw ProcessError("the account is locked")
        }
        try record(fresh, password: two)
        let back = try await accounts.recover(
            name: name, accessKey: try AccessKey(words: renewed.accessKey.words), newPassword: Self.secret(three))
        guard case .open(let again) = try await accounts.signIn(name: name, password: Self.secret(three)) else {
            throw ProcessError("the account is locked")
        }
        let view = try await accounts.serverView(of: again.account, accessToken: again.accessToken)
        sent.append(("the sealed bundle", Base64.encodeURL(view.bundle)))
        try await read(again)
        let session = try await app.resume(back)
        guard await session.signOut() else { throw ProcessError("the server has not heard of the logout") }
        await session.close()
        try await accounts.delete(again.account, accessToken: again.accessToken, password: Self.secret(three))
    }

    /// Records keys and words, and the values made of them for the server.
    private func record(_ login: SignedIn, password: String) throws {
        let account = login.account
        let bundle = account.bundle
        let words = String(decoding: Self.octets(account.accessKey.words), as: UTF8.self)
        texts.append(("all the words", words))
        let list: [Substring] = words.split(separator: " ")
        for start in 0...(list.count - 3) {
            canaries.append(Canary("three of the words", list[start..<(start + 3)].joined(separator: " ")))
        }
        guard let pin = account.pin else { throw ProcessError("no pin") }
        let keys = try PasswordKeys(password: Self.secret(password), salt: pin.salt, cost: .standard)
        for (name, key) in [
            ("the access key", account.accessKey.secret), ("the vault secret", bundle.vaultSecret),
            ("the tree secret", bundle.treeSecret), ("the seed", bundle.signingKey.seed),
            ("the exchange key", bundle.exchangeKey.secret), ("the vault key", keys.vaultKey),
        ] { canaries.append(Canary(name, Self.octets(key))) }
        sent.append(("the auth key", Base64.encodeURL(Self.octets(keys.authKey))))
        sent.append(("the recovery proof", Base64.encodeURL(Self.octets(try account.accessKey.recoveryAuth()))))
        sent.append(("the user's name, which the server of an account with keys knows", name))
    }

    // MARK: The bucket

    private let bucket = "diary"
    private var key = ""
    private var last = ""

    private func open(_ session: ClientSession, _ account: OpenAccount) async throws -> (Bucket, SealedBucketKeys) {
        let secret = try SealedBucketKeys.secret(
            vault: account.bundle.vaultSecret, app: ThreatHouse.app, bucket: bucket, epoch: 0)
        let keys = try SealedBucketKeys(
            owner: account.user, app: ThreatHouse.app, bucket: bucket, secrets: [0: secret])
        return (try await session.sync.bucket(bucket, sealedBy: keys), keys)
    }

    private func write(_ login: SignedIn) async throws {
        let session = try await app.resume(login)
        let (bucket, keys) = try await open(session, login.account)
        (key, last) = (text("key"), text("edit"))
        let gone = text("removed-key")
        try await bucket.set(key, to: [text("field"): .string(text("title")), "t": .string(text("text"))])
        try await bucket.set(gone, to: ["t": .string(text("removed"))])
        try await bucket.waitUntilSynced(timeout: Self.patience)
        try await bucket.editText(key, path: ["t"], at: 3, inserting: last)
        try await bucket.waitUntilSynced(timeout: Self.patience)
        try await bucket.remove(gone)
        try await bucket.waitUntilSynced(timeout: Self.patience)
        guard try await bucket.history(of: key).count == 2 else { throw ProcessError("there are not two versions") }
        sent += [("the sealed name of an object", keys.serverKey(of: key)), ("the mode", "\"sealed\"")]
        await session.close()
    }

    /// A new device reads everything.
    private func read(_ login: SignedIn) async throws {
        let other = try ThicketApp(
            server: place, app: ThreatHouse.app, apiKey: house.apiKey, deviceId: "second")
        let session = try await other.resume(login)
        let (bucket, _) = try await open(session, login.account)
        try await bucket.waitUntilSynced(timeout: Self.patience)
        guard try await bucket.get(key)?["t"]?.stringValue?.contains(last) == true else {
            throw ProcessError("the second device does not read what the first one wrote")
        }
        await session.close()
    }

    private func pair(_ old: SignedIn) async throws {
        let device = try ThicketApp(
            server: place, app: ThreatHouse.app, apiKey: house.apiKey, deviceId: "third"
        ).accounts()
        let begun = try await device.beginPairing()
        let code = begun.pairing.code
        let words = try await app.accounts().give(
            old.account, accessToken: old.accessToken, toDeviceWithCode: code)
        guard let received = try await device.receive(begun), received.words == words else {
            throw ProcessError("the pairing shows other words")
        }
        canaries.append(Canary("the words of a pairing", words))
        guard try await device.open(received).account.accessKey == old.account.accessKey else {
            throw ProcessError("the pairing gives another key")
        }
    }
}
