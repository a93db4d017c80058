extension TextDelta {
    /// The same edit of `text`, with cuts inside a surrogate pair moved to its sides: the whole pair is then deleted,
    /// and the part that was kept is inserted again.
    ///
    /// Older libraries cut pairs; transforming such an edit unit by unit could leave half a pair in the text.
    ///
    /// - Throws: `DeltaError.lengthMismatch` when the delta is not for `text`.
    public func keepingPairsWhole(in text: [UInt16]) throws(DeltaError) -> TextDelta {
        guard text.count == sourceLength else { throw .lengthMismatch(delta: sourceLength, text: text.count) }
        return cutsPair(in: text) ? widened(in: text) : self
    }

    /// Whether a step ends between the halves of a pair.
    private func cutsPair(in text: [UInt16]) -> Bool {
        var place = 0
        for operation in operations {
            switch operation {
            case .retain(let count), .delete(let count): place += count
            case .insert(let units):
                if let first = units.first, UTF16Text.isLow(first) { return true }
                if let last = units.last, UTF16Text.isHigh(last) { return true }
            }
            if Self.isInsidePair(text, place) { return true }
        }
        return false
    }

    private static func isInsidePair(_ text: [UInt16], _ place: Int) -> Bool {
        place > 0 && place < text.count && UTF16Text.isHigh(text[place - 1]) && UTF16Text.isLow(text[place])
    }

    /// Splits the edit into whole characters.
    private func widened(in text: [UInt16]) -> TextDelta {
        var parts = PairReader(text)
        for operation in operations { parts.apply(operation) }
        return parts.finish()
    }
}

/// Rebuilds a delta character by character.
private struct PairReader {
    private let text: [UInt16]
    private var result = TextDelta()
    private var place = 0
    /// Inserted units that wait for the end of a pair, in the insertion or in the text.
    private var waiting = [UInt16]()
    /// Units of the text that `waiting` replaces.
    private var covered = 0

    init(_ text: [UInt16]) { self.text = text }

    mutating func apply(_ operation: TextOperation) {
        switch operation {
        case .retain(let count): for _ in 0..<count { walkUnit(keeping: true) }
        case .delete(let count): for _ in 0..<count { walkUnit(keeping: false) }
        case .insert(let units):
            waiting.append(contentsOf: units)
            flush()
        }
    }

    mutating func finish() -> TextDelta {
        result.delete(covered)
        result.insert(waiting)
        return result
    }

    private var isInsidePair: Bool {
        place > 0 && place < text.count && UTF16Text.isHigh(text[place - 1]) && UTF16Text.isLow(text[place])
    }

    private mutating func walkUnit(keeping: Bool) {
        let isFirstHalf =
            UTF16Text.isHigh(text[place]) && place + 1 < text.count && UTF16Text.isLow(text[place + 1])
        if covered == 0, waiting.isEmpty, !isFirstHalf {
            if keeping { result.retain(1) } else { result.delete(1) }
            place += 1
            return
        }
        if keeping { waiting.append(text[place]) }
        covered += 1
        place += 1
        flush()
    }

    /// Writes the waiting units, once neither text is inside a pair.
    private mutating func flush() {
        guard !isInsidePair, waiting.last.map(UTF16Text.isHigh) != true else { return }
        let whole = text[(place - covered)..<place]
        if whole.elementsEqual(waiting) {
            result.retain(covered)
        } else {
            result.delete(covered)
            result.insert(waiting)
        }
        covered = 0
        waiting = []
    }
}
