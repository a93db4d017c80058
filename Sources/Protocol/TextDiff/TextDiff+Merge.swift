extension TextDiff {
    /// Joins adjacent segments of one kind, moves the common prefix and suffix of a deletion and an insertion into the
    /// equalities beside them, and shifts single edits sideways where that removes an equality.
    public static func cleanupMerge(_ segments: inout [DiffSegment]) {
        repeat {
            if !isJoined(segments) { segments = joined(segments) }
        } while shiftEdits(&segments)
    }

    /// Whether `joined` would change nothing. Each level of a comparison cleans up segments that the levels below have
    /// cleaned up already, so this is the usual case; the check costs a tenth of rewriting the segments.
    static func isJoined(_ segments: [DiffSegment]) -> Bool {
        segments.withUnsafeBufferPointer { segments in
            guard segments.last?.units.isEmpty != true else { return false }
            for place in segments.indices.dropFirst() {
                switch (segments[place - 1].kind, segments[place].kind) {
                case (.equal, .delete), (.equal, .insert), (.delete, .equal), (.insert, .equal): continue
                case (.delete, .insert) where place < 2 || segments[place - 2].kind == .equal:
                    guard areApart(segments[place - 1].units, segments[place].units) else { return false }
                default: return false
                }
            }
            return true
        }
    }

    /// Whether neither is empty, and they have neither a common prefix nor a common suffix.
    private static func areApart(_ deleted: [UInt16], _ inserted: [UInt16]) -> Bool {
        guard let first = deleted.first, let last = deleted.last else { return false }
        return !inserted.isEmpty && inserted.first != first && inserted.last != last
    }

    /// The edits between two equalities.
    private struct Run {
        var deleted = [UInt16]()
        var inserted = [UInt16]()
        var count = 0

        mutating func add(_ segment: DiffSegment) {
            count += 1
            if segment.kind == .delete {
                if deleted.isEmpty { deleted = segment.units } else { deleted += segment.units }
            } else {
                if inserted.isEmpty { inserted = segment.units } else { inserted += segment.units }
            }
        }
    }

    static func joined(_ segments: [DiffSegment]) -> [DiffSegment] {
        var result = [DiffSegment]()
        result.reserveCapacity(segments.count + 1)
        var run = Run()
        var lastEdit: DiffSegment?
        for place in 0...segments.count {
            // An empty equality at the end closes the last run.
            var segment = place < segments.count ? segments[place] : DiffSegment(.equal, [])
            guard segment.kind == .equal else {
                run.add(segment)
                lastEdit = segment
                continue
            }
            if run.count > 1 {
                close(run, before: &segment, &result)
                result.append(segment)
            } else if run.count == 1, let edit = lastEdit {
                result.append(edit)
                result.append(segment)
            } else if result.last?.kind == .equal {
                result[result.count - 1].units += segment.units
            } else {
                result.append(segment)
            }
            run = Run()
        }
        if result.last?.units.isEmpty == true { result.removeLast() }
        return result
    }

    /// Writes a run as one deletion and one insertion, without their common prefix and suffix.
    private static func close(_ run: Run, before next: inout DiffSegment, _ result: inout [DiffSegment]) {
        var (deleted, inserted) = (run.deleted[...], run.inserted[...])
        if !deleted.isEmpty, !inserted.isEmpty {
            let prefix = common(inserted, deleted, UnitSearch.commonPrefix)
            if prefix > 0 {
                if result.last?.kind == .equal {
                    result[result.count - 1].units += inserted.prefix(prefix)
                } else {
                    result.append(DiffSegment(.equal, inserted.prefix(prefix)))
                }
                inserted = inserted.dropFirst(prefix)
                deleted = deleted.dropFirst(prefix)
            }
            let suffix = common(inserted, deleted, UnitSearch.commonSuffix)
            if suffix > 0 {
                next.units.insert(contentsOf: inserted.suffix(suffix), at: 0)
                inserted = inserted.dropLast(suffix)
                deleted = deleted.dropLast(suffix)
            }
        }
        if !deleted.isEmpty { result.append(DiffSegment(.delete, deleted)) }
        if !inserted.isEmpty { result.append(DiffSegment(.insert, inserted)) }
    }

    static func common(
        _ left: ArraySlice<UInt16>, _ right: ArraySlice<UInt16>, _ measure: (Units, Units) -> Int
    ) -> Int {
        left.withUnsafeBufferPointer { left in right.withUnsafeBufferPointer { measure(left, $0) } }
    }

    /// The first edit between two equalities that can be shifted over one of them.
    private static func firstShift(_ segments: [DiffSegment]) -> Int? {
        guard segments.count >= 3 else { return nil }
        return segments.withUnsafeBufferPointer { segments in
            (1..<(segments.count - 1)).first { place in
                segments[place - 1].kind == .equal && segments[place + 1].kind == .equal
                    && (segments[place].units.hasSuffix(segments[place - 1].units)
                        || segments[place].units.starts(with: segments[place + 1].units))
            }
        }
    }

    /// Shifts edits between two equalities. An edit that ends with the equality before it, or begins with the one after
    /// it, can move over that equality. Returns whether an edit was moved.
    private static func shiftEdits(_ segments: inout [DiffSegment]) -> Bool {
        guard let first = firstShift(segments) else { return false }
        var changed = false
        var result = [DiffSegment]()
        result.reserveCapacity(segments.count)
        result += segments[..<first]
        var place = first
        while place < segments.count - 1 {
            let last = result.count - 1
            let edit = segments[place]
            guard result[last].kind == .equal, segments[place + 1].kind == .equal else {
                result.append(edit)
                place += 1
                continue
            }
            let before = result[last].units
            let after = segments[place + 1].units
            if edit.units.hasSuffix(before) {
                result[last] = DiffSegment(edit.kind, before + edit.units.dropLast(before.count))
                result.append(DiffSegment(.equal, before + after))
            } else if edit.units.starts(with: after) {
                result[last].units += after
                result.append(DiffSegment(edit.kind, edit.units.dropFirst(after.count) + after))
            } else {
                result.append(edit)
                place += 1
                continue
            }
            // The equality after the moved edit is not used again as a boundary in this pass.
            changed = true
            place += 2
        }
        result += segments[place...]
        segments = result
        return changed
    }
}

extension [UInt16] {
    func hasSuffix(_ end: [UInt16]) -> Bool { count >= end.count && suffix(end.count).elementsEqual(end) }
}
