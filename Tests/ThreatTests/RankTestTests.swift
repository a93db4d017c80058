import Testing
import ThicketTestSupport
import ThicketThreats

/// The test by which `./dev soak --timing` judges.
@Suite("Telling times apart by rank")
struct RankTestTests {
    @Test("rows of one distribution are told apart no more often than expected; a shift of 3 is found")
    func power() {
        var random = SeededRandom(seed: 12)
        func row(_ shift: Double) -> [Double] {
            (0..<2_000).map { _ in
                // Skewed, with a tail, as times of answers are.
                let unit = Double.random(in: 0.001..<1, using: &random)
                return 100 + shift + 10 / unit
            }
        }
        let alike = (0..<100).map { _ in RankTest.probability(row(0), row(0)) }
        #expect(alike.count { $0 < 0.001 } <= 1)
        #expect((30...70).contains(alike.count { $0 < 0.5 }))
        #expect((0..<20).allSatisfy { _ in RankTest.probability(row(0), row(3)) < 0.001 })
    }

    @Test(
        "small rows give the values of the tables of Mann and Whitney, by the normal approximation",
        arguments: [
            ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.012186), ([1, 4, 5, 8], [2, 3, 6, 7], 1),
            ([1, 1, 1], [1, 1, 1], 1), ([], [1], 1), ([1, 2, 2, 3], [2, 2, 3, 4], 0.352897),
        ] as [([Double], [Double], Double)])
    func values(left: [Double], right: [Double], expected: Double) {
        #expect(abs(RankTest.probability(left, right) - expected) < 1e-6)
        #expect(abs(RankTest.probability(right, left) - RankTest.probability(left, right)) < 1e-12)
    }

    @Test("the median of an even row is the mean of its middle two")
    func median() {
        #expect(RankTest.median([3, 1, 2]) == 2 && RankTest.median([4, 1, 2, 3]) == 2.5 && RankTest.median([]) == 0)
    }
}
