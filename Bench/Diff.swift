import ThicketProtocol

/// What a diff costs: a small edit of texts of three sizes, and what the step budget must cut off, with the worst known.
///
/// `StepBudget.standard` counts steps because the protocol module has no clock; the last figures are what it comes to here
/// and should be near 50 ms. At several times that, change the constant.
func diffs() -> [Figure] {
    var figures: [Figure] = [1_000, 10_000, 100_000].map { size in
        let source: [UInt16] = words(size, seed: 1)
        var target: [UInt16] = source
        target.replaceSubrange(size / 3..<size / 3 + 5, with: Array("other words".utf16))
        target.insert(contentsOf: Array("typed".utf16), at: size * 2 / 3)
        let milliseconds: Double = median(of: 9) {
            var budget: StepBudget = .standard
            _ = TextDelta.diff(from: source, to: target, budget: &budget).encoded
        }
        return Figure(name: "diff of \(size / 1_000) KB, two edits", value: milliseconds, unit: "ms")
    }
    let cases: [(name: String, source: [UInt16], target: [UInt16])] = [
        ("40 KB rewritten", noise(40_000, seed: 2), noise(40_000, seed: 3)),
        ("500 KB of two letters rewritten", noise(500_000, seed: 2, letters: 2), noise(500_000, seed: 3, letters: 2)),
        ("1 MB of lines rewritten", words(1_000_000, seed: 2), words(1_000_000, seed: 3)),
    ]
    for (name, source, target): (String, [UInt16], [UInt16]) in cases {
        let milliseconds: Double = median(of: 5) {
            var budget: StepBudget = .standard
            _ = TextDelta.diff(from: source, to: target, budget: &budget)
        }
        figures.append(Figure(name: "\(name), cut off by the budget", value: milliseconds, unit: "ms"))
    }
    return figures
}

private func median(of rounds: Int, _ body: () -> Void) -> Double {
    let times: [Double] = (0..<rounds).map { _ in
        let start: UInt64 = nanoseconds()
        body()
        return Double(nanoseconds() - start) / 1e6
    }
    return times.sorted()[rounds / 2]
}

private func words(_ count: Int, seed: UInt64) -> [UInt16] {
    let letters: [UInt16] = Array("etaoin shrdlu cmfwyp vbgkjq xz\n".utf16)
    return noise(count, seed: seed, letters: 31).map { letters[Int($0) % letters.count] }
}

/// Letters without any likeness to each other.
private func noise(_ count: Int, seed: UInt64, letters: UInt64 = 26) -> [UInt16] {
    var state: UInt64 = seed
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt16(0x61 + (state >> 33) % letters)
    }
}
