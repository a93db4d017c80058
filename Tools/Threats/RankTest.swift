import Glibc

/// Whether two rows of measurements differ by their ranks (Mann and Whitney 1947, two-sided, normal approximation with
/// the correction for ties). It does not assume a distribution, since times have no known one.
public enum RankTest {
    /// The probability that two rows of the same distribution differ at least this much.
    /// - Returns: 1 if a row is empty.
    public static func probability(_ left: [Double], _ right: [Double]) -> Double {
        guard !left.isEmpty, !right.isEmpty else { return 1 }
        let all: [(value: Double, isLeft: Bool)] =
            (left.map { ($0, true) } + right.map { ($0, false) }).sorted { $0.value < $1.value }
        let (m, n) = (Double(left.count), Double(right.count))
        let total = m + n
        var rankSum: Double = 0
        var ties: Double = 0
        var start = 0
        while start < all.count {
            var end: Int = start
            while end < all.count, all[end].value == all[start].value { end += 1 }
            // Equal values share the mean of their ranks, which count from 1.
            let rank: Double = Double(start + end + 1) / 2
            rankSum += rank * Double(all[start..<end].count(where: \.isLeft))
            let count = Double(end - start)
            ties += count * count * count - count
            start = end
        }
        let statistic = rankSum - m * (m + 1) / 2
        let variance = m * n / 12 * (total + 1 - ties / (total * max(1, total - 1)))
        guard variance > 0 else { return 1 }
        let distance = max(0, abs(statistic - m * n / 2) - 0.5) / variance.squareRoot()
        return erfc(distance / 2.0.squareRoot())
    }

    /// The median; 0 for an empty list.
    public static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return 0 }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
