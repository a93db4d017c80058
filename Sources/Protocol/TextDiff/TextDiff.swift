/// One segment of a difference of two texts.
public struct DiffSegment: Sendable, Equatable {
    /// The part of a segment in the difference: kept, deleted or inserted.
    public enum Kind: Sendable, Hashable { case equal, delete, insert }

    /// The part of the segment in the difference.
    public var kind: Kind
    /// The text, in UTF-16 code units.
    public var units: [UInt16]

    /// Makes a segment.
    public init(_ kind: Kind, _ units: [UInt16]) {
        self.kind = kind
        self.units = units
    }

    init(_ kind: Kind, _ units: some Sequence<UInt16>) { self.init(kind, Array(units)) }
}

/// Differences of texts on UTF-16 code units, by the published algorithms of diff-match-patch: Myers' bisection with
/// the usual shortcuts, then clean-ups. Other clients use the same, so equal input nearly always gives equal deltas.
public enum TextDiff {
    /// Texts longer than this on both sides are compared line by line first. UTF-16 code units.
    public static let lineModeFrom = 100
    /// Equalities shorter than this between edits cost more than they save. UTF-16 code units.
    public static let editCost = 4

    /// The difference of two texts. Adjacent segments of one kind may occur where the reference leaves them.
    ///
    /// - Parameters:
    ///   - source: the text before, in UTF-16 code units.
    ///   - target: the text after.
    ///   - byLines: compare long texts line by line first.
    ///   - budget: steps for the comparison; when it is used up, the rest is deleted and inserted as a whole.
    public static func diff(
        _ source: [UInt16], _ target: [UInt16], byLines: Bool = true, budget: inout StepBudget
    ) -> [DiffSegment] {
        var differ = Differ(budget: budget)
        let result = source.withUnsafeBufferPointer { source in
            target.withUnsafeBufferPointer { differ.diff(source, $0, byLines: byLines) }
        }
        budget = differ.budget
        return result
    }

    /// The source text of a difference.
    public static func source(of segments: [DiffSegment]) -> [UInt16] {
        segments.reduce(into: []) { if $1.kind != .insert { $0.append(contentsOf: $1.units) } }
    }

    /// The target text of a difference.
    public static func target(of segments: [DiffSegment]) -> [UInt16] {
        segments.reduce(into: []) { if $1.kind != .delete { $0.append(contentsOf: $1.units) } }
    }

    /// The place in the target of a place in the source.
    static func place(of place: Int, in segments: [DiffSegment]) -> Int {
        var (sourceEnd, targetEnd) = (0, 0)
        for segment in segments {
            let (sourceStart, targetStart) = (sourceEnd, targetEnd)
            if segment.kind != .insert { sourceEnd += segment.units.count }
            if segment.kind != .delete { targetEnd += segment.units.count }
            if sourceEnd > place {
                return segment.kind == .delete ? targetStart : targetStart + (place - sourceStart)
            }
        }
        return targetEnd + (place - sourceEnd)
    }

    /// The edit distance: for each run of edits the longer of the deleted and the inserted text, in units.
    static func levenshtein(_ segments: [DiffSegment]) -> Int {
        var (total, deleted, inserted) = (0, 0, 0)
        for segment in segments {
            switch segment.kind {
            case .delete: deleted += segment.units.count
            case .insert: inserted += segment.units.count
            case .equal:
                total += max(deleted, inserted)
                (deleted, inserted) = (0, 0)
            }
        }
        return total + max(deleted, inserted)
    }
}

/// A part of a text, in memory that the caller keeps alive.
typealias Units = UnsafeBufferPointer<UInt16>

extension Units {
    @inline(__always) func part(_ start: Int, _ end: Int) -> Units { Units(rebasing: self[start..<end]) }
    @inline(__always) func from(_ start: Int) -> Units { part(start, count) }
    @inline(__always) func upTo(_ end: Int) -> Units { part(0, end) }
}
