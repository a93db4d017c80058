package import ThicketCrypto

/// Writes the bundle, naming the version that it replaces. When another device wrote first, the flow reads that
/// version, applies its change to it, and tries again, up to five times. A bundle that cannot be opened is never
/// replaced.
package struct BundleFlow: AccountFlow {
    package typealias Outcome = OpenAccount

    /// The change; called once for each version found at the server.
    package typealias Change = @Sendable (inout AccountBundle) -> Void

    /// The change of a partner's user's content passphrase.
    package enum Passphrase: Sendable {
        case stays
        case set(SecureBytes)
        case removed
    }

    private enum State {
        case begun, stretching
        case reading(writes: Int)
        case writing(OpenAccount, [UInt8], writes: Int)
        /// The answer did not arrive: the server's state shows whether the bundle was written.
        case looking(OpenAccount, [UInt8], ClientError)
    }

    private var account: OpenAccount
    private let asker: AccountRequest.Asker
    private let change: Change
    private let passphrase: Passphrase
    private let pin: PasswordPin
    private var wrap: AccountRequest.PartnerMembers.Wrap?
    private var state = State.begun

    package init(
        _ account: OpenAccount, _ asker: AccountRequest.Asker, passphrase: Passphrase = .stays,
        random: AccountRandom = .system, change: @escaping Change
    ) {
        (self.account, self.asker, self.change) = (account, asker, change)
        self.passphrase = passphrase
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<OpenAccount> {
        switch passphrase {
        case .stays: break
        case .removed: wrap = AccountRequest.PartnerMembers.Wrap.none
        case .set(let passphrase):
            guard passphrase.count > 0 else { throw .unusable("the passphrase is empty") }
            state = .stretching
            return .stretch(passphrase, salt: pin.salt, .standard)
        }
        return read(writes: 0)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<OpenAccount> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)):
            let sealed = try AccountPlace.wrap(
                account.accessKey, app: account.app, user: account.user, under: keys.vaultKey)
            wrap = .passphrase(sealed, pin)
            return read(writes: 0)
        case (.reading(let writes), .answered(let reply)): return try write(reply, writes: writes)
        case (.writing(let next, _, _), .answered(let reply)):
            guard try reply.version() == next.version else { throw .otherAccount }
            return .done(next)
        case (.writing(let next, let sealed, let writes), .refused(let error)):
            if error.leavesItOpen {
                state = .looking(next, sealed, error)
                return .ask(.readBundle(asker))
            }
            guard error.number == 409 else { throw .server(error) }
            guard writes < AccountFlowLimits.writesMax else { throw .busy }
            return read(writes: writes)
        case (.looking(let next, let sealed, let first), .answered(let reply)):
            guard !reply.isNull("bundle"), try reply.octets("bundle") == sealed else { throw .server(first) }
            return .done(next)
        case (.looking, .refused(let error)): throw .unknown(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func read(writes: Int) -> AccountStep<OpenAccount> {
        state = .reading(writes: writes)
        return .ask(.readBundle(asker))
    }

    private mutating func write(_ reply: AccountReply, writes: Int) throws(AccountError) -> AccountStep<OpenAccount> {
        guard !reply.isNull("bundle") else { throw .bundleMissing }
        let version = try reply.version()
        let key = account.accessKey
        account.bundle = try OpenAccount.openOwn(
            try reply.octets("bundle"), app: account.app, user: account.user, version: version, seen: account.seen,
            with: key)
        account.version = version
        var next = account
        change(&next.bundle)
        if next.bundle == account.bundle, wrap == nil { return .done(account) }
        let sealed = try OpenAccount.seal(
            next.bundle, app: account.app, user: account.user, replacing: version, with: key)
        next.version = version + 1
        if case .passphrase(_, let pin)? = wrap { next.pin = pin }
        state = .writing(next, sealed, writes: writes + 1)
        var members = AccountRequest.PartnerMembers()
        if case .partner = asker {
            members.proof = try key.proof()
            members.wrap = wrap
        }
        return .ask(.putBundle(sealed, replacing: version, asker, members))
    }
}
