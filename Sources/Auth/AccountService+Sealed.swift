import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Requests of accounts whose password stays with the client: it sends a key derived from the password, and the
/// keys of its data as bytes that the server cannot open.
extension AccountService {
    /// Longest sealed access key, bytes.
    public static let accessBytesMax = 1_024
    /// Longest sealed bundle, bytes.
    public static let bundleBytesMax = 65_536
    /// Longest device name, bytes.
    static let deviceBytesMax = 128
    /// Bytes of the keys that clients send.
    static let keyBytes = 32
    /// The only scheme, and the only key derivation.
    private static let scheme: Int64 = 1
    private static let scrypt: Int64 = 1

    /// Reports how the client must derive its keys from the password. An unknown name gets the same answer each time.
    mutating func prelogin(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admit(prelogins, asked.address, .prelogins, asked)
        prelogins.add(asked.address, now: asked.now)
        let name = try Self.name(body.text("u"))
        let found = try find(name, asked)
        var stretch = Account.Stretch(salt: pretended("salt", name, asked, Account.Stretch.saltBytes))
        if case .key(let proof)? = found?.proof { stretch = proof.stretch }
        return AccountAnswer.success([
            "scheme": .number(JSONNumber(Self.scheme)), "kdf": .number(JSONNumber(Self.scrypt)),
            "n": .number(JSONNumber(stretch.n)), "r": .number(JSONNumber(stretch.r)),
            "p": .number(JSONNumber(stretch.p)), "salt": .string(Base64.encodeURL(stretch.salt)),
        ])
    }

    mutating func signup(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitSignup(asked)
        let name = try Self.newName(body.text("u"))
        let recover = try Self.bytes("recover", body)
        let proof = Account.KeyProof(
            stretch: try Self.stretch(body), verifier: secrets.verifier(try Self.bytes("a", body)),
            recovery: secrets.verifier(recover),
            access: try Self.sealed("access", body, max: Self.accessBytesMax))
        let bundle = try Self.sealed("bundle", body, max: Self.bundleBytesMax)
        let device = try Self.device(body)
        try admitRegistration(asked)
        let account = Account(
            user: try newUser(recover, asked), app: asked.app.text, name: name, proof: .key(proof))
        let entries = try SentEntries.firsts(
            body, of: account.user, named: name, app: account.app, now: asked.milliseconds)
        let token = try add(account, bundle: bundle, entries: entries, asked, device: device)
        return AccountAnswer.success([
            "userid": .string(account.user), "access_token": .string(token), "version": .number(JSONNumber(Int64(1))),
        ])
    }

    mutating func login(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        let name = try Self.name(body.text("u"))
        let shown = secrets.verifier(try Self.bytes("a", body))
        let device = try Self.device(body)
        let place = Self.place(name, asked)
        try admitProof(place, asked)
        let found = try find(name, asked)
        let proof = found?.keyProof
        // Computed for every name, here and below: half a microsecond would reveal whether a name exists (`./dev
        // soak --timing`).
        let nobodys = pretended("verifier", name, asked, Self.keyBytes)
        let expected = proof?.verifier ?? nobodys
        guard ConstantTime.equal(shown, expected), let found, let proof else {
            throw failed(place, asked)
        }
        proved(place)
        let token = try admitToken(found, asked, device: device)
        return try letIn(found, proof, token)
    }

    /// A new password: the proof and the wrapped access key are replaced in one step; the bundle stays.
    ///
    /// Once the account has had a second access key, a client that seals one must prove that it is the current one:
    /// a device that missed the change would store a wrap that opens nothing.
    mutating func changePassword(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let before = try user(asked).account
        let old = secrets.verifier(try Self.bytes("a_old", body))
        let (account, proof) = try prove(before, old, asked) { proof in proof.verifier }
        if body.has("r") || proof.keyNumber > 1 {
            guard body.has("r"), ConstantTime.equal(secrets.verifier(try Self.bytes("r", body)), proof.recovery) else {
                throw .otherKey
            }
        }
        let (text, _) = try replace(account, proof, body, asked)
        return AccountAnswer.success(["access_token": .string(text)])
    }

    /// A new password, proved by the recovery words instead of the old one.
    mutating func recover(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        let name = try Self.name(body.text("u"))
        let shown = secrets.verifier(try Self.bytes("r", body))
        let (found, proof) = try proveWords(name, shown, asked)
        let (text, after) = try replace(found, proof, body, asked)
        names.succeeded(Self.place(name, asked))
        return try letIn(found, after, text)
    }

    mutating func readBundle(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let account = try user(asked, admitsGuests: true).account
        let bundle = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
        var answer = JSONObject()
        Self.write(bundle, to: &answer)
        return AccountAnswer.success(answer)
    }

    /// Writes the bundle in place of the version that the body names.
    mutating func putBundle(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let account = try user(asked).account
        guard let version = body.integer("version"), version >= 0, version < .max else {
            throw .badRequest("version is required: the one that is replaced, 0 for the first")
        }
        let content = try Self.sealed("bundle", body, max: Self.bundleBytesMax)
        // A client that logged in with a mailed code has not opened the bundle and must not replace it.
        if account.keyProof?.isLocked == true { throw .locked }
        let isWritten = try directory { (d) throws(DirectoryError) in
            try d.putBundle(content, of: account.user, replacing: version)
        }
        guard isWritten else {
            let current = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
            throw .outdated(current: current?.version ?? 0)
        }
        return AccountAnswer.success(["version": .number(JSONNumber(version + 1))])
    }

    /// The user ends the account; the password is required again.
    mutating func remove(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let account = try user(asked).account
        let shown = secrets.verifier(try Self.bytes("a", body))
        _ = try prove(account, shown, asked) { proof in proof.verifier }
        try end(account, asked)
        return AccountAnswer.ended
    }

    // MARK: Parts

    /// Checks a key against the account that a token belongs to.
    mutating func prove(
        _ account: Account, _ shown: [UInt8], _ asked: Asked, _ expected: (Account.KeyProof) -> [UInt8]
    ) throws(AccountRefusal) -> (Account, Account.KeyProof) {
        guard let proof = account.keyProof else {
            throw .badRequest("this account's password is changed by update/")
        }
        let place = Self.place(account.name, asked)
        try admitProof(place, asked)
        guard ConstantTime.equal(shown, expected(proof)) else { throw failed(place, asked) }
        proved(place)
        return (account, proof)
    }

    /// The account of a name, proved by a value derived from its access key.
    mutating func proveWords(
        _ name: String, _ shown: [UInt8], _ asked: Asked
    ) throws(AccountRefusal) -> (Account, Account.KeyProof) {
        // Counted separately, so that an attacker that guesses passwords does not lock out the owner of the words.
        let place = "words \(Self.place(name, asked))"
        try admitProof(place, asked)
        let found = try find(name, asked)
        let proof = found?.keyProof
        let nobodys = pretended("recovery", name, asked, Self.keyBytes)
        let expected = proof?.recovery ?? nobodys
        guard ConstantTime.equal(shown, expected), let found, let proof else {
            throw failed(place, asked)
        }
        proved(place)
        // A guest's password is the secret of its link.
        guard !GuestName.isGuest(found.user) else { throw .notForGuests }
        return (found, proof)
    }

    /// The id that the client computes too, because it seals the keys for that id (docs/AUTH.md). A random one when
    /// another account's `recover` was sent, so that a new account never gets data of another one, or data still
    /// being erased.
    private func newUser(_ recover: [UInt8], _ asked: Asked) throws(AccountRefusal) -> String {
        let app = asked.app.text
        let digest = Hash.sha256(recover)
        guard let user = try? AccountPlace.userID(app: app, recoveryDigest: digest),
            try directory({ (d) throws(DirectoryError) in try d.isFree(user, in: app) })
        else { return Account.newID(random: random) }
        return user
    }

    /// Replaces the account's proof by the new one of the body; every token but a new one ends.
    private mutating func replace(
        _ account: Account, _ before: Account.KeyProof, _ body: AccountBody, _ asked: Asked
    ) throws(AccountRefusal) -> (token: String, proof: Account.KeyProof) {
        var proof = before
        proof.stretch = try Self.stretch(body)
        proof.verifier = secrets.verifier(try Self.bytes("a", body))
        // Sealed again by a client that has opened it, or has the words for it: the account is no longer locked.
        proof.access = try Self.sealed("access", body, max: Self.accessBytesMax)
        var account = account
        account.proof = .key(proof)
        let (text, token) = makeToken(asked, device: try Self.device(body))
        try change(account, from: .key(before), endsTokens: true, token: token, asked)
        return (text, proof)
    }

    private func letIn(
        _ account: Account, _ proof: Account.KeyProof, _ token: String
    ) throws(AccountRefusal) -> HTTPResponse {
        let bundle = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
        var body: JSONObject = [
            "userid": .string(account.user), "access_token": .string(token),
            "access": proof.isLocked ? .null : .string(Base64.encodeURL(proof.access)),
        ]
        if proof.isLocked {
            body["locked"] = .bool(true)
            body["before"] = try before(account).map(Self.describe) ?? .null
        }
        Self.write(bundle, to: &body)
        return AccountAnswer.success(body)
    }

    static func write(_ bundle: Bundle?, to body: inout JSONObject) {
        body["bundle"] = bundle.map { .string(Base64.encodeURL($0.content)) } ?? .null
        body["version"] = .number(JSONNumber(bundle?.version ?? 0))
    }

    /// Values returned or compared for unknown users: always the same for one name.
    func pretended(_ what: String, _ name: String, _ asked: Asked, _ count: Int) -> [UInt8] {
        let app: [UInt8] = Array(asked.app.text.utf8)
        let label: [UInt8] = Array(what.utf8) + [0, UInt8(truncatingIfNeeded: app.count)]
        return Array(secrets.pretence(label + app + Array(Account.folded(name).utf8)).prefix(count))
    }

    /// - Parameter isGood: whether parameters are accepted.
    static func stretch(
        _ body: AccountBody, _ isGood: (Account.Stretch) -> Bool = \.isUsable
    ) throws(AccountRefusal) -> Account.Stretch {
        guard (body.integer("kdf") ?? (body.has("kdf") ? nil : scrypt)) == scrypt else {
            throw .badRequest("only kdf 1 is known: scrypt")
        }
        let usual = Account.Stretch.usual
        let stretch = Account.Stretch(
            salt: try bytes("salt", body, count: Account.Stretch.saltBytes), n: body.integer("n") ?? usual.n,
            r: body.integer("r") ?? usual.r, p: body.integer("p") ?? usual.p)
        guard isGood(stretch) else {
            throw .badRequest("n, r and p are refused; n 17, r 8 and p 1 are always accepted")
        }
        return stretch
    }

    static func bytes(
        _ name: String, _ body: AccountBody, count: Int = keyBytes
    ) throws(AccountRefusal) -> [UInt8] {
        guard let text = body.text(name), let bytes = Base64.decodeURL(Array(text.utf8)[...]),
            bytes.count == count
        else { throw .badRequest("\(name) is required: \(count) bytes as base64url") }
        return bytes
    }

    static func sealed(_ name: String, _ body: AccountBody, max: Int) throws(AccountRefusal) -> [UInt8] {
        guard let text = body.text(name) else { throw .badRequest("\(name) is required, as base64url") }
        guard text.utf8.count / 4 * 3 <= max else { throw .tooLarge("\(name) has more than \(max) bytes") }
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]), !bytes.isEmpty, bytes.count <= max else {
            throw .badRequest("\(name) is required, as base64url")
        }
        return bytes
    }

    static func device(_ body: AccountBody) throws(AccountRefusal) -> String {
        guard body.has("device") else { return "" }
        guard let device = body.text("device"), device.utf8.count <= deviceBytesMax,
            device.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw .badRequest("device is a text of \(deviceBytesMax) bytes at most") }
        return device
    }
}

extension Account {
    var keyProof: KeyProof? {
        if case .key(let proof) = proof { return proof }
        return nil
    }
}
