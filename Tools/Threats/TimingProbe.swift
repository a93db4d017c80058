import Glibc
import ThicketProcesses
import ThicketTestSupport

/// Requests whose answers must be equally fast, measured alternately.
struct TimingProbe {
    /// Its subject, with the number of the threat.
    let name: String
    /// The kinds that must be indistinguishable.
    let kinds: [String]
    /// Measurements of each kind.
    let count: Int
    /// Rounds on one connection; the next connection is from another address.
    let roundsPerAddress: Int
    /// The required status of every answer.
    let status: Int
    /// The request of a kind in a round.
    let request: (_ kind: Int, _ round: Int) -> [UInt8]

    /// Largest distance of medians, as a fraction of the smaller one (spec, T12).
    static let apartMax = 0.05
    /// Probability below which the ranks distinguish two kinds (spec, T12).
    static let probabilityMin = 0.001
    /// Rounds before the first that counts.
    private static let warmUp = 20

    struct Result {
        /// Microseconds, by kind.
        var times: [[Double]]

        var medians: [Double] { times.map(RankTest.median) }
        var apart: Double { (medians.max() ?? 0) / max(1e-9, medians.min() ?? 0) - 1 }
        /// The probability for the two kinds that differ most.
        var probability: Double {
            var least: Double = 1
            for left in times.indices {
                for right in times.indices where right > left {
                    least = min(least, RankTest.probability(times[left], times[right]))
                }
            }
            return least
        }
        var isPassed: Bool { apart <= TimingProbe.apartMax && probability >= TimingProbe.probabilityMin }
    }

    /// Measures all kinds alternately, in another order each round.
    /// - Parameter addresses: the next client address, as in `Caller.init`.
    func measure(port: UInt16, addresses: inout UInt32, random: inout SeededRandom) throws(ProcessError) -> Result {
        var times = [[Double]](repeating: [], count: kinds.count)
        var caller: Caller?
        for round in 0..<(count + Self.warmUp) {
            if round % roundsPerAddress == 0 {
                addresses += 1
                caller = try Caller(port: port, source: addresses)
                // The first answer on a connection is slower, whatever it is.
                _ = try caller?.ask("GET", "/health/live")
            }
            for kind in kinds.indices.shuffled(using: &random) {
                let bytes = request(kind, round)
                let begun = Self.nanoseconds()
                try caller?.send(bytes)
                let reply = try caller?.reply()
                let passed = Self.nanoseconds() - begun
                guard reply?.status == status else {
                    throw ProcessError("\(name), \(kinds[kind]): \(reply?.status as Any) \(reply?.text ?? "")")
                }
                if round >= Self.warmUp { times[kind].append(Double(passed) / 1_000) }
            }
        }
        return Result(times: times)
    }

    private static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
