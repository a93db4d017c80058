extension JSONDiff {
    /// The object after the edit. Supports all eight operations.
    ///
    /// `+` and `r` set the key whether it exists or not, `-` of a missing key changes nothing; all other operations
    /// must fit.
    ///
    /// - Throws: `DiffError` when an operation does not fit.
    public static func apply(_ diff: ObjectDiff, to object: JSONObject) throws(DiffError) -> JSONObject {
        try apply(diff, to: object, depth: 0)
    }

    /// Applies a diff like `apply`, and requires that its text deltas contain whole characters (`keepingPairsWhole`).
    ///
    /// - Throws: `DiffError`, also `DiffError.Kind.delta(.splitSurrogate)` for a step that cuts a surrogate pair, even
    ///   if the edit joins both halves again.
    public static func applyWhole(_ diff: ObjectDiff, to object: JSONObject) throws(DiffError) -> JSONObject {
        try apply(diff, to: object, depth: 0, keepsPairs: true)
    }

    static func apply(
        _ diff: ObjectDiff, to object: JSONObject, depth: Int, keepsPairs: Bool = false
    ) throws(DiffError) -> JSONObject {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var result = object
        for (key, operation) in diff.operations {
            do throws(DiffError) {
                result[key] = try apply(operation, to: object[key], depth: depth, keepsPairs: keepsPairs)
            } catch { throw error.inside(key) }
        }
        return result
    }

    /// The value after the edit; nil when it is removed.
    static func apply(
        _ operation: Operation, to value: JSONValue?, depth: Int, keepsPairs: Bool = false
    ) throws(DiffError) -> JSONValue? {
        switch operation {
        case .insert(let new), .replace(let new): return new
        case .remove: return nil
        default:
            guard let value else { throw DiffError(.missingKey) }
            return try edit(value, by: operation, depth: depth, keepsPairs: keepsPairs)
        }
    }

    /// The value after an operation other than a removal.
    static func edit(
        _ value: JSONValue, by operation: Operation, depth: Int, keepsPairs: Bool = false
    ) throws(DiffError) -> JSONValue {
        switch (operation, value) {
        case (.insert(let new), _), (.replace(let new), _):
            return new
        case (.increment(let amount), .number(let number)):
            guard let sum = number.adding(amount) else { throw DiffError(.numberTooLong) }
            return .number(sum)
        case (.object(let diff), .object(let object)):
            return .object(try apply(diff, to: object, depth: depth + 1, keepsPairs: keepsPairs))
        case (.list(let diff), .array(let list)):
            return .array(try ListDelta(diff).apply(to: list, depth: depth + 1, keepsPairs: keepsPairs))
        case (.listText(let delta), .array(let list)) where keepsPairs && cutsPairs(delta, in: list):
            throw DiffError(.delta(.splitSurrogate))
        case (.listText(let delta), .array(let list)):
            return .array(try ListText.apply(delta, to: list, depth: depth + 1))
        case (.text(let delta), .string(let text)):
            do throws(DeltaError) {
                return .string(keepsPairs ? try delta.applyWhole(to: text) : try delta.apply(to: text))
            } catch { throw DiffError(.delta(error)) }
        default:
            throw DiffError(.wrongType)
        }
    }
}
