extension TextDiff {
    /// For a deletion longer than `TextPatch.searchMax` with an inexact match: the largest share of its units that may
    /// differ.
    static let deleteThreshold = 0.5

    /// Applies hunks where they fit best, and reports which of them found a place.
    ///
    /// - Parameters:
    ///   - patches: the hunks, in the order of the text.
    ///   - text: the text to change, in UTF-16 code units.
    ///   - budget: steps for searches and comparisons; when it is used up, the remaining hunks do not find a place.
    public static func patchApply(
        _ patches: [TextPatch], to text: [UInt16], budget: inout StepBudget
    ) -> (text: [UInt16], found: [Bool]) {
        guard !patches.isEmpty else { return (text, []) }
        var patches = patches
        let padding = (1...UInt16(TextPatch.margin)).map { $0 }
        addPadding(padding, to: &patches)
        var applier = PatchApplier(text: padding + text + padding, budget: budget)
        let found = split(patches).map { applier.apply($0) }
        budget = applier.budget
        return (Array(applier.text.dropFirst(padding.count).dropLast(padding.count)), found)
    }

    /// Adds padding at both ends, so that edits at the ends have context.
    private static func addPadding(_ padding: [UInt16], to patches: inout [TextPatch]) {
        for place in patches.indices { patches[place].start += padding.count }
        let missingBefore = padding.count - (edge(patches[0].segments.first)?.count ?? 0)
        if missingBefore > 0 {
            let missing = Array(padding.suffix(missingBefore))
            if edge(patches[0].segments.first) == nil {
                patches[0].segments.insert(DiffSegment(.equal, padding), at: 0)
            } else {
                patches[0].segments[0].units.insert(contentsOf: missing, at: 0)
            }
            patches[0].start -= missing.count
            patches[0].sourceLength += missing.count
            patches[0].targetLength += missing.count
        }
        let last = patches.count - 1
        let missingBehind = padding.count - (edge(patches[last].segments.last)?.count ?? 0)
        if missingBehind > 0 {
            if edge(patches[last].segments.last) == nil {
                patches[last].segments.append(DiffSegment(.equal, padding))
            } else {
                patches[last].segments[patches[last].segments.count - 1].units += padding.prefix(missingBehind)
            }
            patches[last].sourceLength += missingBehind
            patches[last].targetLength += missingBehind
        }
    }

    /// The context at an end of a hunk; nil when the hunk begins or ends with an edit.
    private static func edge(_ segment: DiffSegment?) -> [UInt16]? {
        segment?.kind == .equal ? segment?.units : nil
    }

    /// Splits hunks that are too long to search for.
    private static func split(_ patches: [TextPatch]) -> [TextPatch] {
        patches.flatMap { patch -> [TextPatch] in
            guard patch.sourceLength > TextPatch.searchMax else { return [patch] }
            var splitter = PatchSplitter(patch)
            return splitter.split()
        }
    }
}

/// Splits one long hunk.
private struct PatchSplitter {
    private var rest: ArraySlice<DiffSegment>
    private var start: Int

    init(_ patch: TextPatch) {
        rest = patch.segments[...]
        start = patch.start
    }

    mutating func split() -> [TextPatch] {
        var result = [TextPatch]()
        var context = [UInt16]()
        while !rest.isEmpty {
            var patch = TextPatch()
            patch.start = start - context.count
            if !context.isEmpty {
                patch.sourceLength = context.count
                patch.targetLength = context.count
                patch.segments.append(DiffSegment(.equal, context))
            }
            let edits = fill(&patch)
            context = TextDiff.target(of: patch.segments).suffix(TextPatch.margin)
            addContext(&patch)
            if edits { result.append(patch) }
        }
        return result
    }

    /// Takes segments until the hunk is long enough; returns whether one of them is an edit.
    private mutating func fill(_ patch: inout TextPatch) -> Bool {
        var edits = false
        while let segment = rest.first, patch.sourceLength < TextPatch.searchMax - TextPatch.margin {
            let isLongDeletion =
                segment.kind == .delete && patch.segments.count == 1 && patch.segments[0].kind == .equal
                && segment.units.count > 2 * TextPatch.searchMax
            if segment.kind == .insert || isLongDeletion {
                append(segment, &patch)
                rest.removeFirst()
            } else {
                let room = TextPatch.searchMax - patch.sourceLength - TextPatch.margin
                append(DiffSegment(segment.kind, segment.units.prefix(room)), &patch)
                if segment.units.count <= room {
                    rest.removeFirst()
                } else {
                    rest[rest.startIndex].units.removeFirst(room)
                }
            }
            if segment.kind != .equal { edits = true }
        }
        return edits
    }

    private mutating func append(_ segment: DiffSegment, _ patch: inout TextPatch) {
        if segment.kind != .insert {
            patch.sourceLength += segment.units.count
        }
        if segment.kind != .delete {
            patch.targetLength += segment.units.count
            start += segment.units.count
        }
        patch.segments.append(segment)
    }

    /// Adds the text that follows in the old text.
    private func addContext(_ patch: inout TextPatch) {
        var context = [UInt16]()
        for segment in rest where segment.kind != .insert {
            context += segment.units.prefix(TextPatch.margin - context.count)
            if context.count == TextPatch.margin { break }
        }
        guard !context.isEmpty else { return }
        patch.sourceLength += context.count
        patch.targetLength += context.count
        if patch.segments.last?.kind == .equal {
            patch.segments[patch.segments.count - 1].units += context
        } else {
            patch.segments.append(DiffSegment(.equal, context))
        }
    }
}

/// Applies hunks to a text, one after another.
private struct PatchApplier {
    private(set) var text: [UInt16]
    var budget: StepBudget
    /// Distance between the place where the last hunk was found and the expected place.
    private var drift = 0

    init(text: [UInt16], budget: StepBudget) {
        self.text = text
        self.budget = budget
    }

    /// Returns whether the hunk found a place.
    mutating func apply(_ patch: TextPatch) -> Bool {
        let expected = patch.start + drift
        let wanted = TextDiff.source(of: patch.segments)
        budget.spend(text.count / 16 + wanted.count)
        guard !budget.isUsedUp, let (start, end) = find(wanted, near: expected) else {
            drift -= patch.targetLength - patch.sourceLength
            return false
        }
        drift = start - expected
        let found = text[start..<end]
        if found.elementsEqual(wanted) {
            text.replaceSubrange(start..<end, with: TextDiff.target(of: patch.segments))
            return true
        }
        var segments = TextDiff.diff(wanted, Array(found), byLines: false, budget: &budget)
        if wanted.count > TextPatch.searchMax,
            Double(TextDiff.levenshtein(segments)) / Double(wanted.count) > TextDiff.deleteThreshold
        {
            return false
        }
        TextDiff.cleanupSemanticLossless(&segments)
        edit(patch, at: start, segments)
        return true
    }

    /// The approximate place of a hunk's old text; the end is not beyond the end of the whole text.
    private mutating func find(_ wanted: [UInt16], near expected: Int) -> (start: Int, end: Int)? {
        guard wanted.count > TextPatch.searchMax else {
            guard let start = match(wanted[...], near: expected) else { return nil }
            return (start, min(text.count, start + wanted.count))
        }
        guard let start = match(wanted.prefix(TextPatch.searchMax), near: expected) else { return nil }
        let tailStart = expected + wanted.count - TextPatch.searchMax
        guard let tail = match(wanted.suffix(TextPatch.searchMax), near: tailStart), start < tail else {
            return nil
        }
        return (start, min(text.count, tail + TextPatch.searchMax))
    }

    private mutating func match(_ pattern: ArraySlice<UInt16>, near expected: Int) -> Int? {
        pattern.withUnsafeBufferPointer { pattern in
            text.withUnsafeBufferPointer { TextMatch.find(pattern, in: $0, near: expected, budget: &budget) }
        }
    }

    /// Writes the edits of a hunk into a text that differs from the expected one by `segments`.
    private mutating func edit(_ patch: TextPatch, at start: Int, _ segments: [DiffSegment]) {
        var place = 0
        for step in patch.segments {
            let at = min(text.count, start + TextDiff.place(of: place, in: segments))
            switch step.kind {
            case .equal: break
            case .insert: text.insert(contentsOf: step.units, at: at)
            case .delete:
                let end = start + TextDiff.place(of: place + step.units.count, in: segments)
                text.removeSubrange(at..<max(at, min(text.count, end)))
            }
            if step.kind != .delete { place += step.units.count }
        }
    }
}
