/// The permutation from the result of one edit to the result of another edit of the same source, when both keep and
/// insert the same and differ only in the places of insertions.
///
/// An edit is described by runs of names in the order of its result: the name of a unit of the source (of a text, or an
/// element of a list) is its place in the source, and insertions are numbered on from the end of the source.
struct Rearrangement {
    /// Ranges of the first result, in the order of the second; each place occurs once, and no range is empty.
    private(set) var pieces = [Range<Int>]()

    /// Nil when the two do not keep and insert the same.
    init?(from first: [Range<Int>], to second: [Range<Int>]) {
        var known = [(names: Range<Int>, place: Int)]()
        var place = 0
        for names in first {
            known.append((names: names, place: place))
            place += names.count
        }
        known.sort { $0.names.lowerBound < $1.names.lowerBound }
        guard Self.joined(first) == Self.joined(second) else { return nil }
        for names in second {
            var name = names.lowerBound
            while name < names.upperBound {
                let run = known[Self.index(of: name, in: known)]
                let end = min(names.upperBound, run.names.upperBound)
                let start = run.place + name - run.names.lowerBound
                add(start..<(start + end - name))
                name = end
            }
        }
    }

    /// Whether both results are equal.
    var isIdentity: Bool { pieces.count <= 1 }

    private mutating func add(_ piece: Range<Int>) {
        if let last = pieces.last, last.upperBound == piece.lowerBound {
            pieces[pieces.count - 1] = last.lowerBound..<piece.upperBound
        } else {
            pieces.append(piece)
        }
    }

    /// The set of names, as ordered ranges.
    private static func joined(_ runs: [Range<Int>]) -> [Range<Int>] {
        var result = [Range<Int>]()
        for run in runs.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = result.last, last.upperBound == run.lowerBound {
                result[result.count - 1] = last.lowerBound..<run.upperBound
            } else {
                result.append(run)
            }
        }
        return result
    }

    /// The run that contains a name, among runs ordered by name.
    private static func index(of name: Int, in runs: [(names: Range<Int>, place: Int)]) -> Int {
        var (low, high) = (0, runs.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if runs[middle].names.lowerBound <= name { low = middle } else { high = middle }
        }
        return low
    }

    /// An edit of the first result, cut into pieces that are put in the order of the second.
    ///
    /// An insertion stays after the piece on its left; one at the very beginning stays at the beginning.
    ///
    /// - Parameters:
    ///   - steps: the steps of the edit.
    ///   - length: the number of places that a step covers; 0 for an insertion.
    ///   - part: the step for the first `n` places of a step.
    ///   - keep: a step that keeps `n` places.
    func apply<Step>(
        to steps: [Step], length: (Step) -> Int, part: (Step, Int) -> Step, keep: (Int) -> Step
    ) -> [Step] {
        let order: [Int] = pieces.indices.sorted { pieces[$0].lowerBound < pieces[$1].lowerBound }
        var parts = [[Step]](repeating: [], count: pieces.count)
        var head = [Step]()
        var (place, index) = (0, 0)
        func cover(_ step: Step, _ count: Int) {
            var left = count
            while left > 0, index < order.count {
                let end = pieces[order[index]].upperBound
                if place == end {
                    index += 1
                    continue
                }
                let now = min(left, end - place)
                parts[order[index]].append(part(step, now))
                place += now
                left -= now
            }
        }
        for step in steps {
            let count = length(step)
            if count > 0 {
                cover(step, count)
            } else if place == 0 {
                head.append(step)
            } else {
                parts[order[index]].append(step)
            }
        }
        let all = pieces.reduce(0) { $0 + $1.count }
        if place < all { cover(keep(all - place), all - place) }
        return head + parts.flatMap { $0 }
    }
}

extension TextDelta {
    /// This edit of the result of `made` as an edit of the result of `applied`, if that is the same in another order;
    /// nil otherwise. Both are edits of one text.
    func following(from made: TextDelta, to applied: TextDelta) -> TextDelta? {
        guard made.sourceLength == applied.sourceLength, made.targetLength == sourceLength,
            made.inserted == applied.inserted,
            let change = Rearrangement(from: made.runs, to: applied.runs)
        else { return nil }
        let steps = change.apply(
            to: operations,
            length: { (step: TextOperation) in
                switch step {
                case .retain(let count), .delete(let count): count
                case .insert: 0
                }
            },
            part: { (step: TextOperation, count: Int) in
                if case .delete = step { .delete(count) } else { .retain(count) }
            }, keep: { (count: Int) in .retain(count) })
        return TextDelta(marked: steps)
    }

    /// Builds the normal form like `init(_:)`, but keeps the marks `-0`.
    private init(marked steps: [TextOperation]) {
        self.init()
        var isMarked = false
        for step in steps {
            switch step {
            case .retain(let count): retain(count)
            case .delete(let count): delete(count)
            case .insert(let units): insert(units, isBehindGone: isMarked)
            }
            isMarked = step == .delete(0)
        }
    }

    private var inserted: [UInt16] {
        operations.flatMap { (step: TextOperation) -> [UInt16] in
            if case .insert(let units) = step { units } else { [] }
        }
    }

    private var runs: [Range<Int>] {
        var result = [Range<Int>]()
        var (place, next) = (0, sourceLength)
        for operation in operations {
            switch operation {
            case .retain(let count):
                result.append(place..<(place + count))
                place += count
            case .delete(let count): place += count
            case .insert(let units):
                result.append(next..<(next + units.count))
                next += units.count
            }
        }
        return result
    }
}

extension ListDelta {
    /// This edit of the result of `made` as an edit of the result of `applied`, as for texts; `count` is the number of
    /// elements of their source. Both must also edit elements in the same way.
    func following(from made: ListDelta, to applied: ListDelta, count: Int) -> ListDelta? {
        let (first, second) = (made.summary(count), applied.summary(count))
        guard first.inserted == second.inserted, first.edits == second.edits,
            let change = Rearrangement(from: first.runs, to: second.runs)
        else { return nil }
        let steps = change.apply(
            to: steps,
            length: { (step: Step) in
                switch step {
                case .retain(let count): count
                case .delete, .edit: 1
                case .insert: 0
                }
            },
            part: { (step: Step, count: Int) in if case .retain = step { .retain(count) } else { step } },
            keep: { (count: Int) in .retain(count) })
        var result = ListDelta()
        for step in steps { result.append(step) }
        // Elements after the last step are kept anyway.
        if case .retain? = result.steps.last { result.removeLastStep() }
        return result
    }

    private struct Summary {
        var runs = [Range<Int>]()
        var inserted = [JSONValue]()
        var edits = [Int: Operation]()
    }

    private func summary(_ count: Int) -> Summary {
        var result = Summary()
        var place = 0
        for step in steps {
            switch step {
            case .retain(let kept):
                result.runs.append(place..<(place + kept))
                place += kept
            case .edit(let operation):
                result.runs.append(place..<(place + 1))
                result.edits[place] = operation
                place += 1
            case .delete: place += 1
            case .insert(let value):
                result.runs.append((count + result.inserted.count)..<(count + result.inserted.count + 1))
                result.inserted.append(value)
            }
        }
        if place < count { result.runs.append(place..<count) }
        return result
    }
}
