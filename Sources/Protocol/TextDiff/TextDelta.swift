/// One step of a text delta. Counts are UTF-16 code units, more than 0.
public enum TextOperation: Sendable, Equatable {
    /// `=n`: keep n units of the source.
    case retain(Int)
    /// `-n`: delete n units of the source. `-0`, only right before an insertion: text that somebody has deleted stood
    /// between what is on the left and the insertion.
    case delete(Int)
    /// `+text`: insert, never empty.
    case insert([UInt16])
}

/// An edit of a text, unit by unit over the whole of it (wire contract 7.2).
///
/// Always in normal form: no empty step but the mark `-0`, no two steps of one kind in a row. The order of a deletion
/// and an insertion beside it is kept: `-3 +x` puts x behind the deleted text and `+x -3` before it, which shows as
/// soon as somebody else has typed inside the deleted text.
public struct TextDelta: Sendable, Equatable {
    /// The steps in the order of the text.
    public private(set) var operations: [TextOperation] = []
    /// Length of the texts this fits, in UTF-16 code units.
    public private(set) var sourceLength: Int = 0
    /// Length of the texts this makes, in UTF-16 code units.
    public private(set) var targetLength: Int = 0

    /// The delta of an empty text that stays empty.
    public init() {}

    /// Room for a parser's steps, at most `stepsMax`: what is empty in a delta makes no step.
    init(stepsMax: Int) { operations.reserveCapacity(stepsMax) }

    /// Builds the normal form of `operations`; steps with a count of 0 or less vanish.
    public init(_ operations: some Sequence<TextOperation>) {
        for operation in operations {
            switch operation {
            case .retain(let count): retain(count)
            case .delete(let count): delete(count)
            case .insert(let units): insert(units)
            }
        }
    }

    /// The delta that keeps a text of `length` units as it is.
    public static func identity(length: Int) -> TextDelta { TextDelta(CollectionOfOne(.retain(length))) }

    /// Whether every text stays as it is.
    public var isIdentity: Bool {
        switch operations.count {
        case 0: true
        case 1: if case .retain = operations[0] { true } else { false }
        default: false
        }
    }

    /// Adds "keep `count` units" at the end.
    public mutating func retain(_ count: Int) {
        guard count > 0 else { return }
        sourceLength += count
        targetLength += count
        if case .retain(let before)? = operations.last {
            operations[operations.count - 1] = .retain(before + count)
        } else {
            operations.append(.retain(count))
        }
    }

    /// Adds "delete `count` units" at the end.
    public mutating func delete(_ count: Int) {
        guard count > 0 else { return }
        sourceLength += count
        if case .delete(let before)? = operations.last {
            operations[operations.count - 1] = .delete(before + count)
        } else {
            operations.append(.delete(count))
        }
    }

    /// Adds "insert `units`" at the end.
    public mutating func insert(_ units: [UInt16]) {
        guard !units.isEmpty else { return }
        targetLength += units.count
        guard case .insert(var before)? = operations.last else {
            operations.append(.insert(units))
            return
        }
        operations[operations.count - 1] = .retain(0)
        before.append(contentsOf: units)
        operations[operations.count - 1] = .insert(before)
    }

    /// Adds "insert `units`" at the end, marked with `-0` when deleted text stood on their left.
    ///
    /// Set the mark only where it is known: for an edit made in an older view, whose left neighbour is gone from this
    /// one.
    package mutating func insert(_ units: [UInt16], isBehindGone: Bool) {
        guard isBehindGone, !units.isEmpty else { return insert(units) }
        if case .insert? = operations.last, operations.count > 1, operations[operations.count - 2] == .delete(0) {
            return insert(units)
        }
        operations.append(.delete(0))
        operations.append(.insert(units))
        targetLength += units.count
    }

    /// Adds "insert `units`" at the end.
    mutating func insert(_ units: ArraySlice<UInt16>) {
        guard !units.isEmpty else { return }
        insert(Array(units))
    }
}
