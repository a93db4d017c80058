extension TextDelta {
    /// Whether a merge of two edits of one text keeps all that the exact merge keeps: reference-style patching may drop a
    /// character that one side typed, or take out one that nobody touched, and still say that every hunk found its place.
    ///
    /// Two conditions, both linear in the texts. No character stands in `merged` less often than in the exact merge; and
    /// what each side has inserted stands in `merged` in its order. The first alone would let a deleted character that came
    /// back stand for an inserted one of another place.
    ///
    /// - Parameters:
    ///   - merged: the text that reference-style patching has made.
    ///   - exact: the text that the exact transform makes of the same edits.
    ///   - a, b: the two edits.
    static func keepsText(_ merged: [UInt16], exact: [UInt16], _ a: TextDelta, _ b: TextDelta) -> Bool {
        if merged == exact { return true }
        var counts: [UInt16: Int] = [:]
        for unit in merged { counts[unit, default: 0] += 1 }
        for unit in exact {
            guard let count = counts[unit], count > 0 else { return false }
            counts[unit] = count - 1
        }
        return a.insertionsStand(in: merged) && b.insertionsStand(in: merged)
    }

    /// Whether all inserted units stand in a text in their order, with others between them or not.
    private func insertionsStand(in text: [UInt16]) -> Bool {
        var rest = text[...]
        for operation in operations {
            guard case .insert(let units) = operation else { continue }
            for unit in units {
                guard let place = rest.firstIndex(of: unit) else { return false }
                rest = rest[(place + 1)...]
            }
        }
        return true
    }
}
