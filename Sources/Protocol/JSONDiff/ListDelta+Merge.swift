/// Reads a list delta element by element; behind its end everything is kept.
private struct ListCursor {
    private let steps: [ListDelta.Step]
    private var place = 0
    private var used = 0

    init(_ delta: ListDelta) { steps = delta.steps }

    var isAtEnd: Bool { place == steps.count }

    /// The insertion at hand, which is used by this.
    mutating func takeInsertion() -> JSONValue? {
        guard place < steps.count, case .insert(let value) = steps[place] else { return nil }
        place += 1
        return value
    }

    /// The deletion at hand, which is used by this.
    mutating func takeDeletion() -> Bool {
        guard place < steps.count, case .delete = steps[place] else { return false }
        place += 1
        return true
    }

    /// What happens to the next element of the source (`.retain(1)`, `.delete` or `.edit`).
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

    /// How many elements are kept from here on without a break; `.max` behind the end.
    var kept: Int {
        guard place < steps.count else { return .max }
        guard case .retain(let count) = steps[place] else { return 0 }
        return count - used
    }

    mutating func useKept(_ count: Int) {
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
    /// Two insertions at one place are both kept, the later arrival in front; an edit of an element that the other
    /// deleted brings it back if the edit arrived later.
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
                own.useKept(both)
                other.useKept(both)
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

    /// Brings the insertions of both sides at one place into order.
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

    /// One delta that does what `first` and then `second` do.
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
                before.useKept(both)
                after.useKept(both)
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

    /// `first` keeps or edits the element.
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
