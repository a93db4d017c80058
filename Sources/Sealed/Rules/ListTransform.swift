import ThicketProtocol

/// Transforms an edit of a list over another one (wire contract 7.5): by index, without losses.
enum ListTransform {
    /// - Throws: `DiffError` when the two cannot have been made from one list.
    static func transform(
        _ mine: [Edit.ListStep], over theirs: [Edit.ListStep], _ order: TransformOrder
    ) throws(DiffError) -> [Edit.ListStep] {
        var result = [Edit.ListStep]()
        var own = Cursor(steps: mine)
        var other = Cursor(steps: theirs)
        while !own.isAtEnd {
            meet(&own, &other, order, &result)
            let both = min(own.kept, other.kept)
            if both == .max { break }
            if both > 0 {
                result.add(.retain(both))
                own.skipKept(both)
                other.skipKept(both)
                continue
            }
            if own.isAtEnd { break }
            if let step = try transform(own.takeElement(), over: other.takeElement(), order) {
                result.add(step)
            }
        }
        if case .retain? = result.last { result.removeLast() }
        return result
    }

    /// Orders the insertions of both sides at one place.
    private static func meet(
        _ own: inout Cursor, _ other: inout Cursor, _ order: TransformOrder, _ result: inout [Edit.ListStep]
    ) {
        if order.isFirst { while let step = own.takeInsertion() { result.append(step) } }
        while other.takeInsertion() != nil { result.add(.retain(1)) }
        if !order.isFirst { while let step = own.takeInsertion() { result.append(step) } }
    }

    /// The transformed step of one element; nil when the element is deleted and stays so.
    private static func transform(
        _ mine: Edit.ListStep, over theirs: Edit.ListStep, _ order: TransformOrder
    ) throws(DiffError) -> Edit.ListStep? {
        switch (mine, theirs) {
        case (.retain, .delete), (.delete, .delete):
            return nil
        case (.delete, .edit):
            return order.isLater ? .delete(Edit.Context(isContested: true)) : .retain(1)
        case (.edit(let edit), .delete(let context)):
            guard order.isLater else { return nil }
            guard let old = context.old, let value = try edit.apply(to: old).value else {
                throw DiffError(.missingKey)
            }
            return .insert(value, Edit.Context(isContested: true))
        case (.edit(let edit), .edit(let before)):
            return try edit.transformed(over: before, order).map { .edit($0) } ?? .retain(1)
        default:
            return mine
        }
    }

    /// Reads steps element by element; elements after the last step are kept.
    private struct Cursor {
        let steps: [Edit.ListStep]
        private var place = 0
        private var used = 0

        init(steps: [Edit.ListStep]) { self.steps = steps }

        var isAtEnd: Bool { place == steps.count }

        mutating func takeInsertion() -> Edit.ListStep? {
            guard place < steps.count, case .insert = steps[place] else { return nil }
            place += 1
            return steps[place - 1]
        }

        /// The step of the next element: `.retain(1)`, `.delete` or `.edit`.
        mutating func takeElement() -> Edit.ListStep {
            guard place < steps.count else { return .retain(1) }
            guard case .retain = steps[place] else {
                place += 1
                return steps[place - 1]
            }
            skipKept(1)
            return .retain(1)
        }

        /// Number of elements kept from here on without interruption; `.max` after the last step.
        var kept: Int {
            guard place < steps.count else { return .max }
            guard case .retain(let count) = steps[place] else { return 0 }
            return count - used
        }

        mutating func skipKept(_ count: Int) {
            guard place < steps.count, case .retain(let all) = steps[place] else { return }
            used += count
            guard used == all else { return }
            place += 1
            used = 0
        }
    }
}
