/// One piece of the way from one text to another.
public struct DiffSegment: Sendable, Equatable {
    public enum Kind: Sendable, Hashable { case equal, delete, insert }

    public var kind: Kind
    /// UTF-16 code units.
    public var units: [UInt16]

    public init(_ kind: Kind, _ units: [UInt16]) {
        self.kind = kind
        self.units = units
    }

    init(_ kind: Kind, _ units: some Sequence<UInt16>) { self.init(kind, Array(units)) }
}

/// Differences of texts on UTF-16 code units, by the published algorithms of diff-match-patch: Myers' bisection with
/// the usual shortcuts, then clean-ups. Other clients use the same, so equal input gives equal deltas nearly always.
public enum TextDiff {
    /// Texts longer than this on both sides are compared line by line first. UTF-16 code units.
    public static let lineModeFrom = 100
    /// Equalities shorter than this between edits cost more than they save. UTF-16 code units.
    public static let editCost = 4

    /// The difference of two texts; adjacent segments of one kind may occur where the reference leaves them so.
    ///
    /// - Parameters:
    ///   - byLines: compare long texts line by line first.
    ///   - budget: when used up, what is left is deleted and inserted whole.
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

    /// Where a place of the source lies in the target.
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

    /// Units that must be typed: of each run of edits the longer of what is deleted and what is inserted.
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

/// A part of a text that somebody else keeps alive.
typealias Units = UnsafeBufferPointer<UInt16>

extension Units {
    @inline(__always) func part(_ start: Int, _ end: Int) -> Units { Units(rebasing: self[start..<end]) }
    @inline(__always) func from(_ start: Int) -> Units { part(start, count) }
    @inline(__always) func upTo(_ end: Int) -> Units { part(0, end) }
}
