import ThicketProtocol

/// Size, number of members and depth of objects, updated with each change without visiting the whole object.
enum DocumentMeasure {
    /// Bytes that a member takes in memory besides its text: its slot, its key, its share of the index and of spare
    /// capacity.
    static let nodeBytes = 100

    /// Bytes in memory from which deallocating an object takes long: ten thousand members, about a millisecond.
    static let largeBytes = 1 << 20

    /// Number of members and elements, of all levels.
    static func nodes(of object: JSONObject) -> Int {
        object.pairs.reduce(object.count) { $0 + nodes(in: $1.value) }
    }

    private static func nodes(in value: JSONValue) -> Int {
        switch value {
        case .null, .bool, .number, .string: 0
        case .array(let elements): elements.reduce(elements.count) { $0 + nodes(in: $1) }
        case .object(let object): nodes(of: object)
        }
    }

    /// Bytes and members of `after`, the result of applying `diff` to `before`, which has `size` bytes and `count`
    /// members.
    ///
    /// Visits the changed keys only, each once: the keys of a diff are distinct.
    static func measure(
        after diff: ObjectDiff, before: JSONObject, size: Int, nodes count: Int, after: JSONObject
    ) -> (size: Int, nodes: Int) {
        var size = size - max(0, before.count - 1) + max(0, after.count - 1)
        var count = count - before.count + after.count
        for (key, _) in diff.operations {
            let (old, new) = (before[key], after[key])
            // A keystroke in a large text: most of the text is unchanged.
            if case .string(let old)? = old, case .string(let new)? = new {
                size += JSONText.growth(from: old, to: new)
                continue
            }
            if let old {
                size -= pairSize(key, old)
                count -= nodes(in: old)
            }
            if let new {
                size += pairSize(key, new)
                count += nodes(in: new)
            }
        }
        return (size, count)
    }

    /// Whether no value under a changed key is nested deeper than `limit`, counting the object itself as one.
    static func fits(_ diff: ObjectDiff, in object: JSONObject, depth limit: Int) -> Bool {
        diff.operations.allSatisfy { key, _ in
            guard let value = object[key] else { return true }
            return fits(value, depth: limit - 1)
        }
    }

    private static func fits(_ value: JSONValue, depth limit: Int) -> Bool {
        switch value {
        case .null, .bool, .number, .string: true
        case .array(let elements): limit > 0 && elements.allSatisfy { fits($0, depth: limit - 1) }
        case .object(let object): limit > 0 && object.pairs.allSatisfy { fits($0.value, depth: limit - 1) }
        }
    }

    private static func pairSize(_ key: String, _ value: JSONValue) -> Int {
        JSONValue.string(key).serializedSize + 1 + value.serializedSize
    }
}
