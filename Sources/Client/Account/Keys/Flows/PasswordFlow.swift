package import ThicketCrypto

/// Sets another password: a new salt, another proof and another wrap of the access key, in one transaction of the
/// server. The bundle is not changed, and this device's data remains usable in any case.
package struct PasswordFlow: AccountFlow {
    package typealias Outcome = SignedIn

    private enum State {
        case begun, asking
        case stretchingOld
        case stretchingNew(PasswordKeys)
        case changing(PasswordKeys)
        /// The answer did not arrive: whether the new password is accepted shows what happened.
        case looking(ClientError)
    }

    private let account: OpenAccount
    private let token: String
    private let name: AccountName
    private let (old, new): (SecureBytes, SecureBytes)
    private let device: String
    private let rules: PasswordRules
    private let pin: PasswordPin
    private var state = State.begun

    package init(
        _ account: OpenAccount, token: String, from old: SecureBytes, to new: SecureBytes, device: String,
        rules: PasswordRules = .product, random: AccountRandom = .system
    ) throws(AccountError) {
        guard new.count > 0 else { throw .unusable("the new password is empty") }
        name = try AccountName(account.name)
        (self.account, self.token, self.old, self.new) = (account, token, old, new)
        (self.device, self.rules) = (device, rules)
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<SignedIn> {
        state = .asking
        return .ask(.prelogin(name))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<SignedIn> {
        switch (state, event) {
        case (.asking, .answered(let reply)):
            let now = try reply.pin()
            let cost = try now.cost(rules, known: account.pin)
            state = .stretchingOld
            return .stretch(old, salt: now.salt, cost)
        case (.stretchingOld, .stretched(let keys)):
            state = .stretchingNew(keys)
            return .stretch(new, salt: pin.salt, .standard)
        case (.stretchingNew(let old), .stretched(let keys)):
            state = .changing(keys)
            let wrap = try AccountPlace.wrap(
                account.accessKey, app: account.app, user: account.user, under: keys.vaultKey)
            return .ask(
                .password(
                    old.authKey, proof: try account.accessKey.proof(),
                    .init(authKey: keys.authKey, pin: pin, access: wrap, device: device), token: token))
        case (.changing, .answered(let reply)), (.looking, .answered(let reply)):
            var account = account
            account.pin = pin
            return .done(SignedIn(account: account, accessToken: try reply.token()))
        case (.changing(let keys), .refused(let error)):
            if error.isOtherAccessKey { throw .keyChanged }
            guard error.leavesFirstOpen else {
                throw error.number == 401 && error.detail.contains("login")
                    ? .wrongPassword(isChanged: false) : .server(error)
            }
            state = .looking(error)
            return .ask(.login(name, keys.authKey, device: device))
        case (.looking(let first), .refused(let error)): throw error.number == 401 ? .server(first) : .unknown(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }
}

/// Sets another password with the recovery words instead of the old one: words → access key → proof, which authorises
/// it (spec 3.2).
package struct RecoverFlow: AccountFlow {
    package typealias Outcome = SignedIn

    private enum State {
        case begun, stretching
        case recovering(PasswordKeys, asks: Int)
        /// The account's id differs from the one derived from its words: the wrap is made again for the actual id.
        case wrapping(OpenAccount)
    }

    private let app: String
    private let name: AccountName
    private let accessKey: AccessKey
    private let password: SecureBytes
    private let device: String
    private let known: KnownAccount?
    private let pin: PasswordPin
    private var state = State.begun

    package init(
        app: String, name: String, accessKey: AccessKey, newPassword: SecureBytes, device: String,
        known: KnownAccount? = nil, random: AccountRandom = .system
    ) throws(AccountError) {
        guard newPassword.count > 0 else { throw .unusable("the new password is empty") }
        self.name = try AccountName(name)
        (self.app, self.accessKey, password) = (app, accessKey, newPassword)
        (self.device, self.known) = (device, known)
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<SignedIn> {
        state = .stretching
        return .stretch(password, salt: pin.salt, .standard)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<SignedIn> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)): return try ask(keys, asks: 1)
        case (.recovering(let keys, _), .answered(let reply)): return try open(reply, keys)
        case (.recovering(let keys, let asks), .refused(let error)):
            if asks == 1, error.isUnsent { throw .server(error) }
            // Repeating the request has the same effect, and the words remain valid.
            if error.leavesItOpen, asks < AccountFlowLimits.asksMax { return try ask(keys, asks: asks + 1) }
            if error.leavesItOpen { throw .unknown(error) }
            throw error.number == 401 && error.detail.contains("login") ? .wrongWords : .server(error)
        case (.wrapping(let account), .answered(let reply)):
            return .done(SignedIn(account: account, accessToken: try reply.token()))
        case (_, .refused(let error)): throw error.leavesItOpen ? .unknown(error) : .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func ask(_ keys: PasswordKeys, asks: Int) throws(AccountError) -> AccountStep<SignedIn> {
        state = .recovering(keys, asks: asks)
        return .ask(.recover(name, proof: try accessKey.proof(), try password(keys, try expectedUser())))
    }

    /// The account's id, as this device knows it or as derived from the words.
    private func expectedUser() throws(AccountError) -> String {
        if let known { return known.user }
        return try accessKey.userID(app: app)
    }

    private func password(_ keys: PasswordKeys, _ user: String) throws(AccountError) -> AccountRequest.NewPassword {
        .init(
            authKey: keys.authKey, pin: pin,
            access: try AccountPlace.wrap(accessKey, app: app, user: user, under: keys.vaultKey), device: device)
    }

    private mutating func open(
        _ reply: AccountReply, _ keys: PasswordKeys
    ) throws(AccountError) -> AccountStep<SignedIn> {
        let user = try reply.text("userid")
        if let known, !known.user.utf8.elementsEqual(user.utf8) { throw .otherAccount }
        guard !reply.isNull("bundle") else { throw .bundleMissing }
        let version = try reply.version()
        let bundle = try OpenAccount.open(
            try reply.octets("bundle"), app: app, user: user, version: version, seen: known?.seen ?? .none,
            with: accessKey)
        if let known, !known.accepts(accessKey, bundle, version: version) { throw .otherAccount }
        let account = OpenAccount(
            app: app, user: user, name: name.text, accessKey: accessKey, bundle: bundle, version: version, pin: pin)
        let token = try reply.token()
        let sealedFor = try expectedUser()
        guard !sealedFor.utf8.elementsEqual(user.utf8) else {
            return .done(SignedIn(account: account, accessToken: token))
        }
        state = .wrapping(account)
        return .ask(
            .password(keys.authKey, proof: try accessKey.proof(), try password(keys, user), token: token))
    }
}
