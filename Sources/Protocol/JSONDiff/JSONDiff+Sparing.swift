extension JSONDiff {
    /// `diff`, an edit of `object`, without what it does to values that are already as `wanted` has them.
    ///
    /// For an edit whose author wants an object as a whole, after it was carried over what others did
    /// (docs/decisions/0086). Members of nested objects are compared one by one, other values as a whole, and only
    /// those that `diff` touches.
    /// - Returns: nil when every operation still has something to do; an empty diff when none has.
    public static func sparing(_ diff: ObjectDiff, of object: JSONObject, wanted: JSONObject) -> ObjectDiff? {
        var result = ObjectDiff()
        var isLess = false
        for (key, operation) in diff.operations {
            let (value, target) = (object[key], wanted[key])
            if value == target {
                isLess = true
                continue
            }
            var operation = operation
            if case .object(let inner) = operation, case .object(let value)? = value,
                case .object(let target)? = target,
                let rest = sparing(inner, of: value, wanted: target)
            {
                isLess = true
                guard !rest.isEmpty else { continue }
                operation = .object(rest)
            }
            result.operations.append((key: key, operation: operation))
        }
        return isLess ? result : nil
    }
}
