import ThicketProtocol

/// Objects that a bucket requests with `e`. Starts from the beginning on each connection.
struct Reloads {
    /// The requested objects, and when they were requested.
    private(set) var asked = [EntityKey: Int64]()
    /// Objects to request when the limit permits.
    var queue = KeyQueue()

    /// The next object to request; nil: none, or the limit is reached.
    mutating func next() -> EntityKey? {
        asked.count < SyncLimits.reloadsInFlightMax ? queue.popFirst() : nil
    }

    mutating func ask(_ key: EntityKey, at now: Int64) { asked[key] = now }

    /// Requests the object, unless its request is under way.
    mutating func want(_ key: EntityKey) { if asked[key] == nil { queue.append(key) } }

    /// - Returns: whether the object was requested.
    mutating func answered(_ key: EntityKey) -> Bool { asked.removeValue(forKey: key) != nil }

    /// The token has expired: the requests get no answer any more.
    mutating func lapse() {
        for key in asked.keys.sorted() { queue.append(key) }
        asked.removeAll()
    }
}
