/// Which bytes of contents have passed a cable, request by request, and how many of them had passed before.
public struct PassageRecord: Sendable {
    /// One request about bytes of a content.
    public struct Passage: Sendable {
        /// The method and the path without the number of a part.
        let resource: String
        /// Of the content: bytes that have passed of a part, or bytes that were asked for.
        var range: Range<Int>
        /// Interruptions before it.
        let interruptions: Int
        /// Bytes of a part, whole; 0 for a download.
        let whole: Int
    }

    public private(set) var passages: [Passage] = []
    /// Requests of any kind.
    public internal(set) var requests: Int = 0
    /// Connections that were closed at once, because the cable was pulled or the server was away.
    public internal(set) var refused: Int = 0
    var interruptions = 0

    mutating func begin(_ resource: String, _ range: Range<Int>, whole: Int) -> Int {
        passages.append(
            Passage(resource: resource, range: range, interruptions: interruptions, whole: whole))
        return passages.count - 1
    }

    mutating func extend(_ passage: Int, by count: Int) {
        let range = passages[passage].range
        passages[passage].range = range.lowerBound..<range.upperBound + count
    }

    /// Bytes of contents that have passed at least once, by requests with a method.
    public func fresh(_ method: String) -> Int { sums(method).fresh }

    /// Bytes that passed again, by the number of interruptions before.
    public func repeated(_ method: String) -> [Int: Int] { sums(method).repeated }

    /// The requests of each resource of which bytes passed again, for a message: their ranges and interruptions before.
    public func repeatedText(_ method: String) -> String {
        var all = [String: [Passage]]()
        for passage in passages where !passage.range.isEmpty && passage.resource.hasPrefix(method) {
            all[passage.resource, default: []].append(passage)
        }
        let twice = all.values.filter { list in
            var seen = [Range<Int>]()
            for passage in list {
                if seen.contains(where: { $0.overlaps(passage.range) }) { return true }
                seen.append(passage.range)
            }
            return false
        }
        return twice.flatMap { $0 }.map { "\($0.range) of \($0.whole) after \($0.interruptions) interruptions" }
            .joined(separator: "; ")
    }

    /// Parts that have passed whole more than once, each repetition counted.
    public var partsTwice: Int {
        var counts = [String: Int]()
        for passage in passages where passage.whole > 0 && passage.range.count == passage.whole {
            counts["\(passage.resource) \(passage.range.lowerBound)", default: 0] += 1
        }
        return counts.values.reduce(0) { $0 + $1 - 1 }
    }

    private func sums(_ method: String) -> (fresh: Int, repeated: [Int: Int]) {
        var covered = [String: [Range<Int>]]()
        var (fresh, repeated) = (0, [Int: Int]())
        for passage in passages where !passage.range.isEmpty && passage.resource.hasPrefix(method) {
            let known = covered[passage.resource, default: []]
            let again = known.reduce(0) { $0 + $1.clamped(to: passage.range).count }
            if again > 0 { repeated[passage.interruptions, default: 0] += again }
            fresh += passage.range.count - again
            covered[passage.resource] = Self.union(known, passage.range)
        }
        return (fresh, repeated)
    }

    /// Disjoint ranges, with one more.
    private static func union(_ ranges: [Range<Int>], _ range: Range<Int>) -> [Range<Int>] {
        let touching = ranges.filter { $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound }
        let others = ranges.filter { $0.upperBound < range.lowerBound || range.upperBound < $0.lowerBound }
        let low = touching.map(\.lowerBound).min().map { min($0, range.lowerBound) } ?? range.lowerBound
        let high = touching.map(\.upperBound).max().map { max($0, range.upperBound) } ?? range.upperBound
        return others + [low..<high]
    }
}
