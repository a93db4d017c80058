import ThicketCrypto

/// Heads that others send along.
extension KeyLogReader {
    /// Compares a head that somebody else has seen with the newest one here; whichever is larger is the newest one
    /// afterwards.
    ///
    /// Whoever gets `ask` asks the server and calls again with what came. Until then nothing that came with the head
    /// counts as checked.
    ///
    /// - Parameters:
    ///   - heard: as somebody's signed statement carries it.
    ///   - way: what the server said of the way between the two.
    ///   - now: milliseconds since 1970.
    public mutating func compare(_ heard: KeyLogHead, way: KeyLogWay = .notAsked, now: UInt64) -> KeyLogGossip {
        do throws(KeyLogError) { try heard.check(logKey) } catch { return .refused(error) }
        guard !Self.isFuture(heard.time, now) else { return .refused(Self.future) }
        // One thing after the other: what is heard now is compared once the two heads that are there are explained.
        if let fork { return .alarm(fork) }
        guard let head else {
            // From now on the server has to go on from here, whoever has told us.
            self.head = heard
            return .consistent
        }
        if heard.isSameLog(as: head) { return .consistent }
        guard heard.size != head.size else { return .alarm(found(heard, head, [])) }
        let (older, newer) = heard.size < head.size ? (heard, head) : (head, heard)
        switch way {
        case .notAsked: return .ask(older: older.size, newer: newer.size)
        case .withheld: return .alarm(found(older, newer, []))
        case .given(let way):
            guard way.older == older.size, way.newer == newer.size else {
                return .refused(
                    KeyLogError(.otherSize, "the way is between other sizes than those asked for: ask again"))
            }
            guard KeyLogFork(older, newer).isExplained(by: way) else { return .alarm(found(older, newer, way.proof)) }
            self.head = newer
            return .consistent
        }
    }

    /// Ends an alarm over two heads by the way between them, which the server has found after all.
    ///
    /// - Parameter way: between the sizes of `fork`.
    /// - Returns: whether there is no fork any more.
    public mutating func explain(_ way: KeyLogConsistency) -> Bool {
        if let fork, fork.isExplained(by: way) { self.fork = nil }
        return fork == nil
    }
}
