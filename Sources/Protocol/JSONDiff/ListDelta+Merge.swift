/// Reads a list delta element by element; all elements after its end are kept.
private struct ListCursor {
    private let steps: [ListDelta.Step]
    private var place = 0
    private var used = 0

    init(_ delta: ListDelta) { steps = delta.steps }

    var isAtEnd: Bool { place == steps.count }

    /// Takes the insertion at this place; nil if the next step is another one.
    mutating func takeInsertion() -> JSONValue? {
        guard place < steps.count, case .insert(let value) = steps[place] else { return nil }
        place += 1
        return value
    }

    /// Takes the deletion at this place; false if the next step is another one.
    mutating func takeDeletion() -> Bool {
        guard place < steps.count, case .delete = steps[place] else { return false }
        place += 1
        return true
    }

    /// Takes the step of the next element of the source (`.retain(1)`, `.delete` or `.edit`).
    mutating func takeElement() -> ListDelta.Step {
        guard place < steps.count else { return .retain(1) }
        guard case .retain(let count) = steps[place] else {
            place += 1
            return steps[place - 1]
        }
        used += 1
        if used == count {
            place += 1
            used = 0
        }
        return .retain(1)
    }

    /// Number of elements kept in a row from here; `.max` after the end.
    var kept: Int {
        guard place < steps.count else { return .max }
        guard case .retain(let count) = steps[place] else { return 0 }
        return count - used
    }

    mutating func skipKept(_ count: Int) {
        guard place < steps.count, case .retain(let all) = steps[place] else { return }
        used += count
        if used == all {
            place += 1
            used = 0
        }
    }
}

extension ListDelta {
    /// Adjusts `a` so that it can follow `b`, when both were made from the list `base` (wire contract 7.5).
    ///
    /// Two insertions at one place are both kept, that of the later arrival first. An edit of an element that the other
    /// side deleted restores the element if the edit arrived later.
    static func transform(
        _ a: ListDelta, over b: ListDelta, base: [JSONValue], rule: TransformRule, depth: Int,
        _ budget: inout StepBudget
    ) throws(DiffError) -> ListDelta {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var result = ListDelta()
        var own = ListCursor(a)
        var other = ListCursor(b)
        var place = 0
        while !own.isAtEnd {
            result.meet(&own, &other, ownFirst: rule.isLater)
            let both = min(own.kept, other.kept)
            if both == .max { break }
            if both > 0 {
                result.retain(both)
                own.skipKept(both)
                other.skipKept(both)
                place += both
                continue
            }
            if own.isAtEnd { break }
            guard place < base.count else { throw DiffError(.badIndex, path: [String(place)]) }
            let (mine, theirs) = (own.takeElement(), other.takeElement())
            do throws(DiffError) {
                let step = try transform(mine, over: theirs, base: base[place], rule, depth, &budget)
                if let step { result.append(step) }
            } catch { throw error.inside(String(place)) }
            place += 1
        }
        return result
    }

    /// Orders the insertions of both sides at one place.
    private mutating func meet(_ own: inout ListCursor, _ other: inout ListCursor, ownFirst: Bool) {
        if ownFirst { while let value = own.takeInsertion() { append(.insert(value)) } }
        while other.takeInsertion() != nil { retain(1) }
        if !ownFirst { while let value = own.takeInsertion() { append(.insert(value)) } }
    }

    private static func transform(
        _ mine: Step, over theirs: Step, base: JSONValue, _ rule: TransformRule, _ depth: Int,
        _ budget: inout StepBudget
    ) throws(DiffError) -> Step? {
        switch (mine, theirs) {
        case (.retain, .delete), (.delete, .delete):
            return nil
        case (.delete, .edit):
            return rule.isLater ? .delete : .retain(1)
        case (.edit(let operation), .delete):
            return rule.isLater ? .insert(try JSONDiff.edit(base, by: operation, depth: depth)) : nil
        case (.edit(let operation), .edit(let before)):
            let changed = try JSONDiff.transform(
                operation, over: before, base: base, rule: rule, depth: depth, &budget)
            return changed.map { .edit($0) } ?? .retain(1)
        default:
            return mine
        }
    }

    /// One delta that has the effect of `first` and then `second`.
    static func compose(_ first: ListDelta, _ second: ListDelta, depth: Int) throws(DiffError) -> ListDelta {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var result = ListDelta()
        var before = ListCursor(first)
        var after = ListCursor(second)
        var followsInsertion = false
        while !after.isAtEnd {
            if let value = after.takeInsertion() {
                if !followsInsertion { while before.takeDeletion() { result.append(.delete) } }
                result.append(.insert(value))
                continue
            }
            while before.takeDeletion() {
                result.append(.delete)
                followsInsertion = false
            }
            if let value = before.takeInsertion() {
                followsInsertion = true
                if let step = try compose(inserted: value, after.takeElement(), depth) { result.append(step) }
                continue
            }
            followsInsertion = false
            let both = min(before.kept, after.kept)
            if both > 0, both < .max {
                result.retain(both)
                before.skipKept(both)
                after.skipKept(both)
            } else {
                result.append(try compose(before.takeElement(), after.takeElement(), depth))
            }
        }
        while !before.isAtEnd {
            if let value = before.takeInsertion() {
                result.append(.insert(value))
            } else {
                result.append(before.takeElement())
            }
        }
        return result
    }

    private static func compose(inserted value: JSONValue, _ step: Step, _ depth: Int) throws(DiffError) -> Step? {
        switch step {
        case .delete: nil
        case .edit(let operation): .insert(try JSONDiff.edit(value, by: operation, depth: depth))
        case .retain, .insert: .insert(value)
        }
    }

    /// Composes two steps on an element that `first` keeps or edits.
    private static func compose(_ first: Step, _ second: Step, _ depth: Int) throws(DiffError) -> Step {
        switch (first, second) {
        case (.edit(let before), .edit(let after)):
            let both = try JSONDiff.compose(before, after, depth: depth)
            return both.map { .edit($0) } ?? .retain(1)
        case (_, .retain): return first
        default: return second
        }
    }
}
