import ThicketProtocol

/// The objects that have advanced, each once: the first `countMax`.
///
/// Keys are collected in a list and turned into a set only when the list is full or its content is needed: the first
/// scan brings thousands of keys, each once.
struct ChangedKeys {
    /// Most keys that are held.
    static let countMax = 10_000

    private var known = Set<EntityKey>()
    private var recent = [EntityKey]()

    mutating func insert(_ key: EntityKey) {
        // Typing into an object produces the same key many times in a row.
        guard recent.last != key else { return }
        if known.count + recent.count >= Self.countMax { gather() }
        if known.count < Self.countMax { recent.append(key) }
    }

    /// Returns all keys and removes them.
    mutating func takeAll() -> Set<EntityKey> {
        gather()
        defer { known = [] }
        return known
    }

    private mutating func gather() {
        known.formUnion(recent)
        recent = []
    }
}
