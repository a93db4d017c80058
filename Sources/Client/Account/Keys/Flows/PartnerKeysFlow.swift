public import ThicketCrypto

/// What is there of a partner's user's keys.
public enum PartnerKeys: Sendable {
    case open(OpenAccount, isNew: Bool)
    /// There are none, or nothing was said that opens them.
    case closed(takesPassphrase: Bool)
}

/// What a partner's user has to open keys with.
public enum KeyOpener: Sendable {
    /// Nothing, or what this device keeps.
    case none
    /// A content passphrase: seals the access key where keys are made, and opens it where there are some.
    case passphrase(SecureBytes)
    /// From the words, a code, pieces, or another device.
    case accessKey(AccessKey)
}

/// The keys of a user for whom a partner vouches: made by the first device, and opened on others with a content
/// passphrase or the access key. The partner's token brings the sealed bytes and nothing more (threat T23).
package struct PartnerKeysFlow: AccountFlow {
    package typealias Outcome = PartnerKeys

    private enum State {
        case begun
        case reading
        case opening(Found, PasswordPin, wrap: [UInt8])
        case stretchingNew
        case making(OpenAccount, [UInt8])
        /// The answer did not come, or another device was first.
        case looking(OpenAccount, [UInt8], ClientError)
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
    private let accessKey: AccessKey
    private let bundle: AccountBundle
    private var state = State.begun

    /// - Parameters:
    ///   - token: a login token of the partner's for this user.
    ///   - handed: what another device has given: the access key, and what it remembers of the passphrase and the
    ///     bundle.
    ///   - makes: keys are made where there are none.
    package init(
        app: String, entity: String, token: String, opener: KeyOpener, known: KnownAccount? = nil,
        handed: Pairing.Received? = nil, makes: Bool,
        rules: PasswordRules = .product, random: AccountRandom = .system
    ) throws(AccountError) {
        (self.app, self.entity, asker) = (app, entity, .partner(token: token))
        (self.opener, self.known, self.handed) = (opener, known, handed)
        (self.makes, self.rules) = (makes, rules)
        guard let key = try? AccessKey(random.secret(AccessKey.bytesCount)) else {
            throw .unusable("there are no random bytes")
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

    package mutating func take(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome> {
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
        case (.making(let account, _), .answered(let reply)):
            guard try reply.version() == 1 else { throw .otherAccount }
            return .done(.open(account, isNew: true))
        case (.making(let account, let sealed), .refused(let error)):
            // Whoever is second shows no proof, since there was nothing to prove: 400 where the first has set one.
            guard error.leavesItOpen || [400, 403, 409].contains(error.number) else { throw .server(error) }
            state = .looking(account, sealed, error)
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
            guard makes else { return .done(.closed(takesPassphrase: false)) }
            return try makeKeys()
        }
        let found = Found(sealed: try reply.octets("bundle"), version: try reply.version())
        let hasWrap = !reply.isNull("access")
        switch opener {
        case .none:
            guard let key = known?.accessKey else { return .done(.closed(takesPassphrase: hasWrap)) }
            return .done(.open(try open(found, key, known?.pin), isNew: false))
        case .accessKey(let key):
            do throws(AccountError) {
                return .done(.open(try open(found, key, known?.pin ?? handed?.pin), isNew: false))
            } catch {
                throw error == .doesNotOpen && known != nil && known?.accessKey != key ? .wrongWords : error
            }
        case .passphrase(let passphrase):
            guard hasWrap else { return .done(.closed(takesPassphrase: false)) }
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
        // Whose keys are gone at the server are not made anew from words: that would be another bundle.
        case .accessKey: throw .bundleMissing
        case .passphrase(let passphrase):
            state = .stretchingNew
            return .stretch(passphrase, salt: pin.salt, .standard)
        }
    }

    private mutating func make(_ wrap: AccountRequest.PartnerMembers.Wrap?) throws(AccountError) -> AccountStep<Outcome>
    {
        let sealed = try OpenAccount.seal(bundle, app: app, user: entity, replacing: 0, with: accessKey)
        var used: PasswordPin?
        if case .passphrase? = wrap { used = pin }
        state = .making(
            OpenAccount(
                app: app, user: entity, name: "", accessKey: accessKey, bundle: bundle, version: 1, pin: used), sealed)
        return .ask(
            .putBundle(sealed, replacing: 0, asker, .init(proof: nil, recover: try accessKey.proof(), wrap: wrap)))
    }
}
