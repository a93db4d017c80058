import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// `forgot/` and `verify/`, and the same under `auth/`: a new password by a mailed code.
///
/// Only the proof is reset. The keys of an account's data stay sealed as they were: such an account is locked until
/// its recovery words, or a device that still has its keys, seal the access key again.
extension AccountService {
    /// The kinds of proof.
    enum Kind: Sendable, Hashable { case password, key }

    /// A user that forgot its password, and the address for the code.
    public struct Forgetful: Sendable, Hashable {
        /// The user; for an unknown name a made-up id.
        let user: String
        /// nil: nothing is sent, but everything else is done.
        let address: MailAddress?
        let app: AppID
    }

    /// Every request gets the same answer, whether the name exists or not. The code is made after the answer, so
    /// that the answer takes as long for an unknown name.
    mutating func forgot(_ asked: Asked, _ kind: Kind) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        if kind == .password { try admitPassword(body, asked) }
        let name = try Self.name(body.text(kind == .password ? "username" : "u"))
        guard addresses.wait(asked.address, now: asked.now) == nil else { return AccountAnswer.done }
        addresses.add(asked.address, now: asked.now)
        let found = try find(name, asked)
        let nobody = nobody(name, asked)
        if let found, found.kind == kind {
            notes.forgetful = Forgetful(user: found.user, address: MailAddress(found.name), app: asked.app)
        } else {
            notes.forgetful = Forgetful(user: nobody, address: nil, app: asked.app)
        }
        return AccountAnswer.done
    }

    /// `verify/`: a new password with a code.
    mutating func verify(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        let name = try Self.name(body.text("username"))
        let password = try Self.newPassword(body.text("new_password"))
        let (place, code) = try admitCode(name, body, asked)
        let (salt, hash) = try stretched(password)
        var account = try redeem(code, of: name, .password, place, asked)
        let before = account.proof
        account.proof = .password(salt: salt, hash: hash)
        try change(account, from: before, endsTokens: true, asked)
        names.succeeded(Self.place(account.name, asked))
        return AccountAnswer.done
    }

    /// `auth/verify`: the same when the password stays with the client. It locks the account.
    mutating func verifyKey(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        let name = try Self.name(body.text("u"))
        let stretch = try Self.stretch(body)
        let verifier = secrets.verifier(try Self.bytes("a", body))
        let (place, code) = try admitCode(name, body, asked)
        var account = try redeem(code, of: name, .key, place, asked)
        guard var proof = account.keyProof else { throw .wrongLogin }
        let before = account.proof
        (proof.stretch, proof.verifier, proof.access) = (stretch, verifier, [])
        account.proof = .key(proof)
        try change(account, from: before, endsTokens: true, asked)
        names.succeeded(Self.place(account.name, asked))
        return AccountAnswer.success(["status": "success", "locked": .bool(true)])
    }

    /// Makes the requested code and sends it. For an unknown name a code is kept and a message prepared too, so
    /// that the next request does not start earlier.
    /// - Returns: whether one was sent; false also when one was sent a short while ago.
    public func sendCode(
        to forgetful: Forgetful, outbox: any MailOutbox, now: Double
    ) throws(DirectoryError) -> Bool {
        let code = ResetCode.make(random: random)
        let time = Int64(max(-1e15, min(1e15, now * 1_000)))
        guard try directory.keep(code: hash(of: code, forgetful.user), of: forgetful.user, now: time) else {
            return false
        }
        guard let address = forgetful.address else {
            try outbox.rehearse(ResetCode.mail(code, to: .nobody, place: forgetful.app.text), now: now)
            return false
        }
        try outbox.put(ResetCode.mail(code, to: address, place: forgetful.app.text), now: now)
        return true
    }

    // MARK: Parts

    /// The made-up user id for codes of an unknown name: always the same for one name.
    private func nobody(_ name: String, _ asked: Asked) -> String {
        Hex.encode(pretended("forgetful", name, asked, 16))
    }

    /// The keyed hash of a code.
    private func hash(of code: String, _ user: String) -> [UInt8] {
        secrets.verifier(Array("thicket/account/code/1 \(user) \(code)".utf8))
    }

    /// Whether a code may be tried now for the name. Counted separately from passwords, so that an attacker that
    /// guesses passwords does not lock out the owner of the code.
    private func admitCode(
        _ name: String, _ body: AccountBody, _ asked: Asked
    ) throws(AccountRefusal) -> (place: String, code: String) {
        guard let code = body.text("code"), (1...Self.codeBytesMax).contains(code.utf8.count) else {
            throw .badRequest("code is missing or too long: send it as in the message")
        }
        let place = "code \(Self.place(name, asked))"
        try admitProof(place, asked)
        return (place, code)
    }

    private static let codeBytesMax = 64

    /// The account that the code was sent to.
    private mutating func redeem(
        _ code: String, of name: String, _ kind: Kind, _ place: String, _ asked: Asked
    ) throws(AccountRefusal) -> Account {
        let found = try find(name, asked)
        var user = nobody(name, asked)
        if let found, found.kind == kind { user = found.user }
        let hash = hash(of: code, user)
        let now = asked.milliseconds
        let isRight = try directory { (d) throws(DirectoryError) in
            try d.redeem(code: hash, of: user, now: now)
        }
        guard let found, found.kind == kind, isRight else { throw failed(place, asked) }
        proved(place)
        return found
    }

    /// How the access key of a locked account was sealed before.
    func before(_ account: Account) throws(AccountRefusal) -> LockedWrap? {
        try directory { (d) throws(DirectoryError) in try d.lockedWrap(of: account.user) }
    }

    static func describe(_ wrap: LockedWrap) -> JSONValue {
        var body = JSONObject()
        write(wrap.access, under: wrap.stretch, to: &body)
        return .object(body)
    }

    /// Writes a sealed access key and the parameters of the key it is sealed under.
    static func write(_ access: [UInt8], under stretch: Account.Stretch, to body: inout JSONObject) {
        body["kdf"] = .number(JSONNumber(Int64(1)))
        body["n"] = .number(JSONNumber(stretch.n))
        body["r"] = .number(JSONNumber(stretch.r))
        body["p"] = .number(JSONNumber(stretch.p))
        body["salt"] = .string(Base64.encodeURL(stretch.salt))
        body["access"] = .string(Base64.encodeURL(access))
    }
}

extension Account {
    var kind: AccountService.Kind {
        switch proof {
        case .password: .password
        case .key: .key
        }
    }
}
