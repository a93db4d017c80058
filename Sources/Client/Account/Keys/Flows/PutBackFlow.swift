internal import ThicketCrypto

/// The result of restoring an account's keys.
public struct KeysPutBack: Sendable {
    /// The account as the server has it now: the entries of this device and those of the server.
    public let account: OpenAccount
    /// Versions of the bundle that were written; 0 when the server had what this device has.
    public let versions: Int
}

/// Restores a device's bundle on a server that was restored from an older backup. Only on the user's request, because a
/// lying server looks the same (decision 0043).
///
/// The server's bundle has to open with this device's access key and hold the same secrets. Both are then joined and
/// written until the version exceeds the one that this device has seen, one version per request. After an interruption
/// the flow starts again from the server's current state.
package struct PutBackFlow: AccountFlow {
    package typealias Outcome = KeysPutBack

    /// Most versions that one run writes; each is one request.
    package static let versionsMax: UInt64 = 1_000

    private enum State {
        case begun
        case reading(conflicts: Int)
        case writing(OpenAccount, [UInt8], conflicts: Int)
        /// The answer did not arrive: the server's state shows whether the bundle was written.
        case looking(OpenAccount, [UInt8], ClientError)
    }

    private let kept: OpenAccount
    private let asker: AccountRequest.Asker
    /// The newest bundle that this run has written.
    private var newest = SeenBundle.none
    private var versions: UInt64 = 0
    private var state = State.begun

    package init(_ kept: OpenAccount, _ asker: AccountRequest.Asker) { (self.kept, self.asker) = (kept, asker) }

    package mutating func begin() throws(AccountError) -> AccountStep<KeysPutBack> { read(conflicts: 0) }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<KeysPutBack> {
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
            // The user has agreed to a bundle older than this device's, but not to one older than this run has written.
            bundle = try OpenAccount.open(
                try reply.octets("bundle"), app: kept.app, user: kept.user, version: version, seen: newest,
                with: kept.accessKey)
        } catch {
            throw error == .doesNotOpen && version > kept.version ? .keyChanged : error
        }
        guard bundle.hasSecrets(of: kept.bundle) else { throw .otherAccount }
        var next = kept
        // Joined at every step, because a server could show an old bundle in the middle of the run.
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
                "the server is \(kept.version - version) versions behind, and \(Self.versionsMax - 1) is the limit")
        }
        return try write(next, conflicts: conflicts)
    }

    /// - Parameter now: the account to write, with the version that it replaces.
    private mutating func write(_ now: OpenAccount, conflicts: Int) throws(AccountError) -> AccountStep<KeysPutBack> {
        // Other devices may have increased the number of versions.
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
