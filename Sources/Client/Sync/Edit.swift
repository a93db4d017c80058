package import ThicketProtocol

/// A difference between two states of an object, where a state may be "does not exist".
///
/// `.modify` on an object that does not exist creates it (the diff is based on the empty object).
package enum Edit: Sendable, Equatable {
    case modify(ObjectDiff)
    case remove
}

/// Operations on edits: composing, rebasing, transforming. Positions in text are transformed exactly; nothing is
/// matched by search.
package enum Edits {
    /// The state after `edit`; nil means that the object does not exist.
    package static func apply(_ edit: Edit?, to state: JSONObject?) throws(DiffError) -> JSONObject? {
        switch edit {
        case nil: return state
        case .remove: return nil
        case .modify(let diff): return try JSONDiff.apply(diff, to: state ?? JSONObject())
        }
    }

    /// `diff` applied to `object`, as by `JSONDiff.apply`. A text that `mine` edits in the same way is taken from
    /// `made`, the result of `mine` on `object`, instead of being computed again.
    package static func apply(
        _ diff: ObjectDiff, to object: JSONObject, alike mine: ObjectDiff?, made: JSONObject?
    ) throws(DiffError) -> JSONObject {
        // The search is linear, so it is done for few keys only.
        guard let mine, let made, mine.operations.count <= 16 else { return try JSONDiff.apply(diff, to: object) }
        var others = ObjectDiff()
        var texts = [(key: String, value: JSONValue)]()
        for (key, operation) in diff.operations {
            if case .text = operation, let known = made[key], object.contains(key),
                mine.operations.contains(where: { $0.key.utf8.elementsEqual(key.utf8) && $0.operation == operation })
            {
                texts.append((key, known))
            } else {
                others.operations.append((key: key, operation: operation))
            }
        }
        var result = try JSONDiff.apply(others, to: object)
        for (key, value) in texts { result[key] = value }
        return result
    }

    /// The same edit of `object`, with `+` only for absent keys, `r` only for present keys, and no `-` of absent keys:
    /// a diff from the app may mix them up, and composing would then lose a removal.
    package static func fitted(_ diff: ObjectDiff, to object: JSONObject, depth: Int = 0) -> ObjectDiff {
        // Deeper than an object may be; applying the diff throws the error.
        guard depth <= Limits.jsonDepthMax else { return diff }
        return ObjectDiff(
            diff.operations.compactMap { key, operation in
                switch (operation, object[key]) {
                case (.insert(let value), .some): (key: key, operation: .replace(value))
                case (.replace(let value), nil): (key: key, operation: .insert(value))
                case (.remove, nil): nil
                case (.object(let inner), .object(let known)?):
                    (key: key, operation: .object(fitted(inner, to: known, depth: depth + 1)))
                default: (key: key, operation: operation)
                }
            })
    }

    /// The edit that leads from one state to another; nil when they are equal.
    package static func between(_ source: JSONObject?, _ target: JSONObject?) -> Edit? {
        switch (source, target) {
        case (nil, nil): return nil
        case (_?, nil): return .remove
        case (nil, let target?): return .modify(JSONDiff.diff(from: JSONObject(), to: target))
        case (let source?, let target?):
            let diff = JSONDiff.diff(from: source, to: target)
            return diff.isEmpty ? nil : .modify(diff)
        }
    }

    /// As `between`, for the changes made by others while this client was offline. Local edits are rebased over the
    /// result, so it must not touch characters that are in both states. Never sent.
    package static func gap(_ source: JSONObject?, _ target: JSONObject?) -> Edit? {
        guard let source, let target else { return between(source, target) }
        let diff = JSONDiff.diff(from: source, to: target, keepsShortEqualities: true)
        return diff.isEmpty ? nil : .modify(diff)
    }

    /// `first` and then `second` as one edit of `base`; nil when they cancel each other.
    package static func compose(
        _ first: Edit?, _ second: Edit?, base: JSONObject?
    ) throws(DiffError) -> Edit? {
        switch (first, second) {
        case (nil, _): return second
        case (_, nil): return first
        case (_, .remove): return base == nil ? nil : .remove
        case (.remove, .modify): return between(base, try apply(second, to: nil))
        case (.modify(let one), .modify(let two)):
            let both = try JSONDiff.compose(one, two)
            return both.isEmpty && base != nil ? nil : .modify(both)
        }
    }

    /// Rebases a local edit over the change `other`, which was made from the same `base` and ordered before it.
    ///
    /// The local edit is ordered later and so prevails: an edit of an object that was removed restores the whole
    /// object, a removal of an edited object removes it (wire contract 7.4).
    package static func carry(_ edit: Edit?, over other: Edit?, base: JSONObject?) throws(DiffError) -> Edit? {
        switch (edit, other) {
        case (nil, _), (_, nil): return edit
        case (.remove, .remove): return nil
        case (.remove, .modify): return .remove
        case (.modify, .remove):
            guard base != nil else { return edit }
            return between(nil, try apply(edit, to: base))
        case (.modify(let mine), .modify(let theirs)):
            let diff = try JSONDiff.transform(
                mine, over: theirs, base: base ?? JSONObject(), rule: .exact(tie: .after))
            return diff.isEmpty ? nil : .modify(diff)
        }
    }

    /// What remains of an edit of `object` whose author wants the whole state `wanted`: values that are already equal
    /// to `wanted` are not changed.
    ///
    /// - Returns: nil when the whole edit remains; otherwise the edit, which is itself nil when nothing remains.
    package static func sparing(_ edit: Edit?, of object: JSONObject?, wanted: JSONObject?) -> Edit?? {
        guard case .modify(let diff)? = edit, let object, let wanted,
            let rest = JSONDiff.sparing(diff, of: object, wanted: wanted)
        else { return nil }
        return .some(rest.isEmpty ? nil : .modify(rest))
    }

    /// The pending change as computed here and as the server applied it: both are edits of `ghost`.
    package struct Move {
        let made: Edit?
        let applied: ObjectDiff
        let ghost: JSONObject?

        package init(made: Edit?, applied: ObjectDiff, ghost: JSONObject?) {
            (self.made, self.applied, self.ghost) = (made, applied, ghost)
        }
    }

    /// Rebases a local edit of `base` when the server's state differs from `base` by `difference`.
    ///
    /// If the only difference is that the server placed this client's insertion elsewhere, the edit follows the
    /// inserted text. Treating that as a deletion and an insertion would lose an edit that deletes inserted text.
    package static func rebase(
        _ edit: Edit?, over difference: Edit?, as move: Move?, base: JSONObject?
    ) throws(DiffError) -> Edit? {
        guard let move, case .modify(let later)? = edit, case .modify(let made)? = move.made,
            let ghost = move.ghost
        else { return try carry(edit, over: difference, base: base) }
        let parts = JSONDiff.follow(
            later, from: made, to: move.applied, base: ghost)
        guard !parts.moved.isEmpty else { return try carry(edit, over: difference, base: base) }
        guard case .modify(let rest)? = try carry(.modify(parts.rest), over: difference, base: base) else {
            return .modify(parts.moved)
        }
        return .modify(JSONDiff.joined(parts.moved, rest))
    }

    /// Rebases a change that was ordered earlier over a local edit of the same `base`, which gives the change in what
    /// the app sees. The mirror image of `carry`.
    package static func yield(_ change: Edit?, to edit: Edit?, base: JSONObject?) throws(DiffError) -> Edit? {
        switch (change, edit) {
        case (nil, _), (_, nil): return change
        case (.remove, _), (.modify, .remove): return nil
        case (.modify(let theirs), .modify(let mine)):
            let diff = try JSONDiff.transform(
                theirs, over: mine, base: base ?? JSONObject(), rule: .exact(tie: .before))
            return diff.isEmpty ? nil : .modify(diff)
        }
    }
}
