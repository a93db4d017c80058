/// Detects a sender that exceeds its rate: a token bucket, stored as the time at which it is full again.
struct RateMeter {
    /// What to do with one more event.
    enum Verdict: Equatable {
        /// Within the rate.
        case admit
        /// Above the rate: take this one, and read no more before that time (nanoseconds).
        case slow(until: Int64)
        /// Above the rate by a whole further burst: refuse this one.
        case refuse
    }

    /// Nanoseconds that one event costs.
    private var cost: Int64 = 1
    /// Largest credit, nanoseconds.
    private var credit: Int64 = 1
    /// When everything taken so far is paid for.
    private var paidAt = Int64.min

    /// - Parameters:
    ///   - perSecond: events on average, at least 1.
    ///   - burst: events at once after a quiet time, at least 1.
    init(perSecond: Int, burst: Int) { use(perSecond: perSecond, burst: burst) }

    /// Sets other bounds from now on. Earlier events keep their cost.
    mutating func use(perSecond: Int, burst: Int) {
        cost = max(1, 1_000_000_000 / Int64(max(1, perSecond)))
        credit = cost * Int64(max(1, burst))
    }

    /// Counts one event at `now` (nanoseconds of the monotonic clock).
    mutating func admit(at now: Int64) -> Verdict {
        let start = max(paidAt, now)
        let debt = start - now + cost - credit
        guard debt > 0 else {
            paidAt = start + cost
            return .admit
        }
        guard debt <= credit else { return .refuse }
        paidAt = start + cost
        return .slow(until: now + debt)
    }
}
