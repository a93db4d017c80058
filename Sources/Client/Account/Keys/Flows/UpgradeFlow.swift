package import ThicketCrypto
internal import ThicketKeyLog

/// The result of an upgrade.
package struct Upgraded: Sendable {
    /// The new login; all others have ended, but the old name and password are still valid.
    package let login: SignedIn
    /// Whether this run made the keys; otherwise an earlier, interrupted upgrade did.
    package let isNew: Bool
}

/// Gives keys to an account whose password was sent to the server, such as those of the old notes app, under the same
/// user id (decision 0043).
///
/// When an upgrade has begun before, its keys are opened with the old password and kept; the new password becomes the
/// account's. So the flow may be interrupted anywhere and repeated, also on another device, and ends with one bundle.
package struct UpgradeFlow: AccountFlow {
    package typealias Outcome = Upgraded

    /// The account before the upgrade.
    package struct Old: Sendable {
        /// Its user id, to which sealed data is bound.
        let user: String
        let login: AccountRequest.SentLogin
        /// The password as typed: seals the access key until the upgrade is finished.
        let password: SecureBytes

        package init(user: String, login: AccountRequest.SentLogin, password: SecureBytes) {
            (self.user, self.login, self.password) = (user, login, password)
        }
    }

    private enum State {
        case begun, stretchingOld
        case stretchingNew(wrap: [UInt8])
        case asking(Draft, asks: Int)
        /// An earlier upgrade exists: its wrap, and the name that it gave to the account.
        case opening(Found)
        case recovering(RecoverFlow)
    }

    private struct Draft {
        let account: OpenAccount
        let request: AccountRequest
        let wrap: [UInt8]
        let keys: PasswordKeys
        /// Whether its entries follow those of an earlier account with this name.
        let isAgain: Bool
    }

    private struct Found {
        let name: String
        let wrap: [UInt8]
        let sealed: [UInt8]
        let version: UInt64
    }

    private let app: String
    private let old: Old
    private let name: AccountName
    private let password: SecureBytes
    private let device: String
    private let rules: PasswordRules
    private let random: AccountRandom
    private let now: UInt64?
    private let accessKey: AccessKey
    private let bundle: AccountBundle
    private let (oldPin, pin): (PasswordPin, PasswordPin)
    private var state = State.begun

    /// - Parameters:
    ///   - name: the new name, which the server sees.
    ///   - password: the new password, which stays on this device.
    ///   - now: as in `SignUpFlow`.
    package init(
        app: String, old: Old, name: String, password: SecureBytes, device: String,
        rules: PasswordRules = .product, random: AccountRandom = .system, now: UInt64? = nil
    ) throws(AccountError) {
        guard password.count > 0, old.password.count > 0 else { throw .unusable("the password is empty") }
        self.name = try AccountName(name)
        (self.app, self.old, self.password, self.device) = (app, old, password, device)
        (self.rules, self.random, self.now) = (rules, random, now)
        guard let key = try? AccessKey(random.secret(AccessKey.bytesCount)) else {
            throw .unusable("no random bytes are available")
        }
        accessKey = key
        bundle = .make(random: random.secret)
        (oldPin, pin) = (.new(salt: random.salt()), .new(salt: random.salt()))
    }

    package mutating func begin() throws(AccountError) -> AccountStep<Upgraded> {
        state = .stretchingOld
        return .stretch(old.password, salt: oldPin.salt, .standard)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Upgraded> {
        switch (state, event) {
        case (.recovering(var flow), _):
            let step = try flow.receive(event)
            return recovering(flow, step)
        case (.stretchingOld, .stretched(let keys)):
            state = .stretchingNew(
                wrap: try AccountPlace.wrap(accessKey, app: app, user: old.user, under: keys.vaultKey))
            return .stretch(password, salt: pin.salt, .standard)
        case (.stretchingNew(let wrap), .stretched(let keys)):
            let draft = try draft(wrap, keys)
            state = .asking(draft, asks: 1)
            return .ask(draft.request)
        case (.asking(let draft, _), .answered(let reply)):
            return reply.flag("begun") ? try made(draft, reply) : try found(reply)
        case (.asking(let draft, let asks), .refused(let error)):
            // A repeated request is answered with the result of the first.
            if asks == 1, error.isUnsent { throw .server(error) }
            if let earlier = error.earlierEntry, !draft.isAgain {
                let next = try self.draft(draft.wrap, draft.keys, after: earlier)
                state = .asking(next, asks: asks)
                return .ask(next.request)
            }
            guard error.leavesItOpen else { throw Self.meaning(of: error) }
            guard asks < AccountFlowLimits.asksMax else { throw .unknown(error) }
            state = .asking(draft, asks: asks + 1)
            return .ask(draft.request)
        case (.opening(let found), .stretched(let keys)): return try recover(found, keys)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    private static func meaning(of error: ClientError) -> AccountError {
        switch error.number {
        case 401 where !error.detail.contains("API key"): .wrongPassword(isChanged: false)
        case 409 where error.detail.contains("exists"): .nameTaken
        default: .server(error)
        }
    }

    // MARK: The first upgrade

    private func draft(
        _ wrap: [UInt8], _ keys: PasswordKeys, after earlier: KeyLogEntry? = nil
    ) throws(AccountError) -> Draft {
        let account = OpenAccount(
            app: app, user: old.user, name: name.text, accessKey: accessKey, bundle: bundle, version: 1, pin: pin)
        let new = AccountRequest.NewAccount(
            name: name, keys: keys, pin: pin,
            access: try AccountPlace.wrap(accessKey, app: app, user: old.user, under: keys.vaultKey),
            bundle: try OpenAccount.seal(bundle, app: app, user: old.user, replacing: 0, with: accessKey),
            proof: try accessKey.proof(), device: device,
            entries: try account.firstEntries(after: earlier, now: now))
        return Draft(
            account: account, request: .upgrade(old.login, to: new, old: (wrap, oldPin)), wrap: wrap, keys: keys,
            isAgain: earlier != nil)
    }

    private func made(_ draft: Draft, _ reply: AccountReply) throws(AccountError) -> AccountStep<Upgraded> {
        guard try reply.text("userid").utf8.elementsEqual(old.user.utf8), try reply.version() == 1 else {
            throw .otherAccount
        }
        return .done(
            Upgraded(login: SignedIn(account: draft.account, accessToken: try reply.token()), isNew: true))
    }

    // MARK: Resuming an earlier upgrade

    private mutating func found(_ reply: AccountReply) throws(AccountError) -> AccountStep<Upgraded> {
        guard try reply.text("userid").utf8.elementsEqual(old.user.utf8) else { throw .otherAccount }
        guard !reply.isNull("bundle"), let kept = reply.part("old") else { throw .bundleMissing }
        let pin = try kept.pin(isBare: true)
        state = .opening(
            Found(
                name: try reply.text("u"), wrap: try kept.octets("access"), sealed: try reply.octets("bundle"),
                version: try reply.version()))
        return .stretch(old.password, salt: pin.salt, try pin.cost(rules, known: nil))
    }

    private mutating func recover(_ found: Found, _ keys: PasswordKeys) throws(AccountError) -> AccountStep<Upgraded> {
        guard let key = AccountPlace.unwrap(found.wrap, app: app, user: old.user, under: keys.vaultKey)
        else { throw .doesNotOpen }
        // Checked before another password is set, so that a device that cannot open the bundle changes nothing.
        _ = try OpenAccount.open(
            found.sealed, app: app, user: old.user, version: found.version, seen: .none, with: key)
        var flow = try RecoverFlow(
            app: app, name: found.name, accessKey: key, newPassword: password, device: device,
            known: KnownAccount(user: old.user, accessKey: key, version: found.version, pin: nil), random: random)
        let step = try flow.begin()
        return recovering(flow, step)
    }

    private mutating func recovering(_ flow: RecoverFlow, _ step: AccountStep<SignedIn>) -> AccountStep<Upgraded> {
        state = .recovering(flow)
        switch step {
        case .ask(let request): return .ask(request)
        case .stretch(let password, let salt, let cost): return .stretch(password, salt: salt, cost)
        case .done(let login): return .done(Upgraded(login: login, isNew: false))
        }
    }
}

/// Ends the login from before the account had keys. Repeating it has the same effect.
package struct FinishUpgradeFlow: AccountFlow {
    package typealias Outcome = SignedIn

    private let account: OpenAccount
    private let device: String
    private var asks = 0

    package init(_ account: OpenAccount, device: String) { (self.account, self.device) = (account, device) }

    package mutating func begin() throws(AccountError) -> AccountStep<SignedIn> { try ask() }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<SignedIn> {
        switch event {
        case .answered(let reply):
            guard try reply.text("userid").utf8.elementsEqual(account.user.utf8) else { throw .otherAccount }
            return .done(SignedIn(account: account, accessToken: try reply.token()))
        case .refused(let error):
            guard error.leavesItOpen else { throw .server(error) }
            guard asks < AccountFlowLimits.asksMax else { throw .unknown(error) }
            return try ask()
        case .stretched: throw outOfStep()
        }
    }

    private mutating func ask() throws(AccountError) -> AccountStep<SignedIn> {
        asks += 1
        return .ask(
            .finishUpgrade(try AccountName(account.name), proof: try account.accessKey.proof(), device: device))
    }
}

extension Accounts {
    /// Gives keys to an account whose password was sent to the server. The old login stays valid until `finishUpgrade`.
    ///
    /// - Throws: `wrongPassword` (the old one), `nameTaken`, `downgrade`, `doesNotOpen`; `unknown`: repeating the call
    ///   resumes where it stopped.
    package func upgrade(
        _ old: UpgradeFlow.Old, to name: String, password: SecureBytes
    ) async throws(AccountError) -> Upgraded {
        try await api.run(
            try UpgradeFlow(
                app: app, old: old, name: name, password: password, device: device, rules: rules, random: random,
                now: now()))
    }

    /// Ends the old login, and every token except the returned one.
    ///
    /// - Throws: `server`; `unknown`: repeating the call has the same effect.
    package func finishUpgrade(_ account: OpenAccount) async throws(AccountError) -> SignedIn {
        try await api.run(FinishUpgradeFlow(account, device: device))
    }
}
