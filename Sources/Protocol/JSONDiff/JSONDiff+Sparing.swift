extension JSONDiff {
    /// The diff without operations on values that are equal to those of `wanted` already.
    ///
    /// For an edit whose author sets an object as a whole, after it was rebased over other changes
    /// (docs/decisions/0086). Members of nested objects are compared one by one, other values as a whole, and only
    /// those that `diff` touches.
    ///
    /// - Parameters:
    ///   - diff: an edit of `object`.
    ///   - object: the object before the edit.
    ///   - wanted: the object as its author set it.
    /// - Returns: nil when every operation still has an effect; an empty diff when none has.
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
