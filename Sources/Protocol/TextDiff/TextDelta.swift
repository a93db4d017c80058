/// One step of a text delta. Counts are UTF-16 code units, more than 0.
public enum TextOperation: Sendable, Equatable {
    /// `=n`: keep n units of the source.
    case retain(Int)
    /// `-n`: delete n units of the source. `-0` occurs only directly before an insertion: between it and the text on
    /// its left was text that another edit has deleted.
    case delete(Int)
    /// `+text`: insert the units, never empty.
    case insert([UInt16])
}

/// An edit of a text, as steps that cover all of it (wire contract 7.2).
///
/// Always in normal form: no empty step but the mark `-0`, no two adjacent steps of one kind. The order of a deletion
/// and an adjacent insertion is kept: `-3 +x` puts x after the deleted text and `+x -3` before it, which matters when
/// another client has typed inside the deleted text.
public struct TextDelta: Sendable, Equatable {
    /// The steps in the order of the text.
    public private(set) var operations: [TextOperation] = []
    /// Length of the texts that the delta fits, in UTF-16 code units.
    public private(set) var sourceLength = 0
    /// Length of the texts that the delta makes, in UTF-16 code units.
    public private(set) var targetLength = 0

    /// The delta of an empty text that stays empty.
    public init() {}

    /// Reserves memory for the steps of a parsed delta, at most `stepsMax`; empty parts of a delta do not become steps.
    init(stepsMax: Int) { operations.reserveCapacity(stepsMax) }

    /// Builds the normal form of `operations`; steps with a count of 0 or less are dropped.
    public init(_ operations: some Sequence<TextOperation>) {
        for operation in operations {
            switch operation {
            case .retain(let count): retain(count)
            case .delete(let count): delete(count)
            case .insert(let units): insert(units)
            }
        }
    }

    /// The delta that leaves a text of `length` units unchanged.
    public static func identity(length: Int) -> TextDelta { TextDelta(CollectionOfOne(.retain(length))) }

    /// Whether the delta leaves every text unchanged.
    public var isIdentity: Bool {
        switch operations.count {
        case 0: true
        case 1: if case .retain = operations[0] { true } else { false }
        default: false
        }
    }

    /// Appends "keep `count` units".
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

    /// Appends "delete `count` units".
    public mutating func delete(_ count: Int) {
        guard count > 0 else { return }
        sourceLength += count
        if case .delete(let before)? = operations.last {
            operations[operations.count - 1] = .delete(before + count)
        } else {
            operations.append(.delete(count))
        }
    }

    /// Appends "insert `units`".
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

    /// Appends "insert `units`", marked with `-0` if there was deleted text on its left.
    ///
    /// Set the mark only when this is known: for an edit made in an older state, with a left neighbour that does not
    /// exist in this one.
    package mutating func insert(_ units: [UInt16], isBehindGone: Bool) {
        guard isBehindGone, !units.isEmpty else { return insert(units) }
        if case .insert? = operations.last, operations.count > 1, operations[operations.count - 2] == .delete(0) {
            return insert(units)
        }
        operations.append(.delete(0))
        operations.append(.insert(units))
        targetLength += units.count
    }

    /// Appends "insert `units`".
    mutating func insert(_ units: ArraySlice<UInt16>) {
        guard !units.isEmpty else { return }
        insert(Array(units))
    }
}
