/// The comparison itself: shortcuts first, then Myers' bisection ("An O(ND) Difference Algorithm", 1986).
struct Differ {
    var budget: StepBudget

    /// The difference of two texts.
    mutating func diff(_ source: Units, _ target: Units, byLines: Bool) -> [DiffSegment] {
        if UnitSearch.areEqual(source, target) {
            return source.isEmpty ? [] : [DiffSegment(.equal, source)]
        }
        let prefix = UnitSearch.commonPrefix(source, target)
        let suffix = UnitSearch.commonSuffix(source.from(prefix), target.from(prefix))
        let sourceEnd = source.count - suffix
        var result = [DiffSegment]()
        if prefix > 0 { result.append(DiffSegment(.equal, source.upTo(prefix))) }
        result += middle(source.part(prefix, sourceEnd), target.part(prefix, target.count - suffix), byLines: byLines)
        if suffix > 0 { result.append(DiffSegment(.equal, source.from(sourceEnd))) }
        TextDiff.cleanupMerge(&result)
        return result
    }

    /// The difference of two texts without a common prefix or suffix.
    private mutating func middle(_ source: Units, _ target: Units, byLines: Bool) -> [DiffSegment] {
        if source.isEmpty { return [DiffSegment(.insert, target)] }
        if target.isEmpty { return [DiffSegment(.delete, source)] }
        let grows = source.count <= target.count
        let (short, long) = grows ? (source, target) : (target, source)
        if let place: Int = UnitSearch.first(short, in: long) {
            let kind: DiffSegment.Kind = grows ? .insert : .delete
            return [
                DiffSegment(kind, long.upTo(place)), DiffSegment(.equal, short),
                DiffSegment(kind, long.from(place + short.count)),
            ]
        }
        if short.count == 1 { return whole(source, target) }
        if let half: HalfMatch = halfMatch(source, target) {
            return diff(source.upTo(half.source), target.upTo(half.target), byLines: byLines)
                + [DiffSegment(.equal, source.part(half.source, half.source + half.length))]
                + diff(source.from(half.source + half.length), target.from(half.target + half.length), byLines: byLines)
        }
        if byLines, source.count > TextDiff.lineModeFrom, target.count > TextDiff.lineModeFrom {
            return lineMode(source, target)
        }
        return bisect(source, target)
    }

    func whole(_ source: Units, _ target: Units) -> [DiffSegment] {
        [DiffSegment(.delete, source), DiffSegment(.insert, target)]
    }

    // MARK: Half match

    /// A common part that is at least half as long as the longer text.
    private struct HalfMatch {
        var source: Int
        var target: Int
        var length: Int
    }

    private mutating func halfMatch(_ source: Units, _ target: Units) -> HalfMatch? {
        let isSourceLong = source.count > target.count
        let (long, short) = isSourceLong ? (source, target) : (target, source)
        guard long.count >= 4, short.count * 2 >= long.count else { return nil }
        let second = halfMatch(long, short, seedAt: (long.count + 3) / 4)
        let third = halfMatch(long, short, seedAt: (long.count + 1) / 2)
        guard second != nil || third != nil else { return nil }
        let isSecondBest = (second?.length ?? -1) > (third?.length ?? -1)
        guard let best = isSecondBest ? second : third else { return nil }
        return isSourceLong
            ? HalfMatch(source: best.long, target: best.short, length: best.length)
            : HalfMatch(source: best.short, target: best.long, length: best.length)
    }

    /// Searches the short text for a quarter of the long one, and extends each match in both directions.
    private mutating func halfMatch(
        _ long: Units, _ short: Units, seedAt start: Int
    ) -> (long: Int, short: Int, length: Int)? {
        let seed = long.part(start, start + long.count / 4)
        var best: (long: Int, short: Int, length: Int) = (0, 0, 0)
        var from = 0
        while let place: Int = UnitSearch.first(seed, in: short, from: from) {
            let prefix = UnitSearch.commonPrefix(long.from(start), short.from(place))
            let suffix = UnitSearch.commonSuffix(long.upTo(start), short.upTo(place))
            if best.length < prefix + suffix { best = (start - suffix, place - suffix, prefix + suffix) }
            budget.spend((place - from + prefix + suffix) / 4 + 1)
            if budget.isUsedUp { break }
            from = place + 1
        }
        return best.length * 2 >= long.count ? best : nil
    }

    // MARK: Bisection

    /// Finds the middle of the shortest edit, and compares the parts before and after it.
    mutating func bisect(_ source: Units, _ target: Units) -> [DiffSegment] {
        guard let split = middleSnake(source, target) else { return whole(source, target) }
        return diff(source.upTo(split.source), target.upTo(split.target), byLines: false)
            + diff(source.from(split.source), target.from(split.target), byLines: false)
    }

    /// Where the paths from both ends meet; nil when they never meet or the budget is used up.
    private mutating func middleSnake(_ source: Units, _ target: Units) -> (source: Int, target: Int)? {
        let roundsMax = (source.count + target.count + 1) / 2
        let width = 2 * roundsMax
        var search = Bisection(source, target, center: roundsMax, width: width)
        var forward: [Int32] = Array(repeating: -1, count: width + 2)
        var backward: [Int32] = forward
        forward[roundsMax + 1] = 0
        backward[roundsMax + 1] = 0
        return forward.withUnsafeMutableBufferPointer { forward in
            backward.withUnsafeMutableBufferPointer { backward in
                for round in 0..<roundsMax {
                    guard !budget.isUsedUp else { return nil }
                    if let split = search.advance(round, forward, backward) { return split }
                    if let split = search.retreat(round, forward, backward) { return split }
                    budget.spend(search.takeSteps())
                }
                return nil
            }
        }
    }
}

/// Two fronts of furthest-reaching paths, one from each end, that grow by one edit per round.
private struct Bisection {
    private let source: Units
    private let target: Units
    private let center: Int
    private let width: Int
    /// Difference of the lengths. If it is odd, the forward front detects the meeting, otherwise the backward front.
    private let delta: Int
    private var forwardTrim: (start: Int, end: Int) = (0, 0)
    private var backwardTrim: (start: Int, end: Int) = (0, 0)
    private var steps = 0

    init(_ source: Units, _ target: Units, center: Int, width: Int) {
        self.source = source
        self.target = target
        self.center = center
        self.width = width
        delta = source.count - target.count
    }

    mutating func takeSteps() -> Int {
        defer { steps = 0 }
        return steps
    }

    /// Steps of one move along a diagonal over `count` equal units. A move with equal units costs six steps more,
    /// because the processor mispredicts the branch; a misprediction takes as long as three moves without equal units.
    @inline(__always)
    private func cost(of count: Int) -> Int { 2 &+ count &+ (count > 0 ? 6 : 0) }

    typealias Front = UnsafeMutableBufferPointer<Int32>

    /// The furthest start on diagonal `k`: one down from above or one right from the left.
    @inline(__always)
    private func start(_ front: Front, _ round: Int, _ k: Int) -> Int {
        let (below, above) = (front[center + k - 1 + (k == -round ? 1 : 0)], front[center + k + 1])
        return k == -round || (k != round && below < above) ? Int(above) : Int(below) + 1
    }

    mutating func advance(_ round: Int, _ forward: Front, _ backward: Front) -> (source: Int, target: Int)? {
        let meets = delta & 1 != 0
        var k: Int = -round + forwardTrim.start
        while k <= round - forwardTrim.end {
            var x = start(forward, round, k)
            var y = x - k
            let from: Int = x
            while x < source.count, y < target.count, source[x] == target[y] {
                x += 1
                y += 1
            }
            steps &+= cost(of: x &- from)
            forward[center + k] = Int32(truncatingIfNeeded: x)
            if x > source.count {
                forwardTrim.end += 2
            } else if y > target.count {
                forwardTrim.start += 2
            } else if meets {
                let place = center + delta - k
                if place >= 0, place < width, backward[place] != -1, x >= source.count - Int(backward[place]) {
                    return (x, y)
                }
            }
            k += 2
        }
        return nil
    }

    mutating func retreat(_ round: Int, _ forward: Front, _ backward: Front) -> (source: Int, target: Int)? {
        let meets = delta & 1 == 0
        var k: Int = -round + backwardTrim.start
        while k <= round - backwardTrim.end {
            var x = start(backward, round, k)
            var y = x - k
            let from: Int = x
            while x < source.count, y < target.count,
                source[source.count - x - 1] == target[target.count - y - 1]
            {
                x += 1
                y += 1
            }
            steps &+= cost(of: x &- from)
            backward[center + k] = Int32(truncatingIfNeeded: x)
            if x > source.count {
                backwardTrim.end += 2
            } else if y > target.count {
                backwardTrim.start += 2
            } else if meets {
                let place = center + delta - k
                if place >= 0, place < width, forward[place] != -1 {
                    let reached = Int(forward[place])
                    if reached >= source.count - x { return (reached, center + reached - place) }
                }
            }
            k += 2
        }
        return nil
    }
}
