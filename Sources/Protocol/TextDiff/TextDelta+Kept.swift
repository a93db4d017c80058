extension TextDelta {
    /// Whether a merge of two edits of one text keeps everything that the exact merge keeps. Patching by the reference
    /// may lose a character that one side typed, or one that neither side touched, and still report that every hunk
    /// found its place. An untouched character may be one that a third client typed, when both edits were rebased over
    /// its edit.
    ///
    /// Two conditions, both linear in the texts: each character occurs in `merged` at least as often as in the exact
    /// merge, and the insertions of each side occur in `merged` in their order. With the first condition alone, a
    /// deleted character that came back could make up for a lost insertion elsewhere.
    ///
    /// - Parameters:
    ///   - merged: the text that patching by the reference has made.
    ///   - exact: the text that the exact transform makes of the same edits.
    ///   - a: one of the two edits.
    ///   - b: the other edit.
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

    /// All inserted units, in their order.
    private var inserted: [UInt16] {
        var all = [UInt16]()
        for operation in operations {
            if case .insert(let units) = operation { all += units }
        }
        return all
    }

    /// Whether all units occur in a text in their order, possibly with others between them.
    private static func stand(_ units: [UInt16], in text: [UInt16]) -> Bool {
        var rest = text[...]
        for unit in units {
            guard let place = rest.firstIndex(of: unit) else { return false }
            rest = rest[(place + 1)...]
        }
        return true
    }
}
