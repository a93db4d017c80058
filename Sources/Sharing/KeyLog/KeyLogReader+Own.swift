import ThicketCrypto

/// The keys that an account has made, from its bundle. It is read before the log is asked: another device of the
/// account may have made some since.
public struct KeyLogOwnKeys: Sendable {
    /// Those that the account uses.
    public let current: PublicKeys
    /// All that it used before.
    public let earlier: [PublicKeys]

    public init(current: PublicKeys, earlier: [PublicKeys] = []) { (self.current, self.earlier) = (current, earlier) }

    func holds(_ keys: PublicKeys) -> Bool { keys == current || earlier.contains(keys) }
}

/// One's own entries.
extension KeyLogReader {
    /// What to ask the server for: all of one's own entries.
    public var ownQuestion: (from: UInt64, known: UInt64) { (from: 0, known: head?.size ?? 0) }

    /// Looks at one's own entries, at each start and daily (spec 4.12).
    ///
    /// What it finds is what the log shows at this moment. A log that showed another key to others between two looks,
    /// and took it back, is found by those it was shown to when they look again, and by whoever builds the log again
    /// from its entries (`KeyLog`).
    ///
    /// - Parameters:
    ///   - lookup: the answer to `ownQuestion`.
    ///   - now: milliseconds since 1970.
    public mutating func checkOwn(_ lookup: KeyLogLookup, own: KeyLogOwnKeys, now: UInt64) -> KeyLogOwnVerdict {
        do throws(Stop) {
            let verdict = try look(lookup, own, now)
            selfChecked = min(now, KeyLogLimits.numberBound - 1)
            return verdict
        } catch {
            switch error {
            case .refused(let why): return .refused(why)
            case .alarm(let alarm): return .alarm(alarm)
            }
        }
    }

    private mutating func look(
        _ lookup: KeyLogLookup, _ own: KeyLogOwnKeys, _ now: UInt64
    ) throws(Stop) -> KeyLogOwnVerdict {
        let user = own.current.user
        try takeHead(of: lookup, now: now)
        guard try isCommitted(lookup, user), let newest = lookup.chain.last else { return .missing }
        guard lookup.chain.first?.sequence == 0 else {
            throw .refused(KeyLogError(.sequence, "the answer does not have all of one's own entries"))
        }
        // Before the rules: whose key it is says more than what is wrong with it.
        if let foreign = lookup.chain.first(where: { !own.holds($0.keys) }) {
            throw alarm(.foreignKey(foreign), of: KeyLogEntry.mapKey(of: user))
        }
        try checkChain(lookup, user)
        try pin(newest, at: lookup.head.time)
        return newest.keys == own.current ? .asCreated : .missing
    }
}
