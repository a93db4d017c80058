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
    private var place = 0
    private var used = 0

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
    /// What stands on the left of an insertion, nearest first: two at one place keep this order.
    enum Rank: CaseIterable {
        /// The text that both deltas show.
        case atText
        /// Text that the other delta deletes.
        case atGone
        /// Text that was deleted before (the mark `-0`), and then what both show.
        case behindGap
        /// Text that was deleted before, and then text that the other delta deletes.
        case behindGapAtGone
    }

    let units: [UInt16]
    let rank: Rank
}

extension Cursor {
    /// Takes all insertions at this place.
    ///
    /// - Parameter isAtGone: the other delta deletes what stood on the left.
    fileprivate mutating func takeInsertions(isAtGone: Bool) -> [Insertion] {
        var found = [Insertion]()
        var rank: Insertion.Rank = isAtGone ? .atGone : .atText
        while true {
            switch operation {
            case .insert(let units):
                found.append(Insertion(units: units, rank: rank))
                use(units.count)
            case .delete(0):
                rank = isAtGone ? .behindGapAtGone : .behindGap
                use(0)
            default: return found
            }
        }
    }
}

extension Cursor {
    /// Who comes first among insertions that stand at one place, behind which both cursors are now: what replaces the
    /// text on the right gives way to what is typed in front of that text.
    fileprivate func order(to other: Cursor, _ tie: TieBreak) -> TieBreak {
        switch (isAtDeletion, other.isAtDeletion) {
        case (true, false): .after
        case (false, true): .before
        default: tie
        }
    }

    private var isAtDeletion: Bool { if case .delete? = operation { true } else { false } }
}

extension TextDelta {
    /// One delta that does what `first` and then `second` do, with every insertion at its exact place.
    ///
    /// An insertion by `second` where `first` has deleted stands before the deleted text, right behind what is on its
    /// left: there what others type behind the deleted text does not meet it.
    /// - Throws: `DeltaError.lengthMismatch` when `second` is not for the texts that `first` makes.
    public static func compose(_ first: TextDelta, _ second: TextDelta) throws(DeltaError) -> TextDelta {
        guard first.targetLength == second.sourceLength else {
            throw .lengthMismatch(delta: second.sourceLength, text: first.targetLength)
        }
        var result = TextDelta()
        var cursor = Cursor(first)
        // In each delta: a mark `-0` was passed, and the insertion that it marks was not.
        var firstMarks = false
        var secondMarks = false
        for operation in second.operations {
            switch operation {
            case .retain(let count): result.carry(&cursor, count, keeping: true, &firstMarks)
            case .delete(let count): result.carry(&cursor, count, keeping: false, &firstMarks)
            case .insert(let units): result.insert(units, isBehindGone: secondMarks)
            }
            secondMarks = operation == .delete(0)
        }
        result.carryDeletion(&cursor)
        return result
    }

    /// Moves over `count` units of what the first delta makes.
    private mutating func carry(_ cursor: inout Cursor, _ count: Int, keeping: Bool, _ isMarked: inout Bool) {
        var left = count
        while left > 0, let operation = cursor.operation {
            switch operation {
            case .delete(0):
                isMarked = true
                cursor.use(0)
            case .delete:
                carryDeletion(&cursor)
                isMarked = false
            case .retain:
                let part = min(left, cursor.left)
                if keeping { retain(part) } else { delete(part) }
                cursor.use(part)
                left -= part
                isMarked = false
            case .insert(let units):
                let part = min(left, cursor.left)
                if keeping {
                    insert(Array(cursor.inserted(units, part)), isBehindGone: isMarked)
                    isMarked = false
                }
                cursor.use(part)
                left -= part
            }
        }
    }

    private mutating func carryDeletion(_ cursor: inout Cursor) {
        guard case .delete? = cursor.operation, cursor.left > 0 else { return }
        let count = cursor.left
        delete(count)
        cursor.use(count)
    }

    /// Adjusts `a` so that it can follow `b`, when both were made from the same text.
    ///
    /// Positions move by what `b` inserted and deleted before them; what both deleted is deleted once; nothing that
    /// either inserted is lost. For every pair: `b` then `transform(a, over: b, tie: t)` makes the same text as `a`
    /// then `transform(b, over: a, tie: t.opposite)`.
    ///
    /// An insertion whose left neighbour the other side has deleted is marked (`-0`): it stands behind that gap, and so
    /// behind what the other side types into the gap later. What is left of a tie: both stand equally near to the text
    /// on the left, and both or neither replaces the text on the right.
    /// - Throws: `DeltaError.lengthMismatch` when the two are for texts of different lengths.
    public static func transform(
        _ a: TextDelta, over b: TextDelta, tie: TieBreak
    ) throws(DeltaError) -> TextDelta {
        guard a.sourceLength == b.sourceLength else {
            throw .lengthMismatch(delta: a.sourceLength, text: b.sourceLength)
        }
        var result = TextDelta()
        var own = Cursor(a)
        var other = Cursor(b)
        var ownDeleted = false
        var otherDeleted = false
        while true {
            let mine = own.takeInsertions(isAtGone: otherDeleted)
            let theirs = other.takeInsertions(isAtGone: ownDeleted)
            result.meet(mine, theirs, own.order(to: other, tie))
            let part = min(own.left, other.left)
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

    /// Puts the insertions of one place in order: the nearer to the text on the left, the earlier.
    private mutating func meet(_ own: [Insertion], _ other: [Insertion], _ tie: TieBreak) {
        guard !own.isEmpty || !other.isEmpty else { return }
        for rank in Insertion.Rank.allCases {
            let passed = other.reduce(0) { $0 + ($1.rank == rank ? $1.units.count : 0) }
            if tie == .after { retain(passed) }
            for insertion in own where insertion.rank == rank {
                insert(insertion.units, isBehindGone: rank != .atText)
            }
            if tie == .before { retain(passed) }
        }
    }
}
