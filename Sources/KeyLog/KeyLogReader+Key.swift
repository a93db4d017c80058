public import ThicketCrypto

/// A new key of the log.
extension KeyLogReader {
    /// The same state for the log's next key.
    ///
    /// The caller has verified that the old key has signed the new one. The log itself must go on: its head under the
    /// new key has to be consistent with the newest head seen under the old one. A fork stays.
    ///
    /// - Parameters:
    ///   - key: the new key.
    ///   - head: the log's present head, signed with the new key; nil only for a log without entries.
    ///   - way: the server's proof from the newest head seen to `head`; nil when the sizes are equal.
    ///   - now: milliseconds since 1970.
    /// - Throws: `notSigned`, `staleHead`, `futureHead`; `olderHead` for a shorter log; `notProven` when the log does
    ///   not go on; `otherLog` while a fork exists, because its heads are signed with the old key.
    public func following(
        _ key: Ed25519.VerifyingKey, head new: KeyLogHead?, way: KeyLogConsistency?, now: UInt64
    ) throws(KeyLogError) -> KeyLogReader {
        guard fork == nil else { throw KeyLogError(.otherLog, "two heads contradict each other under the old key") }
        var next = try KeyLogReader(app: app, logKey: key)
        (next.pins, next.selfChecked) = (pins, selfChecked)
        guard let new else {
            guard head == nil else { throw Self.shrunk }
            return next
        }
        try new.check(key)
        guard !Self.isStale(new.time, now) else {
            throw KeyLogError(.staleHead, "the head under the log's new key is older than an hour")
        }
        guard !Self.isFuture(new.time, now) else { throw Self.future }
        if let head {
            guard new.size >= head.size else { throw Self.shrunk }
            let goesOn = new.isSameLog(as: head) || way.map { KeyLogFork(head, new).isExplained(by: $0) } ?? false
            guard goesOn else {
                throw KeyLogError(.notProven, "the log under the new key does not go on from the one seen before")
            }
        }
        next.head = new
        return next
    }

    private static let shrunk = KeyLogError(.olderHead, "the log under the new key is shorter than seen before")
}
