/// A map that evicts the least recently used entries. Used by one thread at a time.
final class RecencyMap<Key: Hashable, Value> {
    private final class Entry: RecencyNode {
        let key: Key
        let value: Value
        init(_ key: Key, _ value: Value) { (self.key, self.value) = (key, value) }
    }

    private var entries = [Key: Entry]()
    private let order = RecencyList<Entry>()

    var count: Int { entries.count }
    /// Sum of the entries' weights.
    var weight: Int { order.bytes }
    var keys: some Sequence<Key> { entries.keys }

    /// The values whose keys satisfy the condition; does not count as a use.
    func values(where isWanted: (Key) -> Bool) -> [Value] {
        entries.values.filter { isWanted($0.key) }.map(\.value)
    }

    /// The value of a key; counts as a use.
    subscript(key: Key) -> Value? {
        guard let entry = entries[key] else { return nil }
        order.touch(entry, bytes: entry.countedBytes)
        return entry.value
    }

    func set(_ key: Key, _ value: Value, weight: Int) {
        remove(key)
        let entry = Entry(key, value)
        entries[key] = entry
        order.touch(entry, bytes: weight)
    }

    @discardableResult
    func remove(_ key: Key) -> Value? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        order.remove(entry)
        return entry.value
    }

    /// Evicts entries until both bounds hold; the newest entry stays regardless of its weight.
    func shrink(toWeight weightMax: Int, count countMax: Int) {
        while entries.count > 1, weight > weightMax || entries.count > countMax, let oldest = order.oldest {
            remove(oldest.key)
        }
    }
}
