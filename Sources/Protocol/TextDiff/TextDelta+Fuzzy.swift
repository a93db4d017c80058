extension TextDelta {
    /// Adjusts `a` to follow `b` by the method of the public libraries: the hunks of `a` are searched for in the text
    /// that `b` made, and that text is compared with the result (wire contract 7.4).
    ///
    /// The resulting text is that of the reference; the delta that leads to it deletes as little as it can. A readable
    /// difference may delete a word and insert a longer one; when the next change is rebased over such a delta, only
    /// one half of its insertion may find its place, and text that no client deleted would be lost.
    ///
    /// - Returns: nil where the reference would lose something: a hunk did not find a place, text is deleted although
    ///   `a` deletes nothing, half a surrogate pair would remain, or the budget is used up. The caller then uses the
    ///   exact transform.
    static func transformFuzzily(
        _ a: TextDelta, over b: TextDelta, base: [UInt16], _ budget: inout StepBudget
    ) throws(DeltaError) -> TextDelta? {
        let source = try b.apply(to: base)
        let patches = TextDiff.patchMake(base, try a.segments(on: base), budget: &budget)
        let (target, found) = TextDiff.patchApply(patches, to: source, budget: &budget)
        guard !budget.isUsedUp, !found.contains(false) else { return nil }
        let moved: TextDelta
        if UTF16Text.isWhole(target) {
            let readable = diff(from: source, to: target, budget: &budget)
            moved =
                readable.deletedUnits > a.deletedUnits
                ? diff(from: source, to: target, keepsShortEqualities: true, budget: &budget) : readable
        } else {
            var segments = TextDiff.diff(source, target, budget: &budget)
            if segments.count > 2 { TextDiff.cleanupEfficiency(&segments) }
            TextDiff.moveOutOfPairs(&segments)
            moved = TextDelta(segments)
            guard moved.sourceLength == source.count, UTF16Text.isWhole(try moved.apply(to: source)) else { return nil }
        }
        guard a.deletedUnits > 0 || moved.deletedUnits == 0 else { return nil }
        // A coarse difference would replace text that no edit touched, and move the other clients' cursors.
        return budget.isUsedUp ? nil : moved
    }

    /// UTF-16 code units that are deleted.
    private var deletedUnits: Int {
        operations.reduce(0) { count, operation in
            if case .delete(let units) = operation { count + units } else { count }
        }
    }
}
