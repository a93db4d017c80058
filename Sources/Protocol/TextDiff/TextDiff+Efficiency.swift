extension TextDiff {
    /// Removes equalities that are shorter than the cost of writing two edits instead of one.
    ///
    /// An equality is removed when it is shorter than `editCost` and has a deletion and an insertion on both sides, or
    /// when it is shorter than half of that and has three of the four.
    public static func cleanupEfficiency(_ segments: inout [DiffSegment]) {
        /// Short equalities that directly follow each other and may still be removed, each with the edits before it.
        var candidates = [(place: Int, before: Edits)]()
        var givenUp = Set<Int>()
        var run: Edits = []
        func giveUpShort() {
            while let (place, before) = candidates.last {
                let length = segments[place].units.count
                let edits = before.number + run.number
                guard length > 0, edits == 4 || (edits == 3 && length * 2 < editCost) else { return }
                givenUp.insert(place)
                candidates.removeLast()
                run = .both
            }
        }
        for (place, segment) in segments.enumerated() {
            guard segment.kind == .equal else {
                run.insert(segment.kind == .delete ? .deletion : .insertion)
                continue
            }
            giveUpShort()
            if segment.units.count < editCost, !run.isEmpty {
                candidates.append((place: place, before: run))
            } else {
                candidates.removeAll()
            }
            run = []
        }
        giveUpShort()
        replace(givenUp, in: &segments)
        if !givenUp.isEmpty { cleanupMerge(&segments) }
    }

    /// The kinds of edit between two equalities.
    private struct Edits: OptionSet {
        let rawValue: UInt8
        static let deletion = Edits(rawValue: 1)
        static let insertion = Edits(rawValue: 2)
        static let both: Edits = [.deletion, .insertion]
        var number: Int { rawValue.nonzeroBitCount }
    }
}
