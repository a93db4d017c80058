extension JSONDiff {
    /// Splits an edit of the result of `made`. If `applied` makes a text or list of the same parts in another order,
    /// the edit is moved to the result of `applied` by following the parts instead of their positions.
    ///
    /// So a deletion of moved text stays a deletion. If it were rebased over the move as over a deletion and an
    /// insertion, it would be lost.
    ///
    /// - Parameter base: the object of which `made` and `applied` are edits.
    /// - Returns: in `moved` the part that is now an edit of the result of `applied`, in `rest` the part that is still
    ///   an edit of the result of `made`.
    package static func follow(
        _ edit: ObjectDiff, from made: ObjectDiff, to applied: ObjectDiff, base: JSONObject
    ) -> (moved: ObjectDiff, rest: ObjectDiff) {
        follow(edit, from: made, to: applied, base: base, depth: 0)
    }

    private static func follow(
        _ edit: ObjectDiff, from made: ObjectDiff, to applied: ObjectDiff, base: JSONObject, depth: Int
    ) -> (moved: ObjectDiff, rest: ObjectDiff) {
        let (first, second): (OperationIndex, OperationIndex) = (.init(made), .init(applied))
        var (moved, rest): (ObjectDiff, ObjectDiff) = (.init(), .init())
        for (key, mine) in edit.operations {
            if case .object(let inner) = mine, depth < Limits.jsonDepthMax, case .object(let known)? = base[key],
                case .object(let one)? = first[key], case .object(let two)? = second[key]
            {
                let parts = follow(
                    inner, from: one, to: two, base: known, depth: depth + 1)
                if !parts.moved.isEmpty { moved.operations.append((key: key, operation: .object(parts.moved))) }
                if !parts.rest.isEmpty { rest.operations.append((key: key, operation: .object(parts.rest))) }
            } else if let operation = follow(mine, from: first[key], to: second[key], base: base[key]) {
                moved.operations.append((key: key, operation: operation))
            } else {
                rest.operations.append((key: key, operation: mine))
            }
        }
        return (moved: moved, rest: rest)
    }

    private static func follow(
        _ edit: Operation, from made: Operation?, to applied: Operation?, base: JSONValue?
    ) -> Operation? {
        switch (edit, made, applied, base) {
        case (.text(let mine), .text(let one)?, .text(let two)?, .string?) where one != two:
            mine.following(from: one, to: two).map { .text($0) }
        case (.list(let mine), .list(let one)?, .list(let two)?, .array(let list)?) where one != two:
            ListDelta(mine).following(from: ListDelta(one), to: ListDelta(two), count: list.count)
                .map { .list($0.diff) }
        default: nil
        }
    }

    /// Joins both parts of an edit: `rest` after it was rebased over the change that `moved` follows.
    package static func joined(_ moved: ObjectDiff, _ rest: ObjectDiff) -> ObjectDiff {
        var result = rest
        for (key, operation) in moved.operations {
            if let place = result.place(of: key), case .object(let one) = operation,
                case .object(let two) = result.operations[place].operation
            {
                result.operations[place].operation = .object(joined(one, two))
            } else {
                result.operations.append((key: key, operation: operation))
            }
        }
        return result
    }
}
