extension JSONDiff {
    /// One diff that has the effect of `first` and then `second`, with every insertion into a text at its exact place.
    ///
    /// A key whose value does not change in total is left out.
    ///
    /// - Throws: `DiffError` when `second` cannot follow `first`. A `L` after a `dL` of the same list (or the reverse)
    ///   cannot be expressed as one operation without the list, and is refused too.
    public static func compose(_ first: ObjectDiff, _ second: ObjectDiff) throws(DiffError) -> ObjectDiff {
        try compose(first, second, depth: 0)
    }

    static func compose(_ first: ObjectDiff, _ second: ObjectDiff, depth: Int) throws(DiffError) -> ObjectDiff {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        let later = OperationIndex(second)
        let earlier = OperationIndex(first)
        var result = ObjectDiff()
        for (key, before) in first.operations {
            guard let after = later[key] else {
                result.operations.append((key: key, operation: before))
                continue
            }
            do throws(DiffError) {
                if let both = try compose(before, after, depth: depth) {
                    result.operations.append((key: key, operation: both))
                }
            } catch { throw error.inside(key) }
        }
        for (key, after) in second.operations where earlier[key] == nil {
            result.operations.append((key: key, operation: after))
        }
        return result
    }

    /// One operation that has the effect of `first` and then `second`; nil when they cancel each other.
    ///
    /// - Throws: `DiffError`, as for diffs.
    package static func compose(_ first: Operation, _ second: Operation) throws(DiffError) -> Operation? {
        try compose(first, second, depth: 0)
    }

    static func compose(_ first: Operation, _ second: Operation, depth: Int) throws(DiffError) -> Operation? {
        switch (first, second) {
        case (.insert, .remove): return nil
        case (_, .remove): return .remove
        case (.insert, .insert(let value)), (.insert, .replace(let value)): return .insert(value)
        case (_, .insert(let value)), (_, .replace(let value)): return .replace(value)
        case (.remove, _): throw DiffError(.missingKey)
        case (.insert(let value), _): return .insert(try edit(value, by: second, depth: depth))
        case (.replace(let value), _): return .replace(try edit(value, by: second, depth: depth))
        case (.increment(let one), .increment(let two)):
            guard let sum = one.adding(two) else { throw DiffError(.numberTooLong) }
            return sum == 0 ? nil : .increment(sum)
        case (.object(let one), .object(let two)):
            let both = try compose(one, two, depth: depth + 1)
            return both.isEmpty ? nil : .object(both)
        case (.list(let one), .list(let two)):
            let both = try ListDelta.compose(ListDelta(one), ListDelta(two), depth: depth + 1)
            return both.isIdentity ? nil : .list(both.diff)
        case (.text(let one), .text(let two)):
            let both = try composeTexts(one, two)
            return both.isIdentity ? nil : .text(both)
        case (.listText(let one), .listText(let two)):
            let both = try composeTexts(one, two)
            return both.isIdentity ? nil : .listText(both)
        default: throw DiffError(.wrongType)
        }
    }

    private static func composeTexts(_ one: TextDelta, _ two: TextDelta) throws(DiffError) -> TextDelta {
        do throws(DeltaError) { return try TextDelta.compose(one, two) } catch { throw DiffError(.delta(error)) }
    }
}
