extension TextDiff {
    /// Removes equalities that are not longer than the edits on both sides of them, moves edits to word and line ends,
    /// and splits deletions and insertions that overlap.
    public static func cleanupSemantic(_ segments: inout [DiffSegment]) {
        if giveUpShortEqualities(&segments) { cleanupMerge(&segments) }
        cleanupSemanticLossless(&segments)
        splitOverlaps(&segments)
    }

    /// Units deleted and inserted between two equalities.
    private struct Amount {
        var deleted = 0
        var inserted = 0
        var longer: Int { max(deleted, inserted) }

        mutating func add(_ segment: DiffSegment) {
            if segment.kind == .delete { deleted += segment.units.count } else { inserted += segment.units.count }
        }
    }

    /// Turns equalities that are not worth keeping into a deletion and an insertion. Returns whether there were any.
    private static func giveUpShortEqualities(_ segments: inout [DiffSegment]) -> Bool {
        /// Equalities kept so far, each with the edits before it.
        var kept = [(place: Int, before: Amount)]()
        var givenUp = Set<Int>()
        var run = Amount()
        func giveUpShort() {
            // Removing an equality makes the run longer, and so may also remove the equality before it.
            while let (place, before) = kept.last {
                let length = segments[place].units.count
                guard length > 0, length <= before.longer, length <= run.longer else { return }
                kept.removeLast()
                givenUp.insert(place)
                run.deleted += before.deleted + length
                run.inserted += before.inserted + length
            }
        }
        for (place, segment) in segments.enumerated() {
            if segment.kind != .equal {
                run.add(segment)
                continue
            }
            giveUpShort()
            kept.append((place: place, before: run))
            run = Amount()
        }
        giveUpShort()
        replace(givenUp, in: &segments)
        return !givenUp.isEmpty
    }

    /// Writes each equality at `places` as a deletion and an insertion.
    static func replace(_ places: Set<Int>, in segments: inout [DiffSegment]) {
        guard !places.isEmpty else { return }
        var result = [DiffSegment]()
        result.reserveCapacity(segments.count + places.count)
        for (place, segment) in segments.enumerated() {
            if places.contains(place) {
                result.append(DiffSegment(.delete, segment.units))
                result.append(DiffSegment(.insert, segment.units))
            } else {
                result.append(segment)
            }
        }
        segments = result
    }

    /// Splits a deletion followed by an insertion where the end of one is the beginning of the other.
    private static func splitOverlaps(_ segments: inout [DiffSegment]) {
        var result = [DiffSegment]()
        result.reserveCapacity(segments.count)
        var place = 0
        while place < segments.count {
            guard place + 1 < segments.count, segments[place].kind == .delete, segments[place + 1].kind == .insert
            else {
                result.append(segments[place])
                place += 1
                continue
            }
            let (deletion, insertion) = (segments[place].units, segments[place + 1].units)
            let forward = common(deletion[...], insertion[...], UnitSearch.overlap)
            let backward = common(insertion[...], deletion[...], UnitSearch.overlap)
            let least = min(deletion.count, insertion.count)
            if forward >= backward, forward * 2 >= least {
                result.append(DiffSegment(.delete, deletion.dropLast(forward)))
                result.append(DiffSegment(.equal, insertion.prefix(forward)))
                result.append(DiffSegment(.insert, insertion.dropFirst(forward)))
            } else if backward > forward, backward * 2 >= least {
                result.append(DiffSegment(.insert, insertion.dropLast(backward)))
                result.append(DiffSegment(.equal, deletion.prefix(backward)))
                result.append(DiffSegment(.delete, deletion.dropFirst(backward)))
            } else {
                result += segments[place...(place + 1)]
            }
            place += 2
        }
        segments = result
    }

    // MARK: Shifting to boundaries

    /// Shifts single edits between two equalities sideways to where a reader expects them: ends of lines, sentences and
    /// words. The texts stay the same.
    public static func cleanupSemanticLossless(_ segments: inout [DiffSegment]) {
        guard segments.count >= 3 else { return }
        var result = [segments[0]]
        result.reserveCapacity(segments.count)
        var place = 1
        while place < segments.count - 1 {
            let last = result.count - 1
            guard last >= 0, result[last].kind == .equal, segments[place + 1].kind == .equal else {
                result.append(segments[place])
                place += 1
                continue
            }
            let shift = EditShift(result[last].units, segments[place].units, segments[place + 1].units)
            guard let best = shift.best() else {
                result.append(segments[place])
                place += 1
                continue
            }
            let edit = DiffSegment(segments[place].kind, shift.text[best..<(best + shift.length)])
            if best > 0 { result[last].units = Array(shift.text[..<best]) } else { result.removeLast() }
            if best + shift.length < shift.text.count {
                result.append(edit)
                segments[place + 1].units = Array(shift.text[(best + shift.length)...])
            } else {
                // The second equality is empty; the edit takes its place and is processed with what follows.
                segments[place + 1] = edit
            }
            place += 1
        }
        result += segments[place...]
        segments = result
    }
}

/// All places to which an edit between two equalities can be shifted.
private struct EditShift {
    /// The first equality, the edit and the second equality in a row, with the edit shifted as far left as possible.
    let text: [UInt16]
    let length: Int
    private let original: Int
    private let leftmost: Int

    init(_ before: [UInt16], _ edit: [UInt16], _ after: [UInt16]) {
        let back = TextDiff.common(before[...], edit[...], UnitSearch.commonSuffix)
        // Shifting left by the common suffix changes the row of units only by this rotation.
        text = before.dropLast(back) + edit.suffix(back) + edit.dropLast(back) + edit.suffix(back) + after
        length = edit.count
        original = before.count
        leftmost = before.count - back
    }

    /// Where the edit should begin; nil if it begins there already.
    func best() -> Int? {
        text.withUnsafeBufferPointer { text in
            var start = leftmost
            var bestStart = start
            var bestScore = score(text, start)
            while length > 0, start + length < text.count, text[start] == text[start + length] {
                start += 1
                let score = score(text, start)
                // The last of equally good places, so that an edit goes after text that it resembles.
                if score >= bestScore { (bestStart, bestScore) = (start, score) }
            }
            return bestStart == original ? nil : bestStart
        }
    }

    private func score(_ text: Units, _ start: Int) -> Int {
        let end = start + length
        return Boundary.score(text.upTo(start), text.part(start, end))
            + Boundary.score(text.part(start, end), text.from(end))
    }
}

/// How suitable a place between two texts is for the end of an edit.
private enum Boundary {
    /// 6 at an end of the text, 5 at a blank line, 4 at a line end, 3 after a sentence, 2 at white space, 1 at
    /// punctuation, 0 inside a word.
    static func score(_ before: Units, _ after: Units) -> Int {
        guard let left = before.last, let right = after.first else { return 6 }
        let (leftIsOther, rightIsOther) = (!isLetterOrDigit(left), !isLetterOrDigit(right))
        let (leftIsSpace, rightIsSpace) = (leftIsOther && isSpace(left), rightIsOther && isSpace(right))
        let (leftIsEnd, rightIsEnd) = (leftIsSpace && isLineEnd(left), rightIsSpace && isLineEnd(right))
        if leftIsEnd && endsWithBlankLine(before) || rightIsEnd && beginsWithBlankLine(after) { return 5 }
        if leftIsEnd || rightIsEnd { return 4 }
        if leftIsOther, !leftIsSpace, rightIsSpace { return 3 }
        if leftIsSpace || rightIsSpace { return 2 }
        return leftIsOther || rightIsOther ? 1 : 0
    }

    private static func isLetterOrDigit(_ unit: UInt16) -> Bool {
        (0x30...0x39).contains(unit) || (0x41...0x5A).contains(unit) || (0x61...0x7A).contains(unit)
    }

    private static func isLineEnd(_ unit: UInt16) -> Bool { unit == 0x0A || unit == 0x0D }

    /// White space of ECMAScript's `\s`.
    private static func isSpace(_ unit: UInt16) -> Bool {
        switch unit {
        case 0x09...0x0D, 0x20, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF: true
        default: false
        }
    }

    /// `
    ///
    /// ` or `
    /// \r
    /// ` at the end.
    private static func endsWithBlankLine(_ text: Units) -> Bool {
        let end = text.count
        guard end >= 2, text[end - 1] == 0x0A else { return false }
        if text[end - 2] == 0x0A { return true }
        return end >= 3 && text[end - 2] == 0x0D && text[end - 3] == 0x0A
    }

    /// Two line feeds at the beginning, each optionally with a carriage return before it.
    private static func beginsWithBlankLine(_ text: Units) -> Bool {
        var place = 0
        for _ in 0..<2 {
            if place < text.count, text[place] == 0x0D { place += 1 }
            guard place < text.count, text[place] == 0x0A else { return false }
            place += 1
        }
        return true
    }
}
