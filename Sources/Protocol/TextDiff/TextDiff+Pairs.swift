import ThicketPlatform
extension TextDiff {
    /// Moves the ends of equalities out of surrogate pairs, so that every segment contains whole characters. Both texts
    /// must contain whole pairs only. Nothing changes where no pair is cut.
    static func keepPairsWhole(_ segments: inout [DiffSegment]) {
        let cutsPair = segments.contains { segment in
            guard segment.kind == .equal, let first = segment.units.first, let last = segment.units.last else {
                return false
            }
            return UTF16Text.isLow(first) || UTF16Text.isHigh(last)
        }
        guard cutsPair else { return }
        var (equalities, runs) = regrouped(segments)
        for place in runs.indices {
            if let high = equalities[place].last, UTF16Text.isHigh(high) {
                equalities[place].removeLast()
                runs[place].prepend(high)
            }
            if let low = equalities[place + 1].first, UTF16Text.isLow(low) {
                equalities[place + 1].removeFirst()
                runs[place].append(low)
            }
        }
        segments = written(equalities, runs)
    }

    /// For a target text that contains halves of pairs because a hunk was placed inside a pair of the source: moves the
    /// edit before the pair, as the current clients do when they write such a difference.
    static func moveOutOfPairs(_ segments: inout [DiffSegment]) {
        var held: UInt16?
        for place in segments.indices {
            let first = held
            if let last = segments[place].units.last, UTF16Text.isHigh(last) {
                held = last
                segments[place].units.removeLast()
            }
            if let first, let low = segments[place].units.first, UTF16Text.isLow(low) {
                segments[place].units.insert(first, at: 0)
            }
        }
    }

    /// The deleted and the inserted text between two equalities.
    private struct Replacement {
        var deleted = [UInt16]()
        var inserted = [UInt16]()

        mutating func prepend(_ unit: UInt16) {
            deleted.insert(unit, at: 0)
            inserted.insert(unit, at: 0)
        }

        mutating func append(_ unit: UInt16) {
            deleted.append(unit)
            inserted.append(unit)
        }

        /// Removes and returns the whole characters that both texts begin with.
        mutating func takePrefix() -> [UInt16] {
            var count = TextDiff.common(deleted[...], inserted[...], UnitSearch.commonPrefix)
            if count > 0, UTF16Text.isHigh(deleted[count - 1]) { count -= 1 }
            let prefix = Array(deleted.prefix(count))
            deleted.removeFirst(count)
            inserted.removeFirst(count)
            return prefix
        }

        /// Removes and returns the whole characters that both texts end with.
        mutating func takeSuffix() -> [UInt16] {
            var count = TextDiff.common(deleted[...], inserted[...], UnitSearch.commonSuffix)
            if count > 0, UTF16Text.isLow(deleted[deleted.count - count]) { count -= 1 }
            let suffix = Array(deleted.suffix(count))
            deleted.removeLast(count)
            inserted.removeLast(count)
            return suffix
        }
    }

    /// One equality (possibly empty) before, between and after the runs of edits.
    private static func regrouped(_ segments: [DiffSegment]) -> ([[UInt16]], [Replacement]) {
        var equalities: [[UInt16]] = [[]]
        var runs = [Replacement]()
        for segment in segments {
            if segment.kind == .equal {
                equalities[equalities.count - 1] += segment.units
                continue
            }
            if runs.isEmpty || !equalities[equalities.count - 1].isEmpty {
                runs.append(Replacement())
                equalities.append([])
            }
            if segment.kind == .delete {
                runs[runs.count - 1].deleted += segment.units
            } else {
                runs[runs.count - 1].inserted += segment.units
            }
        }
        return (equalities, runs)
    }

    private static func written(_ equalities: [[UInt16]], _ runs: [Replacement]) -> [DiffSegment] {
        var result = [DiffSegment]()
        var run = Replacement()
        func add(_ kind: DiffSegment.Kind, _ units: [UInt16]) {
            guard !units.isEmpty else { return }
            if result.last?.kind == kind {
                result[result.count - 1].units += units
            } else {
                result.append(.init(kind, units))
            }
        }
        add(.equal, equalities[0])
        for (place, next) in runs.enumerated() {
            run.deleted += next.deleted
            run.inserted += next.inserted
            // An equality that consisted of one half only is empty now; the runs beside it become one.
            if equalities[place + 1].isEmpty, place + 1 < runs.count { continue }
            add(.equal, run.takePrefix())
            let suffix = run.takeSuffix()
            add(.delete, run.deleted)
            add(.insert, run.inserted)
            add(.equal, suffix + equalities[place + 1])
            run = Replacement()
        }
        return result
    }
}
