import ThicketCrypto

/// The keys that an account has created, from its bundle. Must be read before the look-up is sent, because another
/// device of the account may create keys meanwhile.
public struct KeyLogOwnKeys: Sendable {
    /// The keys in use.
    public let current: PublicKeys
    /// All keys used before.
    public let earlier: [PublicKeys]

    /// Creates the set of an account's own keys.
    public init(current: PublicKeys, earlier: [PublicKeys] = []) { (self.current, self.earlier) = (current, earlier) }

    func holds(_ keys: PublicKeys) -> Bool { keys == current || earlier.contains(keys) }
}

/// Checks of the account's own entries.
extension KeyLogReader {
    /// The parameters of a look-up of all own entries.
    public var ownQuestion: (from: UInt64, known: UInt64) { (from: 0, known: head?.size ?? 0) }

    /// Checks the account's own entries, at each start and daily (spec 4.12).
    ///
    /// The result holds for the current state of the log. If the log showed another key to other users between two
    /// checks and removed it again, the affected devices detect that at their next look-up, and so does an auditor that
    /// rebuilds the log from its entries (`KeyLog`).
    ///
    /// Entries of an earlier holder of the name may come first; the account's own begin with a reset then.
    ///
    /// - Parameters:
    ///   - lookup: the answer to `ownQuestion`.
    ///   - mayBeHeld: whether an earlier account may have left its entries, as with the handle of a name.
    ///   - now: milliseconds since 1970.
    public mutating func checkOwn(
        _ lookup: KeyLogLookup, own: KeyLogOwnKeys, mayBeHeld: Bool = false, now: UInt64
    ) -> KeyLogOwnVerdict {
        do throws(Stop) {
            let verdict = try look(lookup, own, mayBeHeld, now)
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
        _ lookup: KeyLogLookup, _ keys: KeyLogOwnKeys, _ mayBeHeld: Bool, _ now: UInt64
    ) throws(Stop) -> KeyLogOwnVerdict {
        let user = keys.current.user
        try acceptHead(of: lookup, now: now)
        guard try isCommitted(lookup, user), let newest = lookup.chain.last else { return .missing }
        guard lookup.chain.first?.sequence == 0 else {
            throw .refused(KeyLogError(.sequence, "the answer does not contain all of the user's own entries"))
        }
        // Checked before the rules: a foreign key is the more specific finding.
        let begin = lookup.chain.firstIndex { keys.holds($0.keys) }
        let beginsAgain = begin.map { $0 > 0 && lookup.chain[$0].kind == .reset } ?? mayBeHeld
        let own = beginsAgain ? lookup.chain[(begin ?? lookup.chain.endIndex)...] : lookup.chain[...]
        if let foreign = own.first(where: { !keys.holds($0.keys) }) {
            throw alarm(.foreignKey(foreign), of: KeyLogEntry.mapKey(of: user))
        }
        try checkChain(lookup, user)
        guard begin != nil else { return .held }
        try pin(newest, at: lookup.head.time)
        return newest.keys == keys.current ? .asCreated : .missing
    }
}
