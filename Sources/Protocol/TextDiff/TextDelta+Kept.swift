extension TextDelta {
    /// Whether a merge of two edits of one text keeps what both have inserted: reference-style patching may drop a
    /// character that one side typed and still say that every hunk found its place.
    ///
    /// Two conditions, both linear in the texts. No character that one of them has inserted stands in `merged` less often
    /// than in the exact merge; and what each side has inserted stands in `merged` in its order. The first alone would let a
    /// deleted character that came back stand for an inserted one of another place.
    ///
    /// - Parameters:
    ///   - merged: the text that reference-style patching has made.
    ///   - exact: the text that the exact transform makes of the same edits.
    ///   - a, b: the two edits.
    static func keepsInsertions(_ merged: [UInt16], exact: [UInt16], _ a: TextDelta, _ b: TextDelta) -> Bool {
        if merged == exact { return true }
        var surplus: [UInt16: Int] = [:]
        for unit in a.inserted { surplus[unit] = 0 }
        for unit in b.inserted { surplus[unit] = 0 }
        for unit in merged { if let count = surplus[unit] { surplus[unit] = count + 1 } }
        for unit in exact { if let count = surplus[unit] { surplus[unit] = count - 1 } }
        return surplus.values.allSatisfy { $0 >= 0 } && Self.stand(a.inserted, in: merged)
            && Self.stand(b.inserted, in: merged)
    }

    /// All units that are inserted, in their order.
    private var inserted: [UInt16] {
        var all: [UInt16] = []
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
