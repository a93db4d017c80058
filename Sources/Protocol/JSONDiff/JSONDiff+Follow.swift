extension JSONDiff {
    /// An edit of what `made` makes, taken apart: texts and lists that `applied` makes of the same parts in another
    /// order are edited there by following the parts, and not their places.
    ///
    /// So a deletion of what has been moved stays one. Carried over the move as over a deletion and an insertion, it
    /// would be gone.
    /// - Parameter base: what `made` and `applied` are edits of.
    /// - Returns: in `moved` what is an edit of what `applied` makes, in `rest` what is still one of what `made` makes.
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
                let parts: (moved: ObjectDiff, rest: ObjectDiff) = follow(
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

    /// Both parts of an edit as one: `rest` after it was carried over the same change that `moved` follows.
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
