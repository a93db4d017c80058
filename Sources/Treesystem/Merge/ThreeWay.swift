public import ThicketProtocol

/// Three-way merges of small values, of which an app's `Mergeable` is made. Each yields the other side for a side that
/// is equal to the base, and keeps the local change where only one can stay.
public enum ThreeWay {
    /// A value that is merged as a whole.
    public static func value<Value: Equatable>(_ base: Value, _ local: Value, _ remote: Value) -> Value {
        local == base ? remote : local
    }

    /// A text, character by character.
    ///
    /// - Throws: `DiffError`, which no text of whole characters causes.
    public static func text(_ base: String, _ local: String, _ remote: String) throws(DiffError) -> String {
        let merged = try JSONMerge(base: .string(base), local: .string(local), remote: .string(remote))
        return merged.value.stringValue ?? local
    }

    /// A dictionary, key by key: an absent key is a value of its own.
    ///
    /// - Parameter merge: of a key that all three have.
    public static func dictionary<Key, Value: Equatable>(
        _ base: [Key: Value], _ local: [Key: Value], _ remote: [Key: Value],
        merge: (_ base: Value, _ local: Value, _ remote: Value) throws -> Value
    ) rethrows -> [Key: Value] {
        var result = remote
        for key in Set(base.keys).union(local.keys) {
            if let before = base[key], let mine = local[key], let theirs = remote[key] {
                result[key] = try merge(before, mine, theirs)
            } else {
                result[key] = value(base[key], local[key], remote[key])
            }
        }
        return result
    }

    /// A dictionary whose values are merged as wholes.
    public static func dictionary<Key, Value: Equatable>(
        _ base: [Key: Value], _ local: [Key: Value], _ remote: [Key: Value]
    ) -> [Key: Value] { dictionary(base, local, remote) { value($0, $1, $2) } }

    /// An ordered set: what either side removed is gone, what either side added is there, each element once. The order
    /// is the remote one if the local side did not change it; otherwise the local one, with the other side's additions
    /// behind it.
    public static func set<Element: Hashable>(
        _ base: [Element], _ local: [Element], _ remote: [Element]
    ) -> [Element] {
        if local == base || local == remote { return remote }
        if remote == base { return local }
        let (old, mine, theirs) = (Set(base), Set(local), Set(remote))
        let wanted = mine.union(theirs).filter { element in
            old.contains(element) ? mine.contains(element) && theirs.contains(element) : true
        }
        let isInOrder = local.filter(old.contains) == base.filter(mine.contains)
        let order = isInOrder ? remote + local : local + remote
        var seen = Set<Element>()
        return order.filter { wanted.contains($0) && seen.insert($0).inserted }
    }
}
