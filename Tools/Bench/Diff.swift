import ThicketProtocol

/// The cost of a diff in CPU time: a small edit of texts of three sizes, applying it, and texts at which the step
/// budget must stop the comparison, with the worst known.
///
/// `StepBudget.standard` counts steps because the protocol module has no clock. The last figures show the time of that
/// budget on this machine: the cap is 50 ms, to be honoured within 20 %. At several times that, change the constant.
/// Then the same beside other programs.
func diffs() throws -> [Figure] {
    var figures: [Figure] = []
    for size: Int in [1_000, 10_000, 100_000] {
        let source: [UInt16] = words(size, seed: 1)
        var target: [UInt16] = source
        target.replaceSubrange(size / 3..<size / 3 + 5, with: Array("other words".utf16))
        target.insert(contentsOf: Array("typed".utf16), at: size * 2 / 3)
        var budget: StepBudget = .standard
        let delta: TextDelta = TextDelta.diff(from: source, to: target, budget: &budget)
        try check(delta, source, target)
        let name = "\(size / 1_000) KB, two edits"
        let making: [Double] = samples(9) {
            var budget: StepBudget = .standard
            return TextDelta.diff(from: source, to: target, budget: &budget).encoded.utf8.count
        }
        let applying: [Double] = samples(9) { (try? delta.apply(to: source).count) ?? 0 }
        figures.append(Figure(name: "diff of \(name)", samples: making, unit: "ms"))
        figures.append(Figure(name: "applying it, \(name)", samples: applying, unit: "ms"))
    }
    let cases: [(name: String, source: [UInt16], target: [UInt16])] = [
        ("40 KB rewritten", noise(40_000, seed: 2), noise(40_000, seed: 3)),
        ("500 KB of two letters rewritten", noise(500_000, seed: 2, letters: 2), noise(500_000, seed: 3, letters: 2)),
        ("1 MB of lines rewritten", words(1_000_000, seed: 2), words(1_000_000, seed: 3)),
    ]
    for (name, source, target) in cases {
        var budget: StepBudget = .standard
        try check(TextDelta.diff(from: source, to: target, budget: &budget), source, target)
        guard budget.isUsedUp else { throw BenchError("\(name): the budget was not used up, so nothing is cut off") }
        let milliseconds: [Double] = samples(5) {
            var budget: StepBudget = .standard
            _ = TextDelta.diff(from: source, to: target, budget: &budget)
            return StepBudget.standard.remaining - budget.remaining
        }
        figures.append(
            Figure(name: "\(name), cut off by the budget", samples: milliseconds, unit: "ms", goal: .atMost(60)))
    }
    return figures + (try diffsBesidePeers())
}

func check(_ delta: TextDelta, _ source: [UInt16], _ target: [UInt16]) throws {
    guard try delta.apply(to: source) == target else { throw BenchError("a diff does not lead to its target") }
}

/// ms of CPU time, over rounds of at least this length. A round whose `body` returns 0 gives no figure.
func samples(_ rounds: Int, nanosecondsMin: UInt64 = 2_000_000, _ body: () -> Int) -> [Double] {
    (0..<rounds).map { _ in
        var count = 0
        let start: UInt64 = cpuNanoseconds()
        var now: UInt64 = start
        while now - start < nanosecondsMin {
            guard body() > 0 else { return .nan }
            count += 1
            now = cpuNanoseconds()
        }
        return Double(now - start) / Double(count) / 1e6
    }
}

/// Lines of lower case letters.
func words(_ count: Int, seed: UInt64) -> [UInt16] {
    let letters: [UInt16] = Array("etaoin shrdlu cmfwyp vbgkjq xz\n".utf16)
    return noise(count, seed: seed, letters: 31).map { letters[Int($0) % letters.count] }
}

/// Random letters without any common structure.
private func noise(_ count: Int, seed: UInt64, letters: UInt64 = 26) -> [UInt16] {
    var state: UInt64 = seed
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt16(0x61 + (state >> 33) % letters)
    }
}
