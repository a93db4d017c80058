extension TextDelta {
    /// Adjusts `a` to follow `b` as the public libraries do it: the hunks of `a` are looked for in the text that `b`
    /// made, then that text is compared with the outcome (wire contract 7.4).
    ///
    /// The outcome is the reference's; the delta that leads to it takes out as little as it can. A difference that
    /// reads well may take out a word and put it back longer, and the next change over which such a delta is carried
    /// may find only one half of that its place: text that nobody deleted would be gone.
    ///
    /// - Returns: nil where the reference would lose something: a hunk found no place, something goes though `a`
    ///   deletes nothing, half a surrogate pair would be left, or the budget was used up. The caller then uses the
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
        // A coarse difference would replace text that nobody touched, under the cursors of everybody else.
        return budget.isUsedUp ? nil : moved
    }

    /// UTF-16 units that are taken out.
    private var deletedUnits: Int {
        operations.reduce(0) { count, operation in
            if case .delete(let units) = operation { count + units } else { count }
        }
    }
}
