extension TextDelta {
    /// Whether a merge of two edits of one text keeps all that the exact merge keeps: reference-style patching may drop
    /// a character that one side typed, or one that neither touched, and still say that every hunk found its place.
    /// What nobody touched may be what a third person typed, over whose edit both were carried.
    ///
    /// Two conditions, both linear in the texts. No character stands in `merged` less often than in the exact merge;
    /// and what each side has inserted stands in `merged` in its order. The first alone would let a deleted character
    /// that came back stand for an inserted one of another place.
    ///
    /// - Parameters:
    ///   - merged: the text that reference-style patching has made.
    ///   - exact: the text that the exact transform makes of the same edits.
    ///   - a, b: the two edits.
    static func keepsText(_ merged: [UInt16], exact: [UInt16], _ a: TextDelta, _ b: TextDelta) -> Bool {
        if merged == exact { return true }
        var surplus = [UInt16: Int]()
        for unit in merged { surplus[unit, default: 0] += 1 }
        for unit in exact {
            guard let count = surplus[unit], count > 0 else { return false }
            surplus[unit] = count - 1
        }
        return Self.stand(a.inserted, in: merged) && Self.stand(b.inserted, in: merged)
    }

    /// All units that are inserted, in their order.
    private var inserted: [UInt16] {
        var all = [UInt16]()
        for operation in operations {
            if case .insert(let units) = operation { all += units }
        }
        return all
    }

    /// Whether all units stand in a text in their order, with others between them or not.
    private static func stand(_ units: [UInt16], in text: [UInt16]) -> Bool {
        var rest = text[...]
        for unit in units {
            guard let place = rest.firstIndex(of: unit) else { return false }
            rest = rest[(place + 1)...]
        }
        return true
    }
}
