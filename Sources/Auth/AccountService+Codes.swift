import ThicketCrypto
import ThicketProtocol

/// `forgot/` and `verify/`, and the same under `auth/`: another password for who gets a code by mail.
///
/// Only the proof is reset. What an account's data is sealed under stays as it was: such an account is locked until its
/// words, or a device that still has its keys, seal the access key anew.
extension AccountService {
    /// The kinds of proof.
    enum Kind: Sendable, Hashable { case password, key }

    /// Who has forgotten a password, and where a code is to be sent.
    public struct Forgetful: Sendable, Hashable {
        /// The user; of nobody what stands for the name.
        let user: String
        /// nil: there is nobody to send it to, and the same is done but for the sending.
        let address: MailAddress?
        let app: AppID
    }

    /// Whoever asks, about whomever, is told that it was heard. The code is made behind the answer, so that the answer
    /// takes as long where there is nobody.
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

    /// `verify/`: another password, by who has the code.
    mutating func verify(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        let name = try Self.name(body.text("username"))
        let password = try Self.newPassword(body.text("new_password"))
        let (place, code) = try admitCode(name, body, asked)
        let (salt, hash) = try stretched(password)
        var account = try use(code, of: name, .password, place, asked)
        let before = account.proof
        account.proof = .password(salt: salt, hash: hash)
        try change(account, from: before, endsTokens: true, asked)
        names.succeeded(Self.place(account.name, asked))
        return AccountAnswer.done
    }

    /// `auth/verify`: the same where the password stays with the client. The account is locked then.
    mutating func verifyKey(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        let name = try Self.name(body.text("u"))
        let stretch = try Self.stretch(body)
        let verifier = secrets.verifier(try Self.bytes("a", body))
        let (place, code) = try admitCode(name, body, asked)
        var account = try use(code, of: name, .key, place, asked)
        guard var proof = account.keyProof else { throw .wrongLogin }
        let before = account.proof
        (proof.stretch, proof.verifier, proof.access) = (stretch, verifier, [])
        account.proof = .key(proof)
        try change(account, from: before, endsTokens: true, asked)
        names.succeeded(Self.place(account.name, asked))
        return AccountAnswer.success(["status": "success", "locked": .bool(true)])
    }

    /// Makes the code that was asked for, and sends it. Of nobody a code is kept and a message prepared all the same,
    /// so that the next request does not come to its turn sooner.
    /// - Returns: whether one was sent; false also when that was done a short while ago.
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

    /// Whose codes are kept that nobody gets: always the same for one name.
    private func nobody(_ name: String, _ asked: Asked) -> String {
        Hex.encode(pretended("forgetful", name, asked, 16))
    }

    /// What is kept of a code.
    private func hash(of code: String, _ user: String) -> [UInt8] {
        secrets.verifier(Array("thicket/account/code/1 \(user) \(code)".utf8))
    }

    /// Whether a code may be tried now for the name, whoever has it. Counted apart from passwords: whoever guesses
    /// those is not to lock out who has the code.
    private func admitCode(
        _ name: String, _ body: AccountBody, _ asked: Asked
    ) throws(AccountRefusal) -> (place: String, code: String) {
        guard let code = body.text("code"), (1...Self.codeBytesMax).contains(code.utf8.count) else {
            throw .badRequest("code is wanted, as it stands in the message")
        }
        let place = "code \(Self.place(name, asked))"
        try admitProof(place, asked)
        return (place, code)
    }

    private static let codeBytesMax = 64

    /// The account whose code this is.
    private mutating func use(
        _ code: String, of name: String, _ kind: Kind, _ place: String, _ asked: Asked
    ) throws(AccountRefusal) -> Account {
        let found = try find(name, asked)
        var user = nobody(name, asked)
        if let found, found.kind == kind { user = found.user }
        let hash = hash(of: code, user)
        let now = asked.milliseconds
        let isRight = try directory { (d) throws(DirectoryError) in
            try d.use(code: hash, of: user, now: now)
        }
        guard let found, found.kind == kind, isRight else { throw failed(place, asked) }
        proved(place)
        return found
    }

    /// What a locked account was sealed under before.
    func before(_ account: Account) throws(AccountRefusal) -> LockedWrap? {
        try directory { (d) throws(DirectoryError) in try d.lockedWrap(of: account.user) }
    }

    static func describe(_ wrap: LockedWrap) -> JSONValue {
        var body = JSONObject()
        write(wrap.access, under: wrap.stretch, to: &body)
        return .object(body)
    }

    /// A sealed access key, and how that under which it is sealed is stretched.
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
