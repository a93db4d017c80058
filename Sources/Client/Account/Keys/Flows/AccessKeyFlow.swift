package import ThicketCrypto

/// Changes the access key of an account, and so its words: the same bundle is sealed under the new key, and the new key
/// under the password or passphrase, if there is one, in one transaction of the server that names the replaced version
/// (decision 0043).
///
/// The new key is made and stored before the server is asked. Repeating the flow with the same key leads to the same
/// result, whatever was lost on the way.
package struct AccessKeyFlow: AccountFlow {
    package typealias Outcome = OpenAccount

    private enum State {
        case begun
        case reading(writes: Int)
        case asking(Found)
        case stretching(Found, PasswordPin)
        case writing(OpenAccount, writes: Int)
        /// The answer did not arrive, or was a refusal that another device may have caused: the server's state shows
        /// which.
        case looking(ClientError)
    }

    /// The server's state under the old key.
    private struct Found {
        let account: OpenAccount
        let writes: Int
        /// For a partner's user with a passphrase: the key sealed under it.
        let wrap: (sealed: [UInt8], pin: PasswordPin)?
    }

    private let account: OpenAccount
    private let next: AccessKey
    private let asker: AccountRequest.Asker
    private let password: SecureBytes?
    private let rules: PasswordRules
    private var stretched: (pin: PasswordPin, keys: PasswordKeys)?
    private var state = State.begun

    /// - Parameters:
    ///   - next: the new key, which this device has stored already.
    ///   - password: the account's password, or the content passphrase of a partner's user; nil when that user has
    ///     none.
    package init(
        _ account: OpenAccount, to next: AccessKey, _ asker: AccountRequest.Asker, password: SecureBytes?,
        rules: PasswordRules = .product
    ) {
        (self.account, self.next, self.asker) = (account, next, asker)
        (self.password, self.rules) = (password, rules)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<OpenAccount> {
        guard next != account.accessKey else { throw .unusable("this is already the account's access key") }
        if case .user = asker, (password?.count ?? 0) == 0 { throw .unusable("the password is required") }
        return read(writes: 0)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<OpenAccount> {
        switch (state, event) {
        case (.reading(let writes), .answered(let reply)):
            switch try AccessKeyState(reply, account, next) {
            case .changed(let account): return .done(account)
            case .asBefore(let account): return try found(account, reply, writes: writes)
            }
        case (.asking(let found), .answered(let reply)): return try stretch(found, by: try reply.pin())
        case (.stretching(let found, let pin), .stretched(let keys)):
            stretched = (pin, keys)
            return try write(found)
        case (.writing(let changed, _), .answered(let reply)):
            guard try reply.version() == changed.version else { throw .otherAccount }
            return .done(changed)
        case (.writing(_, let writes), .refused(let error)): return try refused(error, writes: writes)
        case (.looking(let first), .answered(let reply)):
            guard case .changed(let account) = try AccessKeyState(reply, account, next) else { throw .server(first) }
            return .done(account)
        case (.looking, .refused(let error)): throw .unknown(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func read(writes: Int) -> AccountStep<OpenAccount> {
        state = .reading(writes: writes)
        return .ask(.readBundle(asker))
    }

    private mutating func found(
        _ account: OpenAccount, _ reply: AccountReply, writes: Int
    ) throws(AccountError) -> AccountStep<OpenAccount> {
        guard case .partner = asker else {
            let found = Found(account: account, writes: writes, wrap: nil)
            if stretched != nil { return try write(found) }
            state = .asking(found)
            return .ask(.prelogin(try AccountName(account.name)))
        }
        guard !reply.isNull("access") else {
            guard password == nil else { throw .unusable("the account has no content passphrase") }
            return try write(Found(account: account, writes: writes, wrap: nil))
        }
        let pin = try reply.pin(isBare: true)
        return try stretch(
            Found(account: account, writes: writes, wrap: (try reply.octets("access"), pin)), by: pin)
    }

    private mutating func stretch(
        _ found: Found, by pin: PasswordPin
    ) throws(AccountError) -> AccountStep<OpenAccount> {
        if let stretched, stretched.pin == pin { return try write(found) }
        guard let password, password.count > 0 else { throw .unusable("the content passphrase is required") }
        let cost = try pin.cost(rules, known: account.pin)
        state = .stretching(found, pin)
        return .stretch(password, salt: pin.salt, cost)
    }

    private mutating func write(_ found: Found) throws(AccountError) -> AccountStep<OpenAccount> {
        let old = found.account
        var bundle = old.bundle
        // A backup on paper holds the old key.
        bundle.backup = .missing
        let sealed = try OpenAccount.seal(
            bundle, app: old.app, user: old.user, replacing: old.version, with: next)
        let wrap = try stretched.map { (stretched) throws(AccountError) in
            try AccountPlace.wrap(next, app: old.app, user: old.user, under: stretched.keys.vaultKey)
        }
        state = .writing(
            OpenAccount(
                app: old.app, user: old.user, name: old.name, accessKey: next, bundle: bundle,
                version: old.version + 1, pin: stretched?.pin), writes: found.writes + 1)
        guard case .user(let token) = asker, let keys = stretched?.keys, let wrap else {
            return try write(sealed, found, wrap)
        }
        return .ask(
            .changeAccessKey(
                .init(
                    authKey: keys.authKey, proof: try old.accessKey.proof(), access: wrap, bundle: sealed,
                    version: old.version, recover: try next.proof()), token: token))
    }

    /// For a partner's user, whose passphrase the server cannot check.
    private func write(
        _ sealed: [UInt8], _ found: Found, _ wrap: [UInt8]?
    ) throws(AccountError) -> AccountStep<OpenAccount> {
        let old = found.account
        var members = AccountRequest.PartnerMembers(
            proof: try old.accessKey.proof(), recover: try next.proof())
        if let kept = found.wrap, let wrap, let keys = stretched?.keys {
            guard
                AccountPlace.unwrap(kept.sealed, app: old.app, user: old.user, under: keys.vaultKey) == old.accessKey
            else { throw .wrongPasscode }
            members.wrap = .passphrase(wrap, kept.pin)
        }
        return .ask(.putBundle(sealed, replacing: old.version, asker, members))
    }

    private mutating func refused(
        _ error: ClientError, writes: Int
    ) throws(AccountError) -> AccountStep<OpenAccount> {
        if error.number == 409 {
            guard writes < AccountFlowLimits.writesMax else { throw .busy }
            return read(writes: writes)
        }
        if error.number == 401, error.detail.contains("login") {
            throw .wrongPassword(isChanged: account.pin != nil && stretched?.pin != account.pin)
        }
        // 403 for a partner's user: the proof does not match the key that the server has now.
        guard error.leavesItOpen || error.number == 403 else { throw .server(error) }
        state = .looking(error)
        return .ask(.readBundle(asker))
    }
}

/// Which of two access keys the server uses for an account.
enum AccessKeyState {
    case asBefore(OpenAccount)
    case changed(OpenAccount)

    /// - Throws: `keyChanged` when it is neither of them, `otherAccount` when the new key leads to other secrets;
    ///   otherwise as `OpenAccount.open`.
    init(_ reply: AccountReply, _ account: OpenAccount, _ next: AccessKey) throws(AccountError) {
        guard !reply.isNull("bundle") else { throw .bundleMissing }
        let (sealed, version) = (try reply.octets("bundle"), try reply.version())
        if let bundle = try Self.bundle(sealed, version, account, next) {
            guard bundle.hasSecrets(of: account.bundle) else { throw .otherAccount }
            self = .changed(
                OpenAccount(
                    app: account.app, user: account.user, name: account.name, accessKey: next, bundle: bundle,
                    version: version, pin: account.pin))
            return
        }
        var now = account
        now.bundle = try OpenAccount.openOwn(
            sealed, app: account.app, user: account.user, version: version, seen: account.seen,
            with: account.accessKey)
        now.version = version
        self = .asBefore(now)
    }

    /// nil when the bundle does not open with that key.
    private static func bundle(
        _ sealed: [UInt8], _ version: UInt64, _ account: OpenAccount, _ key: AccessKey
    ) throws(AccountError) -> AccountBundle? {
        do throws(AccountError) {
            return try OpenAccount.open(
                sealed, app: account.app, user: account.user, version: version, seen: account.seen, with: key)
        } catch {
            guard error == .doesNotOpen else { throw error }
            return nil
        }
    }
}

/// Finds out whether an interrupted change of the access key was made.
package struct FinishKeyChangeFlow: AccountFlow {
    package typealias Outcome = OpenAccount

    private let account: OpenAccount
    private let next: AccessKey
    private let asker: AccountRequest.Asker

    package init(_ account: OpenAccount, _ next: AccessKey, _ asker: AccountRequest.Asker) {
        (self.account, self.next, self.asker) = (account, next, asker)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<OpenAccount> { .ask(.readBundle(asker)) }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<OpenAccount> {
        switch event {
        case .answered(let reply):
            switch try AccessKeyState(reply, account, next) {
            case .asBefore(let account), .changed(let account): return .done(account)
            }
        case .refused(let error): throw .server(error)
        case .stretched: throw outOfStep()
        }
    }
}
