import ThicketProtocol

/// The removals that a channel of `node-simperium` was sent lately. That library answers each with a removal of its
/// own, without `sv`, which would delete an object that was created again in the meantime (wire contract, 1.10).
struct RemovalHints {
    /// Removals remembered for one channel; the oldest is dropped first.
    static let countMax = 256
    /// Nanoseconds after which a removal by the client counts as intended by its user. The echo comes within a
    /// round trip.
    static let lifetime: Int64 = 60_000_000_000

    private var entries = [(key: String, sent: Int64)]()

    /// A removal was sent to the channel.
    mutating func record(_ key: EntityKey, at now: Int64) {
        forget(key.text)
        if entries.count >= Self.countMax { entries.removeFirst() }
        entries.append((key.text, now))
    }

    /// The channel sent a removal without `sv`. Returns true, once, when it echoes a removal that the channel was
    /// sent.
    mutating func takeEcho(of key: String, at now: Int64) -> Bool {
        guard let index = place(of: key) else { return false }
        let sent = entries.remove(at: index).sent
        return now - sent <= Self.lifetime
    }

    /// The channel has changed the object since: a removal that comes now is intended.
    mutating func forget(_ key: String) {
        guard let index = place(of: key) else { return }
        entries.remove(at: index)
    }

    private func place(of key: String) -> Int? {
        entries.firstIndex { $0.key.utf8.elementsEqual(key.utf8) }
    }
}
