internal import ThicketCrypto

/// What came of putting an account's keys back.
public struct KeysPutBack: Sendable {
    /// The account as the server has it now: with what this device had, and what the server had besides.
    public let account: OpenAccount
    /// Versions of the bundle that were written; 0 when the server had what this device has.
    public let versions: Int
}

/// Puts the bundle that a device keeps back at a server whose backup from before it was restored: on the user's word
/// alone, since a server that lies looks the same (decision 0062).
///
/// What the server shows has to open with this device's access key and hold the same secrets; then both are joined, and
/// written until the version is greater than the one that this device has seen, one version with each request. A run
/// that was cut short is begun again from what is there by then.
package struct PutBackFlow: AccountFlow {
    package typealias Outcome = KeysPutBack

    /// Versions that one run writes at most: each is a request.
    package static let versionsMax: UInt64 = 1_000

    private enum State {
        case begun
        case reading(conflicts: Int)
        case writing(OpenAccount, [UInt8], conflicts: Int)
        /// The answer did not come: what the server has tells whether it was written.
        case looking(OpenAccount, [UInt8], ClientError)
    }

    private let kept: OpenAccount
    private let asker: AccountRequest.Asker
    /// The newest that this run has written.
    private var newest = SeenBundle.none
    private var versions: UInt64 = 0
    private var state = State.begun

    package init(_ kept: OpenAccount, _ asker: AccountRequest.Asker) { (self.kept, self.asker) = (kept, asker) }

    package mutating func begin() throws(AccountError) -> AccountStep<KeysPutBack> { read(conflicts: 0) }

    package mutating func take(_ event: AccountEvent) throws(AccountError) -> AccountStep<KeysPutBack> {
        switch (state, event) {
        case (.reading(let conflicts), .answered(let reply)): return try found(reply, conflicts: conflicts)
        case (.writing(let next, _, _), .answered(let reply)):
            guard try reply.version() == next.version else { throw .otherAccount }
            return try written(next)
        case (.writing(let next, let sealed, let conflicts), .refused(let error)):
            if error.leavesItOpen {
                state = .looking(next, sealed, error)
                return .ask(.readBundle(asker))
            }
            guard error.number == 409 else { throw .server(error) }
            guard conflicts + 1 < AccountFlowLimits.writesMax else { throw .busy }
            return read(conflicts: conflicts + 1)
        case (.looking(let next, let sealed, let first), .answered(let reply)):
            guard !reply.isNull("bundle"), try reply.octets("bundle") == sealed else { throw .server(first) }
            return try written(next)
        case (.looking, .refused(let error)): throw .unknown(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func read(conflicts: Int) -> AccountStep<KeysPutBack> {
        state = .reading(conflicts: conflicts)
        return .ask(.readBundle(asker))
    }

    private mutating func found(
        _ reply: AccountReply, conflicts: Int
    ) throws(AccountError) -> AccountStep<KeysPutBack> {
        guard !reply.isNull("bundle") else { throw .bundleMissing }
        let version = try reply.version()
        let bundle: AccountBundle
        do throws(AccountError) {
            // Older than what this device keeps is what the user has agreed to; older than what this run has written is
            // not.
            bundle = try OpenAccount.open(
                try reply.octets("bundle"), app: kept.app, user: kept.user, version: version, seen: newest,
                with: kept.accessKey)
        } catch {
            throw error == .doesNotOpen && version > kept.version ? .keyChanged : error
        }
        guard bundle.hasSecrets(of: kept.bundle) else { throw .otherAccount }
        var next = kept
        // Not only before this run has written: a server could show something old in the middle of it.
        next.bundle = try bundle.joined(with: kept.bundle, prevails: version <= kept.version)
        next.version = version
        let isThere: Bool
        switch version {
        case ..<kept.version: isThere = false
        case kept.version: isThere = versions == 0 && bundle == kept.bundle
        default: isThere = next.bundle == bundle
        }
        if isThere { return .done(outcome(next)) }
        guard version >= kept.version || kept.version - version < Self.versionsMax else {
            throw .unusable(
                "the server is \(kept.version - version) versions behind, and \(Self.versionsMax - 1) are the most")
        }
        return try write(next, conflicts: conflicts)
    }

    /// - Parameter now: what is to be written, and the version that it replaces.
    private mutating func write(_ now: OpenAccount, conflicts: Int) throws(AccountError) -> AccountStep<KeysPutBack> {
        // Others may have made the way longer.
        guard versions < Self.versionsMax else { throw .busy }
        let sealed = try OpenAccount.seal(
            now.bundle, app: now.app, user: now.user, replacing: now.version, with: now.accessKey)
        var next = now
        next.version = now.version + 1
        state = .writing(next, sealed, conflicts: conflicts)
        var members = AccountRequest.PartnerMembers()
        if case .partner = asker { members.proof = try now.accessKey.proof() }
        return .ask(.putBundle(sealed, replacing: now.version, asker, members))
    }

    private mutating func written(_ next: OpenAccount) throws(AccountError) -> AccountStep<KeysPutBack> {
        (newest, versions) = (next.seen, versions + 1)
        return next.version > kept.version ? .done(outcome(next)) : try write(next, conflicts: 0)
    }

    private func outcome(_ account: OpenAccount) -> KeysPutBack {
        KeysPutBack(account: account, versions: Int(clamping: versions))
    }
}
