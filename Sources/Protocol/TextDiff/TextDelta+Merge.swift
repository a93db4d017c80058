/// Which of two insertions at one place comes first.
public enum TieBreak: Sendable, Hashable, CaseIterable {
    /// The transformed edit arrived later: its insertion goes behind the other one.
    case after
    /// The transformed edit arrived earlier: its insertion stays in front.
    case before

    /// The other side's view of the same meeting.
    public var opposite: TieBreak { self == .after ? .before : .after }
}

/// Reads a delta in pieces of any length.
private struct Cursor {
    private let operations: [TextOperation]
    private var place: Int = 0
    private var used: Int = 0

    init(_ delta: TextDelta) { operations = delta.operations }

    /// The step at hand, or nil at the end.
    var operation: TextOperation? { place < operations.count ? operations[place] : nil }

    /// Units of the step at hand that are not used yet; 0 at the end.
    var left: Int {
        switch operation {
        case .retain(let count), .delete(let count): count - used
        case .insert(let units): units.count - used
        case nil: 0
        }
    }

    /// Uses `count` units (at most `left`) of the step at hand.
    mutating func use(_ count: Int) {
        if count == left {
            place += 1
            used = 0
        } else {
            used += count
        }
    }

    /// The part of the insertion at hand that the next `count` units cover.
    func inserted(_ units: [UInt16], _ count: Int) -> ArraySlice<UInt16> { units[used..<(used + count)] }
}

/// Something inserted at the place where two deltas meet.
private struct Insertion {
    let units: [UInt16]
    /// Deleted text stood between the text on the left and this.
    let isBehindGone: Bool
}

extension Cursor {
    /// Takes all insertions at this place.
    ///
    /// - Parameter isBehindGone: the other delta deletes what stood on the left.
    fileprivate mutating func takeInsertions(isBehindGone: Bool) -> [Insertion] {
        var found: [Insertion] = []
        var isBehindGone: Bool = isBehindGone
        while true {
            switch operation {
            case .insert(let units):
                found.append(Insertion(units: units, isBehindGone: isBehindGone))
                use(units.count)
            case .delete(0):
                isBehindGone = true
                use(0)
            default: return found
            }
        }
    }
}

extension TextDelta {
    /// What `compose` remembers from step to step of the first delta.
    private struct Trail {
        /// The last thing passed was inserted by the first delta.
        var followsInsertion: Bool = false
        /// The mark `-0` was passed, and what it marks was not.
        var isBehindGone: Bool = false
    }

    /// One delta that does what `first` and then `second` do, with every insertion at its exact place.
    ///
    /// An insertion by `second` where `first` has deleted stands behind the deleted text, except directly behind text that
    /// `first` inserted: there it stays beside that text, as somebody goes on typing.
    /// - Throws: `DeltaError.lengthMismatch` when `second` is not for the texts that `first` makes.
    public static func compose(_ first: TextDelta, _ second: TextDelta) throws(DeltaError) -> TextDelta {
        guard first.targetLength == second.sourceLength else {
            throw .lengthMismatch(delta: second.sourceLength, text: first.targetLength)
        }
        var result: TextDelta = .init()
        var cursor: Cursor = .init(first)
        var trail: Trail = Trail()
        var isBehindGone: Bool = false
        for operation: TextOperation in second.operations {
            switch operation {
            case .retain(let count): result.carry(&cursor, count, keeping: true, &trail)
            case .delete(let count): result.carry(&cursor, count, keeping: false, &trail)
            case .insert(let units):
                if !trail.followsInsertion { result.carryDeletion(&cursor) }
                result.insert(units, isBehindGone: isBehindGone)
            }
            isBehindGone = operation == .delete(0)
        }
        result.carryDeletion(&cursor)
        return result
    }

    /// Moves over `count` units of what the first delta makes.
    private mutating func carry(_ cursor: inout Cursor, _ count: Int, keeping: Bool, _ trail: inout Trail) {
        var left: Int = count
        while left > 0, let operation: TextOperation = cursor.operation {
            switch operation {
            case .delete(0):
                trail.isBehindGone = true
                cursor.use(0)
            case .delete:
                carryDeletion(&cursor)
                trail = Trail()
            case .retain:
                let part: Int = min(left, cursor.left)
                if keeping { retain(part) } else { delete(part) }
                cursor.use(part)
                left -= part
                trail = Trail()
            case .insert(let units):
                let part: Int = min(left, cursor.left)
                if keeping {
                    insert(Array(cursor.inserted(units, part)), isBehindGone: trail.isBehindGone)
                    trail.isBehindGone = false
                }
                cursor.use(part)
                left -= part
                trail.followsInsertion = true
            }
        }
    }

    private mutating func carryDeletion(_ cursor: inout Cursor) {
        guard case .delete? = cursor.operation, cursor.left > 0 else { return }
        let count: Int = cursor.left
        delete(count)
        cursor.use(count)
    }

    /// Adjusts `a` so that it can follow `b`, when both were made from the same text.
    ///
    /// Positions move by what `b` inserted and deleted before them; what both deleted is deleted once; nothing that either
    /// inserted is lost. For every pair: `b` then `transform(a, over: b, tie: t)` makes the same text as `a` then
    /// `transform(b, over: a, tie: t.opposite)`.
    ///
    /// An insertion whose left neighbour the other side has deleted is marked (`-0`): it stands behind that gap, and so
    /// behind what the other side types into the gap later. Only two insertions on one side of a gap are a tie.
    /// - Throws: `DeltaError.lengthMismatch` when the two are for texts of different lengths.
    public static func transform(
        _ a: TextDelta, over b: TextDelta, tie: TieBreak
    ) throws(DeltaError) -> TextDelta {
        guard a.sourceLength == b.sourceLength else {
            throw .lengthMismatch(delta: a.sourceLength, text: b.sourceLength)
        }
        var result: TextDelta = .init()
        var own: Cursor = .init(a)
        var other: Cursor = .init(b)
        var ownDeleted: Bool = false
        var otherDeleted: Bool = false
        while true {
            result.meet(
                own.takeInsertions(isBehindGone: otherDeleted), other.takeInsertions(isBehindGone: ownDeleted), tie)
            let part: Int = min(own.left, other.left)
            guard part > 0 else { break }
            ownDeleted = false
            otherDeleted = false
            if case .delete? = own.operation { ownDeleted = true }
            if case .delete? = other.operation { otherDeleted = true }
            if !otherDeleted { if ownDeleted { result.delete(part) } else { result.retain(part) } }
            own.use(part)
            other.use(part)
        }
        return result
    }

    /// Puts the insertions of one place in order: first those before the gap, then those behind it.
    private mutating func meet(_ own: [Insertion], _ other: [Insertion], _ tie: TieBreak) {
        guard !own.isEmpty || !other.isEmpty else { return }
        for isBehindGone: Bool in [false, true] {
            let passed: Int = other.reduce(0) { $0 + ($1.isBehindGone == isBehindGone ? $1.units.count : 0) }
            if tie == .after { retain(passed) }
            for insertion: Insertion in own where insertion.isBehindGone == isBehindGone {
                insert(insertion.units, isBehindGone: isBehindGone)
            }
            if tie == .before { retain(passed) }
        }
    }
}
