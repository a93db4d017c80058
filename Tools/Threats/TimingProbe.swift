import Glibc
import ThicketProcesses
import ThicketTestSupport

/// Requests whose answers are to take equally long, measured in turns.
struct TimingProbe {
    /// What it is about, with the number of the threat.
    let name: String
    /// The kinds that must not be told apart.
    let kinds: [String]
    /// Measurements of each kind.
    let count: Int
    /// Rounds on one connection; the next comes from another address.
    let roundsPerAddress: Int
    /// The status that every answer has to have.
    let status: Int
    /// The request of a kind in a round.
    let request: (_ kind: Int, _ round: Int) -> [UInt8]

    /// Farthest that medians may lie apart, as a part of the smaller one (spec, T12).
    static let apartMax: Double = 0.05
    /// Below it the ranks tell two kinds apart (spec, T12).
    static let probabilityMin: Double = 0.001
    /// Rounds before the first that counts.
    private static let warmUp: Int = 20

    struct Result {
        /// Microseconds, by kind.
        var times: [[Double]]

        var medians: [Double] { times.map(RankTest.median) }
        var apart: Double { (medians.max() ?? 0) / max(1e-9, medians.min() ?? 0) - 1 }
        /// Of the two kinds that are told apart best.
        var probability: Double {
            var least: Double = 1
            for left: Int in times.indices {
                for right: Int in times.indices where right > left {
                    least = min(least, RankTest.probability(times[left], times[right]))
                }
            }
            return least
        }
        var isPassed: Bool { apart <= TimingProbe.apartMax && probability >= TimingProbe.probabilityMin }
    }

    /// Measures all kinds in turns, in another order each round.
    /// - Parameter addresses: the next address to come from, as `Caller` takes it.
    func measure(port: UInt16, addresses: inout UInt32, random: inout SeededRandom) throws(ProcessError) -> Result {
        var times: [[Double]] = .init(repeating: [], count: kinds.count)
        var caller: Caller?
        for round: Int in 0..<(count + Self.warmUp) {
            if round % roundsPerAddress == 0 {
                addresses += 1
                caller = try Caller(port: port, source: addresses)
                // The first answer on a connection takes longer, whatever it is.
                _ = try caller?.ask("GET", "/health/live")
            }
            for kind: Int in kinds.indices.shuffled(using: &random) {
                let bytes: [UInt8] = request(kind, round)
                let begun: Int64 = Self.nanoseconds()
                try caller?.send(bytes)
                let reply: Caller.Reply? = try caller?.reply()
                let passed: Int64 = Self.nanoseconds() - begun
                guard reply?.status == status else {
                    throw ProcessError("\(name), \(kinds[kind]): \(reply?.status as Any) \(reply?.text ?? "")")
                }
                if round >= Self.warmUp { times[kind].append(Double(passed) / 1_000) }
            }
        }
        return Result(times: times)
    }

    private static func nanoseconds() -> Int64 {
        var time: timespec = .init()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
