/// Differences between JSON objects, as read by all Simperium clients (wire contract, section 7).
///
/// All functions are pure. Recursion is bounded by `Limits.jsonDepthMax`, work on texts by a `StepBudget`.
public enum JSONDiff {
    /// How `transform` treats two edits of one value.
    public enum TransformRule: Sendable, Hashable {
        /// As the public jsondiff libraries: texts are patched fuzzily, and the later arrival wins. If a hunk does not
        /// find a place, the exact transform is used for the whole text.
        case reference
        /// By position only, so that both orders of two edits give the same result. `tie` states whether the
        /// transformed edit arrived later (`.after`) or earlier (`.before`) than the other; the later one wins where
        /// only one can.
        case exact(tie: TieBreak)

        /// Whether the transformed edit counts as the later arrival.
        var isLater: Bool { self != .exact(tie: .before) }
    }

    /// The operations that lead from `source` to `target`: `+ - r O d` only. Lists, numbers and values that change
    /// their type are replaced as a whole. Keys of `source` come first, in their order, then new keys.
    ///
    /// - Parameters:
    ///   - source: the object before.
    ///   - target: the object after.
    ///   - keepsShortEqualities: as in `TextDelta.diff`; for differences that are not sent.
    ///   - budget: steps for all texts together; when it is used up, the rest is deleted and inserted as a whole.
    public static func diff(
        from source: JSONObject, to target: JSONObject, keepsShortEqualities: Bool = false,
        budget: StepBudget = .standard
    ) -> ObjectDiff {
        var budget = budget
        return diff(from: source, to: target, depth: 0, keepsShort: keepsShortEqualities, &budget)
    }

    /// Objects nested deeper are replaced as a whole: with two JSON levels per level of `O`, the diff would soon be too
    /// deep for parsers.
    private static let nestingMax = 64

    static func diff(
        from source: JSONObject, to target: JSONObject, depth: Int, keepsShort: Bool = false,
        _ budget: inout StepBudget
    ) -> ObjectDiff {
        var result = ObjectDiff()
        for (key, before) in source.pairs {
            if let after = target[key] {
                let operation = diff(
                    from: before, to: after, depth: depth, keepsShort: keepsShort, &budget)
                if let operation {
                    result.operations.append((key: key, operation: operation))
                }
            } else {
                result.operations.append((key: key, operation: .remove))
            }
        }
        for (key, after) in target.pairs where !source.contains(key) {
            result.operations.append((key: key, operation: .insert(after)))
        }
        return result
    }

    /// Nil when the two are equal.
    static func diff(
        from before: JSONValue, to after: JSONValue, depth: Int, keepsShort: Bool = false,
        _ budget: inout StepBudget
    ) -> Operation? {
        switch (before, after) {
        case (.string(let before), .string(let after)):
            if before.hasSameBytes(as: after) { return nil }
            return .text(TextDelta.diff(from: before, to: after, keepsShortEqualities: keepsShort, budget: &budget))
        case (.object(let before), .object(let after)) where depth < nestingMax:
            let nested = diff(from: before, to: after, depth: depth + 1, keepsShort: keepsShort, &budget)
            return nested.isEmpty ? nil : .object(nested)
        default:
            return before == after ? nil : .replace(after)
        }
    }
}

/// Short name of `JSONDiff.TransformRule`.
public typealias TransformRule = JSONDiff.TransformRule
