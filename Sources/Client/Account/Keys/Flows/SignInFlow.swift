package import ThicketCrypto

/// What a device knows of an account that was open on it.
package struct KnownAccount: Sendable {
    package let user: String
    package let accessKey: AccessKey?
    /// The newest version of the bundle that was seen.
    package let version: UInt64
    package let pin: PasswordPin?
    /// The content of the bundle of that version.
    package let bundle: AccountBundle?

    package init(_ account: OpenAccount) {
        (user, accessKey) = (account.user, account.accessKey)
        (version, pin, bundle) = (account.version, account.pin, account.bundle)
    }

    package init(
        user: String, accessKey: AccessKey?, version: UInt64, pin: PasswordPin?, bundle: AccountBundle? = nil
    ) {
        (self.user, self.accessKey, self.version, self.pin) = (user, accessKey, version, pin)
        self.bundle = bundle
    }

    var seen: SeenBundle { SeenBundle(version: version, bundle: bundle) }

    /// Whether an access key belongs to the account: it is this device's key, or leads to the same secrets in a newer
    /// version (decision 0043). Any other key would belong to another account posing as this one.
    func accepts(_ key: AccessKey, _ opened: AccountBundle, version: UInt64) -> Bool {
        guard let accessKey, accessKey != key else { return true }
        return version > self.version && bundle?.hasSecrets(of: opened) == true
    }
}

/// The result of a sign-in.
public enum SignInResult: Sendable {
    /// The keys are open.
    case open(SignedIn)
    /// The password was reset by mail, and the keys are still sealed under the previous one.
    case locked(LockedAccount)
}

/// Logs in with name and password, and opens the account's keys.
///
/// Whatever the server says, no key is derived with parameters out of bounds or by another scheme. A device that knows
/// the account accepts a new salt only when everything sealed under it opens.
package struct SignInFlow: AccountFlow {
    package typealias Outcome = SignInResult

    private enum State {
        case begun, asking
        case stretching(PasswordPin)
        case logging(PasswordPin, PasswordKeys)
    }

    private let app: String
    private let name: AccountName
    private let password: SecureBytes
    private let device: String
    private let known: KnownAccount?
    private let rules: PasswordRules
    private var state = State.begun

    package init(
        app: String, name: String, password: SecureBytes, device: String, known: KnownAccount? = nil,
        rules: PasswordRules = .product
    ) throws(AccountError) {
        self.name = try AccountName(name)
        (self.app, self.password, self.device) = (app, password, device)
        (self.known, self.rules) = (known, rules)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<Outcome> {
        state = .asking
        return .ask(.prelogin(name))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome> {
        switch (state, event) {
        case (.asking, .answered(let reply)):
            let pin = try reply.pin()
            let cost = try pin.cost(rules, known: known?.pin)
            state = .stretching(pin)
            return .stretch(password, salt: pin.salt, cost)
        case (.stretching(let pin), .stretched(let keys)):
            state = .logging(pin, keys)
            return .ask(.login(name, keys.authKey, device: device))
        case (.logging(let pin, let keys), .answered(let reply)): return .done(try open(reply, pin, keys))
        case (.logging(let pin, _), .refused(let error)):
            guard error.number == 401, !error.detail.contains("API key") else { throw .server(error) }
            throw .wrongPassword(isChanged: known?.pin != nil && known?.pin != pin)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    private func open(_ reply: AccountReply, _ pin: PasswordPin, _ keys: PasswordKeys) throws(AccountError) -> Outcome {
        let user = try reply.text("userid")
        if let known, !known.user.utf8.elementsEqual(user.utf8) { throw .otherAccount }
        guard !reply.isNull("bundle") else { throw .bundleMissing }
        let (sealed, version) = (try reply.octets("bundle"), try reply.version())
        if reply.flag("locked") {
            let before = reply.part("before")
            return .locked(
                LockedAccount(
                    app: app, user: user, name: name, accessToken: try reply.token(), keys: keys, pin: pin,
                    before: try before.map { (before) throws(AccountError) in
                        .init(pin: try before.pin(isBare: true), wrap: try before.octets("access"))
                    }, sealed: sealed, version: version, seen: known?.seen ?? .none, device: device,
                    known: known?.accessKey))
        }
        let wrap = try reply.octets("access")
        guard let key = AccountPlace.unwrap(wrap, app: app, user: user, under: keys.vaultKey) else {
            throw .doesNotOpen
        }
        let bundle = try OpenAccount.open(
            sealed, app: app, user: user, version: version, seen: known?.seen ?? .none, with: key)
        if let known, !known.accepts(key, bundle, version: version) { throw .otherAccount }
        let account = OpenAccount(
            app: app, user: user, name: name.text, accessKey: key, bundle: bundle, version: version, pin: pin)
        return .open(SignedIn(account: account, accessToken: try reply.token()))
    }
}

/// An account whose password was reset by a mailed code: the login succeeds, but the keys are still sealed under the
/// previous password.
public struct LockedAccount: Sendable {
    struct Before: Sendable {
        let pin: PasswordPin
        let wrap: [UInt8]
    }

    let app: String
    let user: String
    let name: AccountName
    /// Permits reading the server's data; the bundle cannot be written with it.
    public let accessToken: String
    let keys: PasswordKeys
    let pin: PasswordPin
    let before: Before?
    let sealed: [UInt8]
    let version: UInt64
    let seen: SeenBundle
    let device: String
    /// The access key, when this device has it.
    let known: AccessKey?

    /// Whether the previous password would open it.
    public var acceptsOldPassword: Bool { before != nil }
    /// Whether this device has the access key that opens it.
    public var opensHere: Bool { known != nil }
}

extension LockedAccount: CustomStringConvertible, CustomReflectable {
    /// A fixed text: keys and token never reach a log.
    public var description: String { "(a locked account)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Opens a locked account, and seals its access key under the new password.
package struct UnlockFlow: AccountFlow {
    package typealias Outcome = SignedIn

    /// The means to open it.
    package enum Opener: Sendable {
        /// The access key, from the words, a code, pieces, or another device; nil: this device's own.
        case accessKey(AccessKey?)
        /// The password that was reset.
        case oldPassword(SecureBytes)
    }

    private enum State {
        case begun, stretching
        case wrapping(OpenAccount)
    }

    private let locked: LockedAccount
    private let opener: Opener
    private let rules: PasswordRules
    private var state = State.begun

    package init(_ locked: LockedAccount, _ opener: Opener, rules: PasswordRules = .product) {
        (self.locked, self.opener, self.rules) = (locked, opener, rules)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<SignedIn> {
        switch opener {
        case .accessKey(let key):
            guard let key = key ?? locked.known else { throw .locked }
            return try wrap(
                key, or: key == locked.known && locked.version > locked.seen.version ? .keyChanged : .wrongWords)
        case .oldPassword(let password):
            guard let before = locked.before else { throw .locked }
            state = .stretching
            return .stretch(password, salt: before.pin.salt, try before.pin.cost(rules, known: nil))
        }
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<SignedIn> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)):
            guard let before = locked.before,
                let key = AccountPlace.unwrap(
                    before.wrap, app: locked.app, user: locked.user, under: keys.vaultKey)
            else { throw .wrongPassword(isChanged: false) }
            return try wrap(key, or: .doesNotOpen)
        case (.wrapping(let account), .answered(let reply)):
            return .done(SignedIn(account: account, accessToken: try reply.token()))
        case (.wrapping, .refused(let error)): throw error.leavesItOpen ? .unknown(error) : .server(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    /// Wraps only a key that opens the bundle.
    private mutating func wrap(_ key: AccessKey, or wrong: AccountError) throws(AccountError) -> AccountStep<SignedIn> {
        let bundle: AccountBundle
        do throws(AccountError) {
            bundle = try OpenAccount.open(
                locked.sealed, app: locked.app, user: locked.user, version: locked.version, seen: locked.seen, with: key
            )
        } catch {
            throw error == .doesNotOpen ? wrong : error
        }
        let wrap = try AccountPlace.wrap(
            key, app: locked.app, user: locked.user, under: locked.keys.vaultKey)
        state = .wrapping(
            OpenAccount(
                app: locked.app, user: locked.user, name: locked.name.text, accessKey: key, bundle: bundle,
                version: locked.version, pin: locked.pin))
        return .ask(
            .password(
                locked.keys.authKey, proof: try key.proof(),
                .init(authKey: locked.keys.authKey, pin: locked.pin, access: wrap, device: locked.device),
                token: locked.accessToken))
    }
}
