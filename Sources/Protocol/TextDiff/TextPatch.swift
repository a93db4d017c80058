/// One hunk: an edit with some of the text around it, by which it is found again in a text that has changed.
public struct TextPatch: Sendable, Equatable {
    /// The edits and their context.
    public var segments: [DiffSegment] = []
    /// Where the hunk begins in a text to which all earlier hunks have been applied. UTF-16 code units.
    public var start = 0
    /// UTF-16 code units of the source text that the hunk covers.
    public var sourceLength = 0
    /// UTF-16 code units of the target text that the hunk covers.
    public var targetLength = 0

    /// An empty hunk.
    public init() {}

    /// Longest text that can be searched for with errors: one bit per unit of a 32-bit integer.
    public static let searchMax = 32
    /// UTF-16 code units of context on both sides of an edit.
    public static let margin = 4
}

extension TextDiff {
    /// Splits a difference into hunks with `TextPatch.margin` units of context, or more where the place would be
    /// ambiguous.
    ///
    /// - Parameters:
    ///   - source: the source text of the difference.
    ///   - segments: the difference.
    ///   - budget: steps for the searches; when it is used up, the contexts are shorter.
    public static func patchMake(
        _ source: [UInt16], _ segments: [DiffSegment], budget: inout StepBudget
    ) -> [TextPatch] {
        var maker = PatchMaker(source: source, target: target(of: segments), budget: budget)
        for (place, segment) in segments.enumerated() {
            maker.append(segment, isLast: place == segments.count - 1)
        }
        maker.finish()
        budget = maker.budget
        return maker.patches
    }
}

/// Collects segments into hunks.
private struct PatchMaker {
    private let source: [UInt16]
    private let target: [UInt16]
    var budget: StepBudget
    private(set) var patches = [TextPatch]()
    private var patch = TextPatch()
    private var sourcePlace = 0
    private var targetPlace = 0
    /// The text that is searched for the current hunk is the target up to one place, followed by the source from
    /// another: the text before the hunk has been patched already.
    private var rolling: (target: Int, source: Int) = (0, 0)

    init(source: [UInt16], target: [UInt16], budget: StepBudget) {
        self.source = source
        self.target = target
        self.budget = budget
    }

    mutating func append(_ segment: DiffSegment, isLast: Bool) {
        let count = segment.units.count
        if patch.segments.isEmpty, segment.kind != .equal {
            patch.start = targetPlace
        }
        switch segment.kind {
        case .insert:
            patch.segments.append(segment)
            patch.targetLength += count
        case .delete:
            patch.segments.append(segment)
            patch.sourceLength += count
        case .equal:
            if count <= 2 * TextPatch.margin, !patch.segments.isEmpty, !isLast {
                patch.segments.append(segment)
                patch.sourceLength += count
                patch.targetLength += count
            } else if count >= 2 * TextPatch.margin, !patch.segments.isEmpty {
                finish()
                rolling = (targetPlace, sourcePlace)
            }
        }
        if segment.kind != .insert { sourcePlace += count }
        if segment.kind != .delete { targetPlace += count }
    }

    /// Ends the current hunk.
    mutating func finish() {
        guard !patch.segments.isEmpty else { return }
        addContext()
        patches.append(patch)
        patch = TextPatch()
    }

    private mutating func addContext() {
        let length: Int = rolling.target + source.count - rolling.source
        guard length > 0 else { return }
        var padding = 0
        var end = min(patch.start + patch.sourceLength, length)
        var start = patch.start
        while end - start < TextPatch.searchMax - 2 * TextPatch.margin, occursTwice(start, end, length) {
            padding += TextPatch.margin
            start = max(0, patch.start - padding)
            end = min(length, patch.start + patch.sourceLength + padding)
        }
        padding += TextPatch.margin
        start = max(0, patch.start - padding)
        let middle = patch.start + patch.sourceLength
        end = min(length, middle + padding)
        let before = (start..<patch.start).map(unit)
        let after: [UInt16] = (middle..<max(middle, end)).map(unit)
        if !before.isEmpty { patch.segments.insert(DiffSegment(.equal, before), at: 0) }
        if !after.isEmpty { patch.segments.append(DiffSegment(.equal, after)) }
        patch.start -= before.count
        patch.sourceLength += before.count + after.count
        patch.targetLength += before.count + after.count
    }

    private func unit(_ place: Int) -> UInt16 {
        place < rolling.target ? target[place] : source[rolling.source + place - rolling.target]
    }

    /// Whether a part of the combined text occurs more than once.
    private mutating func occursTwice(_ start: Int, _ end: Int, _ length: Int) -> Bool {
        // An empty part occurs at every place.
        guard end > start else { return true }
        guard !budget.isUsedUp else { return false }
        budget.spend(length / 2 + 1)
        let wanted = (start..<end).map(unit)
        let seam: Int = rolling.target
        let joint = (max(0, seam - wanted.count + 1)..<min(length, seam + wanted.count - 1)).map(unit)
        let found =
            Self.occurrences(of: wanted, in: target[..<seam]) + Self.occurrences(of: wanted, in: joint[...])
            + Self.occurrences(of: wanted, in: source[rolling.source...])
        return found > 1
    }

    /// Counts up to 2.
    private static func occurrences(of wanted: [UInt16], in text: ArraySlice<UInt16>) -> Int {
        wanted.withUnsafeBufferPointer { wanted in
            text.withUnsafeBufferPointer { text in
                guard let first = UnitSearch.first(wanted, in: text) else { return 0 }
                return UnitSearch.first(wanted, in: text, from: first + 1) == nil ? 1 : 2
            }
        }
    }
}
