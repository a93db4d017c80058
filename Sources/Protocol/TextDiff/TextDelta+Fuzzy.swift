extension TextDelta {
    /// Adjusts `a` to follow `b` as the public libraries do it: the hunks of `a` are looked for in the text that `b` made,
    /// then that text is compared with the outcome (wire contract 7.4).
    ///
    /// - Returns: nil where the reference would lose something: a hunk found no place, half a surrogate pair would be left,
    ///   or the budget was used up. The caller then uses the exact transform.
    static func transformFuzzily(
        _ a: TextDelta, over b: TextDelta, base: [UInt16], _ budget: inout StepBudget
    ) throws(DeltaError) -> TextDelta? {
        let source: [UInt16] = try b.apply(to: base)
        let patches: [TextPatch] = TextDiff.patchMake(base, try a.segments(on: base), budget: &budget)
        let (target, found): ([UInt16], [Bool]) = TextDiff.patchApply(patches, to: source, budget: &budget)
        guard !budget.isUsedUp, !found.contains(false) else { return nil }
        let moved: TextDelta
        if UTF16Text.isWhole(target) {
            moved = diff(from: source, to: target, budget: &budget)
        } else {
            var segments: [DiffSegment] = TextDiff.diff(source, target, budget: &budget)
            if segments.count > 2 { TextDiff.cleanupEfficiency(&segments) }
            TextDiff.moveOutOfPairs(&segments)
            moved = TextDelta(segments)
            guard moved.sourceLength == source.count, UTF16Text.isWhole(try moved.apply(to: source)) else { return nil }
        }
        // A coarse difference would replace text that nobody touched, under the cursors of everybody else.
        return budget.isUsedUp ? nil : moved
    }
}
