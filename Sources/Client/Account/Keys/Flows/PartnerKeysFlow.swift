public import ThicketCrypto
internal import ThicketKeyLog

/// The state of a partner's user's keys.
public enum PartnerKeys: Sendable {
    /// The keys are open; `isNew` when this call made them.
    case open(OpenAccount, isNew: Bool)
    /// The user has no keys, or the given opener cannot open them; `acceptsPassphrase` when a passphrase would.
    case closed(acceptsPassphrase: Bool)
}

/// The means of a partner's user to open keys.
public enum KeyOpener: Sendable {
    /// None besides the keys on this device.
    case none
    /// A content passphrase: seals the access key when keys are made, and opens existing ones.
    case passphrase(SecureBytes)
    /// The access key, from the words, a code, pieces, or another device.
    case accessKey(AccessKey)
}

/// The keys of a user whom a partner authenticates: the first device makes them, others open them with a content
/// passphrase or the access key. The partner's token gives access to the sealed bytes only (threat T23).
package struct PartnerKeysFlow: AccountFlow {
    package typealias Outcome = PartnerKeys

    private enum State {
        case begun
        case reading
        case opening(Found, PasswordPin, wrap: [UInt8])
        case stretchingNew
        case making(Draft)
        /// The answer did not arrive, or another device was first.
        case looking(OpenAccount, [UInt8], ClientError)
    }

    private struct Draft {
        let account: OpenAccount
        let sealed: [UInt8]
        let wrap: AccountRequest.PartnerMembers.Wrap?
        /// Whether its entry follows those from before the user's data was erased.
        let isAgain: Bool
    }

    private struct Found {
        let sealed: [UInt8]
        let version: UInt64
    }

    private let app: String
    private let entity: String
    private let asker: AccountRequest.Asker
    private let opener: KeyOpener
    private let known: KnownAccount?
    private let handed: Pairing.Received?
    private let makes: Bool
    private let rules: PasswordRules
    private let pin: PasswordPin
    private let now: UInt64?
    private let accessKey: AccessKey
    private let bundle: AccountBundle
    private var state = State.begun

    /// - Parameters:
    ///   - token: the partner's login token of this user.
    ///   - handed: what another device has given: the access key, and what it remembers of the passphrase and the
    ///     bundle.
    ///   - makes: whether to make keys when none exist.
    ///   - now: as in `SignUpFlow`.
    package init(
        app: String, entity: String, token: String, opener: KeyOpener, known: KnownAccount? = nil,
        handed: Pairing.Received? = nil, makes: Bool,
        rules: PasswordRules = .product, random: AccountRandom = .system, now: UInt64? = nil
    ) throws(AccountError) {
        (self.app, self.entity, asker) = (app, entity, .partner(token: token))
        (self.opener, self.known, self.handed) = (opener, known, handed)
        (self.makes, self.rules, self.now) = (makes, rules, now)
        guard let key = try? AccessKey(random.secret(AccessKey.bytesCount)) else {
            throw .unusable("no random bytes are available")
        }
        accessKey = key
        bundle = .make(random: random.secret)
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<Outcome> {
        if case .passphrase(let passphrase) = opener, passphrase.count == 0 {
            throw .unusable("the passphrase is empty")
        }
        state = .reading
        return .ask(.readBundle(asker))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome> {
        switch (state, event) {
        case (.reading, .answered(let reply)): return try found(reply)
        case (.opening(let found, let pin, let wrap), .stretched(let keys)):
            guard let key = AccountPlace.unwrap(wrap, app: app, user: entity, under: keys.vaultKey) else {
                throw .wrongPasscode
            }
            return .done(.open(try open(found, key, pin), isNew: false))
        case (.stretchingNew, .stretched(let keys)):
            let wrap = try AccountPlace.wrap(accessKey, app: app, user: entity, under: keys.vaultKey)
            return try make(.passphrase(wrap, pin))
        case (.making(let draft), .answered(let reply)):
            guard try reply.version() == 1 else { throw .otherAccount }
            return .done(.open(draft.account, isNew: true))
        case (.making(let draft), .refused(let error)):
            if let earlier = error.earlierEntry, !draft.isAgain { return try make(draft.wrap, after: earlier) }
            // A second writer shows no proof, because it knew of none; the server answers 400 when the first writer has
            // set one.
            guard error.leavesItOpen || [400, 403, 409].contains(error.number) else { throw .server(error) }
            state = .looking(draft.account, draft.sealed, error)
            return .ask(.readBundle(asker))
        case (.looking(let account, let sealed, let first), .answered(let reply)):
            if reply.isNull("bundle") { throw .server(first) }
            if try reply.octets("bundle") == sealed { return .done(.open(account, isNew: true)) }
            return try found(reply)
        case (_, .refused(let error)): throw error.leavesItOpen ? .unknown(error) : .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func found(_ reply: AccountReply) throws(AccountError) -> AccountStep<Outcome> {
        guard !reply.isNull("bundle") else {
            guard known == nil else { throw .bundleMissing }
            guard makes else { return .done(.closed(acceptsPassphrase: false)) }
            return try makeKeys()
        }
        let found = Found(sealed: try reply.octets("bundle"), version: try reply.version())
        let hasWrap = !reply.isNull("access")
        switch opener {
        case .none:
            guard let key = known?.accessKey else { return .done(.closed(acceptsPassphrase: hasWrap)) }
            return .done(.open(try open(found, key, known?.pin), isNew: false))
        case .accessKey(let key):
            do throws(AccountError) {
                return .done(.open(try open(found, key, known?.pin ?? handed?.pin), isNew: false))
            } catch {
                throw error == .doesNotOpen && known != nil && known?.accessKey != key ? .wrongWords : error
            }
        case .passphrase(let passphrase):
            guard hasWrap else { return .done(.closed(acceptsPassphrase: false)) }
            let pin = try reply.pin(isBare: true)
            state = .opening(found, pin, wrap: try reply.octets("access"))
            return .stretch(passphrase, salt: pin.salt, try pin.cost(rules, known: known?.pin))
        }
    }

    private func open(_ found: Found, _ key: AccessKey, _ pin: PasswordPin?) throws(AccountError) -> OpenAccount {
        let seen = SeenBundle.newest(
            known?.seen ?? .none, SeenBundle(version: handed?.version ?? 0, bundle: nil))
        let bundle =
            known != nil && known?.accessKey == key
            ? try OpenAccount.openOwn(
                found.sealed, app: app, user: entity, version: found.version, seen: seen, with: key)
            : try OpenAccount.open(
                found.sealed, app: app, user: entity, version: found.version, seen: seen, with: key)
        if let known, !known.accepts(key, bundle, version: found.version) { throw .otherAccount }
        return OpenAccount(
            app: app, user: entity, name: "", accessKey: key, bundle: bundle, version: found.version, pin: pin)
    }

    // MARK: The first device

    private mutating func makeKeys() throws(AccountError) -> AccountStep<Outcome> {
        switch opener {
        case .none: return try make(nil)
        // Keys that the server has lost are not recreated from words: that would give another bundle.
        case .accessKey: throw .bundleMissing
        case .passphrase(let passphrase):
            state = .stretchingNew
            return .stretch(passphrase, salt: pin.salt, .standard)
        }
    }

    /// - Parameter earlier: the newest entry from before the user's data was erased.
    private mutating func make(
        _ wrap: AccountRequest.PartnerMembers.Wrap?, after earlier: KeyLogEntry? = nil
    ) throws(AccountError) -> AccountStep<Outcome> {
        let sealed = try OpenAccount.seal(bundle, app: app, user: entity, replacing: 0, with: accessKey)
        var used: PasswordPin?
        if case .passphrase? = wrap { used = pin }
        let account = OpenAccount(
            app: app, user: entity, name: "", accessKey: accessKey, bundle: bundle, version: 1, pin: used)
        var members = AccountRequest.PartnerMembers(proof: nil, recover: try accessKey.proof(), wrap: wrap)
        members.entries = try account.firstEntries(after: earlier, now: now)
        state = .making(Draft(account: account, sealed: sealed, wrap: wrap, isAgain: earlier != nil))
        return .ask(.putBundle(sealed, replacing: 0, asker, members))
    }
}
