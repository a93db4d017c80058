/// The order of two insertions at one place.
public enum TieBreak: Sendable, Hashable, CaseIterable {
    /// The transformed edit arrived later: its insertion goes after the other one.
    case after
    /// The transformed edit arrived earlier: its insertion stays before the other one.
    case before

    /// The same order from the other edit's side.
    public var opposite: TieBreak { self == .after ? .before : .after }
}

/// Reads a delta in parts of any length.
private struct Cursor {
    private let operations: [TextOperation]
    private var place = 0
    private var used = 0

    init(_ delta: TextDelta) { operations = delta.operations }

    /// The current step, or nil at the end.
    var operation: TextOperation? { place < operations.count ? operations[place] : nil }

    /// Units of the current step that are not used yet; 0 at the end.
    var left: Int {
        switch operation {
        case .retain(let count), .delete(let count): count - used
        case .insert(let units): units.count - used
        case nil: 0
        }
    }

    /// Skips `count` units (at most `left`) of the current step.
    mutating func skip(_ count: Int) {
        if count == left {
            place += 1
            used = 0
        } else {
            used += count
        }
    }

    /// The part of the current insertion that the next `count` units cover.
    func inserted(_ units: [UInt16], _ count: Int) -> ArraySlice<UInt16> { units[used..<(used + count)] }
}

/// An insertion at the current place of both deltas.
private struct Insertion {
    /// What is to the left of an insertion. Insertions at one place are ordered by it: the nearer to kept text, the
    /// earlier.
    enum Rank: CaseIterable {
        /// Text that both deltas keep.
        case atText
        /// Text that the other delta deletes.
        case atGone
        /// A gap where text was deleted before (the mark `-0`), and left of the gap text that both deltas keep.
        case behindGap
        /// A gap where text was deleted before, and left of the gap text that the other delta deletes.
        case behindGapAtGone
    }

    let units: [UInt16]
    let rank: Rank
}

extension Cursor {
    /// Takes all insertions at this place.
    ///
    /// - Parameter isAtGone: whether the other delta deletes the text on the left.
    fileprivate mutating func takeInsertions(isAtGone: Bool) -> [Insertion] {
        var found = [Insertion]()
        var rank: Insertion.Rank = isAtGone ? .atGone : .atText
        while true {
            switch operation {
            case .insert(let units):
                found.append(Insertion(units: units, rank: rank))
                skip(units.count)
            case .delete(0):
                rank = isAtGone ? .behindGapAtGone : .behindGap
                skip(0)
            default: return found
            }
        }
    }
}

extension Cursor {
    /// The order of insertions at one place, after which both cursors are now: an insertion that replaces the text on
    /// the right goes after an insertion that is typed before that text.
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
    /// One delta that has the effect of `first` and then `second`, with every insertion at its exact place.
    ///
    /// An insertion by `second` where `first` has deleted text is placed before the deleted text, directly after the
    /// text on its left. There it does not tie with an insertion of another client after the deleted text.
    ///
    /// - Throws: `DeltaError.lengthMismatch` when `second` is not for the texts that `first` makes.
    public static func compose(_ first: TextDelta, _ second: TextDelta) throws(DeltaError) -> TextDelta {
        guard first.targetLength == second.sourceLength else {
            throw .lengthMismatch(delta: second.sourceLength, text: first.targetLength)
        }
        var result = TextDelta()
        var cursor = Cursor(first)
        // For each delta: a mark `-0` was read, and the insertion that it marks was not.
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

    /// Moves over `count` units of the first delta's result.
    private mutating func carry(_ cursor: inout Cursor, _ count: Int, keeping: Bool, _ isMarked: inout Bool) {
        var left = count
        while left > 0, let operation = cursor.operation {
            switch operation {
            case .delete(0):
                isMarked = true
                cursor.skip(0)
            case .delete:
                carryDeletion(&cursor)
                isMarked = false
            case .retain:
                let part = min(left, cursor.left)
                if keeping { retain(part) } else { delete(part) }
                cursor.skip(part)
                left -= part
                isMarked = false
            case .insert(let units):
                let part = min(left, cursor.left)
                if keeping {
                    insert(Array(cursor.inserted(units, part)), isBehindGone: isMarked)
                    isMarked = false
                }
                cursor.skip(part)
                left -= part
            }
        }
    }

    private mutating func carryDeletion(_ cursor: inout Cursor) {
        guard case .delete? = cursor.operation, cursor.left > 0 else { return }
        let count = cursor.left
        delete(count)
        cursor.skip(count)
    }

    /// Adjusts `a` so that it can follow `b`, when both were made from the same text.
    ///
    /// Positions move by what `b` inserted and deleted before them; text that both deleted is deleted once; no
    /// insertion is lost. For every pair, `b` then `transform(a, over: b, tie: t)` makes the same text as `a` then
    /// `transform(b, over: a, tie: t.opposite)`.
    ///
    /// An insertion whose left neighbour the other side has deleted is marked (`-0`): it goes after that gap, and so
    /// after anything that the other side types into the gap later. The tie decides only when both insertions are
    /// equally near to the text on the left, and both or neither replace the text on the right.
    ///
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
            own.skip(part)
            other.skip(part)
        }
        return result
    }

    /// Orders the insertions at one place: the nearer to the text on the left, the earlier.
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
