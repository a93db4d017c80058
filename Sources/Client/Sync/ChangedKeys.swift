import ThicketProtocol

/// Objects that went on, each once: the first `countMax` that came.
///
/// They are listed as they come, and made a set of when the list is full or somebody wants them: the first walk brings
/// thousands, of which none comes twice.
struct ChangedKeys {
    /// Objects that are remembered.
    static let countMax = 10_000

    private var known = Set<EntityKey>()
    private var recent = [EntityKey]()

    mutating func insert(_ key: EntityKey) {
        // Who types into an object brings it again and again.
        guard recent.last != key else { return }
        if known.count + recent.count >= Self.countMax { gather() }
        if known.count < Self.countMax { recent.append(key) }
    }

    /// All of them; none is left.
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
