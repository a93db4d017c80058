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

extension TextDelta {
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
        var followsInsertion: Bool = false
        for operation: TextOperation in second.operations {
            switch operation {
            case .retain(let count):
                result.carry(&cursor, count, keeping: true, &followsInsertion)
            case .delete(let count):
                result.carry(&cursor, count, keeping: false, &followsInsertion)
            case .insert(let units):
                if !followsInsertion { result.carryDeletion(&cursor) }
                result.insert(units)
            }
        }
        result.carryDeletion(&cursor)
        return result
    }

    /// Moves over `count` units of what the first delta makes.
    private mutating func carry(
        _ cursor: inout Cursor, _ count: Int, keeping: Bool, _ followsInsertion: inout Bool
    ) {
        var left: Int = count
        while left > 0, let operation: TextOperation = cursor.operation {
            switch operation {
            case .delete:
                carryDeletion(&cursor)
                followsInsertion = false
            case .retain:
                let part: Int = min(left, cursor.left)
                if keeping { retain(part) } else { delete(part) }
                cursor.use(part)
                left -= part
                followsInsertion = false
            case .insert(let units):
                let part: Int = min(left, cursor.left)
                if keeping { insert(cursor.inserted(units, part)) }
                cursor.use(part)
                left -= part
                followsInsertion = true
            }
        }
    }

    private mutating func carryDeletion(_ cursor: inout Cursor) {
        guard case .delete? = cursor.operation else { return }
        let count: Int = cursor.left
        delete(count)
        cursor.use(count)
    }

    /// Adjusts `a` so that it can follow `b`, when both were made from the same text.
    ///
    /// Positions move by what `b` inserted and deleted before them; what both deleted is deleted once; nothing that either
    /// inserted is lost. For every pair: `b` then `transform(a, over: b, tie: t)` makes the same text as `a` then
    /// `transform(b, over: a, tie: t.opposite)`.
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
        while true {
            if tie == .before { result.takeInsertion(&own) }
            result.passInsertion(&other)
            if tie == .after { result.takeInsertion(&own) }
            let part: Int = min(own.left, other.left)
            guard part > 0 else { break }
            switch (own.operation, other.operation) {
            case (.retain, .retain): result.retain(part)
            case (.delete, .retain): result.delete(part)
            default: break
            }
            own.use(part)
            other.use(part)
        }
        return result
    }

    private mutating func takeInsertion(_ cursor: inout Cursor) {
        guard case .insert(let units)? = cursor.operation else { return }
        insert(units)
        cursor.use(units.count)
    }

    private mutating func passInsertion(_ cursor: inout Cursor) {
        guard case .insert(let units)? = cursor.operation else { return }
        retain(units.count)
        cursor.use(units.count)
    }
}
