import ThicketCrypto

/// Heads received from other clients.
extension KeyLogReader {
    /// Compares a head received from another client with the newest one here; the larger one becomes the newest.
    ///
    /// After `ask`, the caller requests a consistency proof from the server and calls this again with the result. Until
    /// then, data received together with the head does not count as verified.
    ///
    /// - Parameters:
    ///   - received: the head from the other client's signed statement.
    ///   - way: the server's answer about consistency.
    ///   - now: milliseconds since 1970.
    public mutating func compare(_ received: KeyLogHead, way: KeyLogWay = .notAsked, now: UInt64) -> KeyLogGossip {
        do throws(KeyLogError) { try received.check(logKey) } catch { return .refused(error) }
        guard !Self.isFuture(received.time, now) else { return .refused(Self.future) }
        // The new head is compared only after an existing fork has been resolved.
        if let fork { return .alarm(fork) }
        guard let head else {
            // From now on the server must be consistent with this head, whichever client sent it.
            self.head = received
            return .consistent
        }
        if received.isSameLog(as: head) { return .consistent }
        guard received.size != head.size else { return .alarm(found(received, head, [])) }
        let (older, newer) = received.size < head.size ? (received, head) : (head, received)
        switch way {
        case .notAsked: return .ask(older: older.size, newer: newer.size)
        case .withheld: return .alarm(found(older, newer, []))
        case .given(let way):
            guard way.older == older.size, way.newer == newer.size else {
                return .refused(
                    KeyLogError(.otherSize, "the proof is for other sizes than requested: request it again"))
            }
            guard KeyLogFork(older, newer).isExplained(by: way) else { return .alarm(found(older, newer, way.proof)) }
            self.head = newer
            return .consistent
        }
    }

    /// Resolves a fork with a consistency proof that the server has provided later.
    ///
    /// - Parameter way: must be between the sizes of `fork`.
    /// - Returns: whether no fork is left.
    public mutating func explain(_ way: KeyLogConsistency) -> Bool {
        if let fork, fork.isExplained(by: way) { self.fork = nil }
        return fork == nil
    }
}
