import ThicketCrypto
import ThicketProtocol

/// `auth/access`: a new access key for an account, and therefore new recovery words (decision 0043).
extension AccountService {
    /// The same bundle and the same password, sealed under and around a new access key, in one step. The request
    /// needs a token, the password, and the current access key; tokens stay valid. Afterwards the old key proves
    /// nothing, and opens nothing that the server returns.
    mutating func renew(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let before = try user(asked).account
        let shown = secrets.verifier(try Self.bytes("a", body))
        let own = secrets.verifier(try Self.bytes("r", body))
        let recovery = secrets.verifier(try Self.bytes("recover", body))
        guard let version = body.integer("version"), version > 0, version < .max else {
            throw .badRequest("version is required: that of the bundle that is replaced")
        }
        let access = try Self.sealed("access", body, max: Self.accessBytesMax)
        let bundle = try Self.sealed("bundle", body, max: Self.bundleBytesMax)
        let (account, proof) = try prove(before, shown, asked) { proof in proof.verifier }
        // A client that logged in with a mailed code has not opened the bundle and must not replace it.
        if proof.isLocked { throw .locked }
        try expectNoOldLogin(account)
        guard ConstantTime.equal(own, proof.recovery) else { throw .otherKey }
        guard !ConstantTime.equal(recovery, proof.recovery) else {
            throw .badRequest("recover belongs to the current access key of the account")
        }
        var renewed = account
        renewed.proof = .key(
            Account.KeyProof(
                stretch: proof.stretch, verifier: proof.verifier, recovery: recovery, access: access,
                keyNumber: proof.keyNumber + 1))
        let (milliseconds, after) = (asked.milliseconds, renewed)
        let isDone = try directory { (d) throws(DirectoryError) in
            try d.renew(after, from: account.proof, bundle: bundle, replacing: version, now: milliseconds)
        }
        guard isDone else {
            let current = try directory { (d) throws(DirectoryError) in try d.bundle(of: account.user) }
            throw .outdated(current: current?.version ?? 0)
        }
        return AccountAnswer.success(["version": .number(JSONNumber(version + 1))])
    }

    /// Until an upgrade is finished, the access key is also sealed under the previous password.
    private func expectNoOldLogin(_ account: Account) throws(AccountRefusal) {
        let old = try directory { (d) throws(DirectoryError) in
            try d.oldLogin(of: account.user, in: account.app)
        }
        guard old == nil else {
            throw .badRequest("this account is being upgraded to client-side keys; finish that first")
        }
    }
}
