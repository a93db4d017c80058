import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

/// `auth/upgrade`: an account with a sent password, such as one of the old notes app, gets client-side keys
/// (decision 0043). User id and data stay.
///
/// POST begins: from then on both logins are valid, so that a client interrupted at any point can continue. PUT
/// ends the old login; a client sends it when everything is sealed under the new keys.
extension AccountService {
    /// The body has the previous name and password, and the members of a sign-up. If an upgrade has begun already,
    /// nothing is written, and the answer has what is needed to continue: the first writer wins, and any client
    /// with the old password gets the same keys.
    mutating func upgrade(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        let isNew = body.text("username") != body.text("u")
        let name = try Self.name(body.text("u"), isNew: isNew)
        let proof = Account.KeyProof(
            stretch: try Self.stretch(body), verifier: secrets.verifier(try Self.bytes("a", body)),
            recovery: secrets.verifier(try Self.bytes("recover", body)),
            access: try Self.sealed("access", body, max: Self.accessBytesMax))
        let bundle = try Self.sealed("bundle", body, max: Self.bundleBytesMax)
        // The parameters are the usual ones; only the salt is sent.
        let wrap = LockedWrap(
            stretch: Account.Stretch(salt: try Self.bytes("old_salt", body, count: Account.Stretch.saltBytes)),
            access: try Self.sealed("old_access", body, max: Self.accessBytesMax))
        let device = try Self.device(body)
        let before = try prove(body, asked)
        guard case .password(let salt, let hash) = before.proof else { return try begun(before) }
        let old = OldLogin(
            user: before.user, folded: Account.folded(before.name), salt: salt, hash: hash, wrap: wrap)
        var account = before
        (account.name, account.proof) = (name, .key(proof))
        let entries = try SentEntries.firsts(
            body, of: account.user, named: name, app: account.app, now: asked.milliseconds)
        return try begin(account, from: before, old, (bundle, entries), device, asked)
    }

    private mutating func begin(
        _ account: Account, from before: Account, _ old: OldLogin, _ keys: (bundle: [UInt8], entries: [KeyLogEntry]),
        _ device: String, _ asked: Asked
    ) throws(AccountRefusal) -> HTTPResponse {
        let (text, token) = makeToken(asked, device: device)
        let user = try identity(of: account)
        let now = asked.milliseconds
        let isDone = try directory { (d) throws(DirectoryError) in
            try d.upgrade(
                account, from: before.proof, old: old, bundle: keys.bundle, entries: keys.entries, token: token,
                now: now)
        }
        guard isDone else { throw try refusal(of: account, asked) }
        notes.ended = user
        return AccountAnswer.success([
            "begun": .bool(true), "userid": .string(account.user), "access_token": .string(text),
            "version": .number(JSONNumber(Int64(1))),
        ])
    }

    private func refusal(of account: Account, _ asked: Asked) throws(AccountRefusal) -> AccountRefusal {
        // The keys in an existing bundle are in use: it is not replaced.
        let there = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
        if let there { return .outdated(current: there.version) }
        return try whyNot(account, asked)
    }

    /// The state of an upgrade that has begun.
    private func begun(_ account: Account) throws(AccountRefusal) -> HTTPResponse {
        let old = try directory { (d) throws(DirectoryError) in
            try d.oldLogin(of: account.user, in: account.app)
        }
        // The upgrade ended between two reads.
        guard let old else { throw .wrongLogin }
        let bundle = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
        var body: JSONObject = [
            "begun": .bool(false), "userid": .string(account.user), "u": .string(account.name),
            "old": Self.describe(old.wrap),
        ]
        Self.write(bundle, to: &body)
        return AccountAnswer.success(body)
    }

    /// Ends the old login, proved by the access key. A repeated request changes nothing more and returns a token.
    mutating func finishUpgrade(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        let name = try Self.name(body.text("u"))
        let shown = secrets.verifier(try Self.bytes("r", body))
        let device = try Self.device(body)
        let (account, _) = try proveWords(name, shown, asked)
        let (text, token) = makeToken(asked, device: device)
        let user = try identity(of: account)
        let hadOld = try directory { (d) throws(DirectoryError) in
            try d.finishUpgrade(of: account.user, in: account.app, token: token)
        }
        if hadOld { notes.ended = user }
        return AccountAnswer.success(["userid": .string(account.user), "access_token": .string(text)])
    }
}
