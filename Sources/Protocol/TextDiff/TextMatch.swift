/// Finds a short text near an expected place, with errors (the bitap algorithm of Wu and Manber, 1992).
enum TextMatch {
    /// Worst score that counts as found: 0 is a perfect match at the expected place.
    static let threshold = 0.5
    /// A match this many units away from the expected place scores as badly as one in which no unit matches.
    static let distance: Double = 1_000

    /// The best place of `pattern` (at most `TextPatch.searchMax` units) near `expected`; nil when none is good enough.
    static func find(_ pattern: Units, in text: Units, near expected: Int, budget: inout StepBudget) -> Int? {
        let place = max(0, min(expected, text.count))
        if UnitSearch.areEqual(text, pattern) { return 0 }
        if text.isEmpty { return nil }
        if place + pattern.count <= text.count,
            UnitSearch.areEqual(text.part(place, place + pattern.count), pattern)
        {
            return place
        }
        return bitap(pattern, in: text, near: place, budget: &budget)
    }

    private static func bitap(
        _ pattern: Units, in text: Units, near expected: Int, budget: inout StepBudget
    ) -> Int? {
        guard !pattern.isEmpty, pattern.count <= TextPatch.searchMax else { return nil }
        budget.spend(text.count / 2 + 1)
        var search = Bitap(pattern, text, expected)
        if let place = UnitSearch.first(pattern, in: text, from: expected) {
            search.threshold = min(search.score(errors: 0, at: place), search.threshold)
            if let place: Int = UnitSearch.last(pattern, in: text, from: expected + pattern.count) {
                search.threshold = min(search.score(errors: 0, at: place), search.threshold)
            }
        }
        return search.run(&budget)
    }
}

private struct Bitap {
    private let pattern: Units
    private let text: Units
    private let expected: Int
    private let alphabet: [UInt16: UInt32]
    var threshold = TextMatch.threshold
    private var best: Int?

    init(_ pattern: Units, _ text: Units, _ expected: Int) {
        self.pattern = pattern
        self.text = text
        self.expected = expected
        var alphabet = [UInt16: UInt32]()
        for (place, unit) in pattern.enumerated() {
            alphabet[unit, default: 0] |= 1 << UInt32(pattern.count - place - 1)
        }
        self.alphabet = alphabet
    }

    func score(errors: Int, at place: Int) -> Double {
        Double(errors) / Double(pattern.count) + Double(abs(expected - place)) / TextMatch.distance
    }

    mutating func run(_ budget: inout StepBudget) -> Int? {
        var reachMax = pattern.count + text.count
        // The match bits of the current round by place, and those of the previous round, with one error less.
        var row = [UInt32]()
        var before = [UInt32]()
        var origin = 0
        for errors in 0..<pattern.count {
            reachMax = reach(errors: errors, atMost: reachMax)
            let start = max(1, expected - reachMax + 1)
            let finish = min(expected + reachMax, text.count) + pattern.count
            if errors == 0 {
                origin = start - 1
                row = Array(repeating: 0, count: finish + 3 - origin)
            }
            swap(&row, &before)
            row = Array(repeating: 0, count: before.count)
            budget.spend(max(0, finish - start) + 1)
            fill(&row, before, errors, from: finish, downTo: start, origin)
            if score(errors: errors + 1, at: expected) > threshold { break }
        }
        return best
    }

    /// The largest distance from the expected place of a match with this many errors.
    private func reach(errors: Int, atMost most: Int) -> Int {
        var (low, middle, high) = (0, most, most)
        while low < middle {
            if score(errors: errors, at: expected + middle) <= threshold { low = middle } else { high = middle }
            middle = (high - low) / 2 + low
        }
        return middle
    }

    private mutating func fill(
        _ row: inout [UInt32], _ before: [UInt32], _ errors: Int, from finish: Int, downTo first: Int, _ origin: Int
    ) {
        let goal: UInt32 = 1 << UInt32(pattern.count - 1)
        var start = first
        row[finish + 1 - origin] = (1 << UInt32(errors)) - 1
        var place = finish
        while place >= start {
            let at = place - origin
            let fits = place <= text.count ? alphabet[text[place - 1]] ?? 0 : 0
            var bits = (row[at + 1] << 1 | 1) & fits
            if errors > 0 { bits |= (before[at + 1] | before[at]) << 1 | 1 | before[at + 1] }
            row[at] = bits
            if bits & goal != 0 {
                let score = self.score(errors: errors, at: place - 1)
                if score <= threshold {
                    threshold = score
                    best = place - 1
                    // Right of the expected place, the search continues as far on its left side; left of it, only worse
                    // matches follow.
                    guard place - 1 > expected else { return }
                    start = max(1, 2 * expected - (place - 1))
                }
            }
            place -= 1
        }
    }
}
