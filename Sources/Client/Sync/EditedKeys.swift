import ThicketProtocol

/// Which objects of a bucket have edits, as the store knows it.
struct EditedKeys {
    /// Objects with unconfirmed edits or repairs, and those among them that the server refused.
    private(set) var edited = Set<EntityKey>()
    private(set) var refused = Set<EntityKey>()
    /// The number of keys in both sets: a read-only object need not have edits.
    private(set) var refusedEdits = 0
    /// Objects whose ghost is known to be outdated (`wanted`).
    private(set) var stale = Set<EntityKey>()

    /// Updates the sets of keys after a change of an object's edits.
    mutating func update(_ object: EditedKey) {
        if edited.contains(object.key), refused.contains(object.key) { refusedEdits -= 1 }
        if object.hasEdits, object.isRefused { refusedEdits += 1 }
        if object.hasEdits { edited.insert(object.key) } else { edited.remove(object.key) }
        if object.isRefused { refused.insert(object.key) } else { refused.remove(object.key) }
        if object.isStale { stale.insert(object.key) } else { stale.remove(object.key) }
    }
}
