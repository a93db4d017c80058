extension JSONDiff {
    /// Adjusts `a` so that it can follow `b`, when both were made from `base`: shared keys by the table of the wire
    /// contract (7.4, 7.5), other keys unchanged.
    ///
    /// With `.exact` both orders give the same result: `b` then `transform(a, over: b, .exact(tie: .after))` gives the
    /// same object as `a` then `transform(b, over: a, .exact(tie: .before))`.
    ///
    /// - Parameters:
    ///   - a: the edit to adjust.
    ///   - b: the edit that comes first.
    ///   - base: the object from which both were made.
    ///   - rule: fuzzy or exact, and the order of arrival.
    ///   - budget: steps for fuzzy patching; when it is used up, texts are transformed exactly.
    /// - Throws: `DiffError` when `a` or `b` does not fit `base` at a shared key.
    public static func transform(
        _ a: ObjectDiff, over b: ObjectDiff, base: JSONObject, rule: TransformRule, budget: StepBudget = .standard
    ) throws(DiffError) -> ObjectDiff {
        var budget = budget
        return try transform(a, over: b, base: base, rule: rule, depth: 0, &budget)
    }

    private static func transform(
        _ a: ObjectDiff, over b: ObjectDiff, base: JSONObject, rule: TransformRule, depth: Int,
        _ budget: inout StepBudget
    ) throws(DiffError) -> ObjectDiff {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        let other = OperationIndex(b)
        var result = ObjectDiff()
        for (key, mine) in a.operations {
            guard let theirs = other[key] else {
                result.operations.append((key: key, operation: mine))
                continue
            }
            do throws(DiffError) {
                let operation = try transform(
                    mine, over: theirs, base: base[key], rule: rule, depth: depth, &budget)
                if let operation { result.operations.append((key: key, operation: operation)) }
            } catch { throw error.inside(key) }
        }
        return result
    }

    /// Nil when nothing is left to do.
    static func transform(
        _ a: Operation, over b: Operation, base: JSONValue?, rule: TransformRule, depth: Int,
        _ budget: inout StepBudget
    ) throws(DiffError) -> Operation? {
        switch (a, b) {
        case (.insert(let mine), .insert(let theirs)):
            return rule.isLater ? diff(from: theirs, to: mine, depth: depth, &budget) : nil
        case (.remove, .remove):
            return nil
        case (.remove, _):
            return rule.isLater ? .remove : nil
        case (.insert(let value), .remove), (.replace(let value), .remove):
            return rule.isLater ? .insert(value) : nil
        case (_, .remove):
            return rule.isLater ? .insert(try edit(base, by: a, depth)) : nil
        case (.insert, .replace), (.replace, .insert), (.replace, .replace):
            return rule.isLater ? a : nil
        case (.insert(let value), _), (.replace(let value), _):
            return set(a, to: value, over: b, rule: rule, depth: depth)
        case (_, .insert(let value)), (_, .replace(let value)):
            guard rule.isLater else { return nil }
            return try outcome(of: a, on: value, depth) == nil ? .replace(edit(base, by: a, depth)) : a
        default:
            return try merge(a, over: b, base: base, rule: rule, depth: depth, &budget)
        }
    }

    /// Transforms an operation that sets a value which the other side has edited.
    private static func set(
        _ a: Operation, to value: JSONValue, over edit: Operation, rule: TransformRule, depth: Int
    ) -> Operation? {
        if rule.isLater { return a }
        // The later edit is applied to the new value if it fits; otherwise it replaces that value by its own result.
        return outcome(of: edit, on: value, depth).map { .replace($0) }
    }

    /// The result of an edit on a value that it was not made for; nil when it does not fit. Text deltas never count as
    /// fitting, because they would garble another text of the same length.
    private static func outcome(of edit: Operation, on value: JSONValue, _ depth: Int) -> JSONValue? {
        edit.editsText ? nil : try? Self.edit(value, by: edit, depth: depth)
    }

    private static func edit(
        _ base: JSONValue?, by operation: Operation, _ depth: Int
    ) throws(DiffError) -> JSONValue {
        guard let base else { throw DiffError(.missingKey) }
        return try edit(base, by: operation, depth: depth)
    }

    /// Transforms two edits of one value.
    private static func merge(
        _ a: Operation, over b: Operation, base: JSONValue?, rule: TransformRule, depth: Int,
        _ budget: inout StepBudget
    ) throws(DiffError) -> Operation? {
        guard let base else { throw DiffError(.missingKey) }
        switch (a, b, base) {
        case (.increment, .increment, .number):
            return a
        case (.object(let mine), .object(let theirs), .object(let object)):
            let nested = try transform(
                mine, over: theirs, base: object, rule: rule, depth: depth + 1, &budget)
            return nested.isEmpty ? nil : .object(nested)
        case (.text(let mine), .text(let theirs), .string(let text)):
            return try mergeTexts(mine, over: theirs, base: text, rule: rule, &budget).map { .text($0) }
        case (.list(let mine), _, .array(let list)):
            let theirs = try listDelta(b, base: list)
            let moved = try ListDelta.transform(
                ListDelta(mine), over: theirs, base: list, rule: rule, depth: depth + 1, &budget)
            return moved.isIdentity ? nil : .list(moved.diff)
        case (.listText(let mine), _, .array(let list)):
            let theirs = try listDelta(b, base: list)
            let moved = try ListDelta.transform(
                ListText.listDelta(mine, base: list), over: theirs, base: list, rule: rule, depth: depth + 1, &budget)
            let after = try theirs.apply(to: list, depth: depth + 1)
            return moved.isIdentity ? nil : .listText(try ListText.delta(moved, base: after))
        default:
            throw DiffError(.wrongType)
        }
    }

    private static func listDelta(_ operation: Operation, base: [JSONValue]) throws(DiffError) -> ListDelta {
        switch operation {
        case .list(let diff): return ListDelta(diff)
        case .listText(let delta): return try ListText.listDelta(delta, base: base)
        default: throw DiffError(.wrongType)
        }
    }

    private static func mergeTexts(
        _ a: TextDelta, over b: TextDelta, base: String, rule: TransformRule, _ budget: inout StepBudget
    ) throws(DiffError) -> TextDelta? {
        let tie: TieBreak = rule.isLater ? .after : .before
        do throws(DeltaError) {
            // A text without pairs needs no conversion to UTF-16, because no pair can be cut.
            if rule != .reference, !base.withBytes(UTF16Text.hasPairs) {
                let moved = try TextDelta.transform(a, over: b, tie: tie)
                return moved.isIdentity ? nil : moved
            }
            let units = UTF16Text.units(of: base)
            let moved = try TextDelta.transform(
                a.keepingPairsWhole(in: units), over: b.keepingPairsWhole(in: units), tie: tie)
            if rule == .reference, let fuzzy = try TextDelta.transformFuzzily(a, over: b, base: units, &budget) {
                let source = try b.apply(to: units)
                let (merged, exact) = (try fuzzy.apply(to: source), try moved.apply(to: source))
                // The result of the reference is used unless it loses text that the exact merge keeps.
                if TextDelta.keepsText(merged, exact: exact, a, b) { return fuzzy.isIdentity ? nil : fuzzy }
            }
            return moved.isIdentity ? nil : moved
        } catch { throw DiffError(.delta(error)) }
    }
}

extension Operation {
    /// Whether the operation contains a text delta at any depth.
    var editsText: Bool {
        switch self {
        case .text, .listText: true
        case .object(let diff): diff.operations.contains { $0.operation.editsText }
        case .list(let diff): diff.operations.contains { $0.operation.editsText }
        case .insert, .remove, .replace, .increment: false
        }
    }
}
