extension TextDelta {
    /// An edit that leads from `source` to `target`, in the form of the current clients: compared by lines and units,
    /// without short equalities, never cutting surrogate pairs (wire contract 7.3).
    ///
    /// - Parameters:
    ///   - keepsShortEqualities: keep every character that need not change, also outside the basic plane. For
    ///     differences over which edits are rebased: if a character is deleted and inserted again, an edit of it would
    ///     be lost.
    ///   - budget: steps for the comparison; when it is used up, the rest is deleted and inserted as a whole.
    ///   - source: the text before, in UTF-16 code units.
    ///   - target: the text after, in UTF-16 code units.
    public static func diff(
        from source: [UInt16], to target: [UInt16], keepsShortEqualities: Bool = false, budget: inout StepBudget
    ) -> TextDelta {
        if keepsShortEqualities, let characters = WholeCharacters(source, target) {
            let named = TextDiff.diff(
                characters.named(source), characters.named(target), budget: &budget)
            return TextDelta(named.map { DiffSegment($0.kind, characters.spelled($0.units)) })
        }
        var segments = TextDiff.diff(source, target, budget: &budget)
        if segments.count > 2, !keepsShortEqualities { TextDiff.cleanupEfficiency(&segments) }
        TextDiff.keepPairsWhole(&segments)
        return TextDelta(segments)
    }

    /// The edit that leads from one string to another; see `diff(from:to:keepsShortEqualities:budget:)` for code units.
    public static func diff(
        from source: String, to target: String, keepsShortEqualities: Bool = false, budget: inout StepBudget
    ) -> TextDelta {
        diff(
            from: UTF16Text.units(of: source), to: UTF16Text.units(of: target),
            keepsShortEqualities: keepsShortEqualities, budget: &budget)
    }

    /// The delta of a difference.
    public init(_ segments: [DiffSegment]) {
        self.init(
            segments.lazy.map { (segment: DiffSegment) -> TextOperation in
                switch segment.kind {
                case .equal: .retain(segment.units.count)
                case .delete: .delete(segment.units.count)
                case .insert: .insert(segment.units)
                }
            })
    }

    /// The difference that this delta makes on a text.
    func segments(on text: [UInt16]) throws(DeltaError) -> [DiffSegment] {
        guard text.count == sourceLength else { throw .lengthMismatch(delta: sourceLength, text: text.count) }
        var place = 0
        return operations.compactMap { operation in
            switch operation {
            case .retain(let count):
                place += count
                return DiffSegment(.equal, text[(place - count)..<place])
            case .delete(0): return nil
            case .delete(let count):
                place += count
                return DiffSegment(.delete, text[(place - count)..<place])
            case .insert(let units):
                return DiffSegment(.insert, units)
            }
        }
    }
}
