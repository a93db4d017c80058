import ThicketProtocol

/// Size and depth of objects, followed from change to change without writing the whole object out.
enum DocumentMeasure {
    /// Bytes after `diff` turned `before`, which has `size` bytes, into `after`.
    ///
    /// Looks at the changed keys only, each once: a diff's keys are distinct.
    static func size(after diff: ObjectDiff, before: JSONObject, size: Int, after: JSONObject) -> Int {
        var result: Int = size - max(0, before.count - 1) + max(0, after.count - 1)
        for (key, _) in diff.operations {
            let (old, new): (JSONValue?, JSONValue?) = (before[key], after[key])
            // A keystroke in a large text: most of it is the same.
            if case .string(let old)? = old, case .string(let new)? = new {
                result += JSONText.growth(from: old, to: new)
                continue
            }
            if let old { result -= pairSize(key, old) }
            if let new { result += pairSize(key, new) }
        }
        return result
    }

    /// True when no value under a changed key is nested deeper than `limit`, the object itself counting one.
    static func fits(_ diff: ObjectDiff, in object: JSONObject, depth limit: Int) -> Bool {
        diff.operations.allSatisfy { key, _ in
            guard let value: JSONValue = object[key] else { return true }
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
