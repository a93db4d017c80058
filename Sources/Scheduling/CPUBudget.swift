/// The time that one user has used on a thread shared with others. Passing time pays the debt off.
///
/// A user that has used more than its share is throttled until the debt is paid. The thread then idles for part of the
/// time, and a user that sends little finds it free. Without the throttle, a flood of short turns keeps the thread busy
/// without a break, and every other user waits for a turn of the flood each time. Pure: times are nanoseconds of a
/// monotonic clock.
package struct CPUBudget {
    /// Nanoseconds used and not paid off yet.
    private var debt: Int64 = 0
    private var paidAt = Int64.min

    /// Longest throttle, in nanoseconds. Another limit bounds a single step that takes very long.
    package static let throttleMax: Int64 = 1_000_000_000

    package init() {}

    /// Records time that was used.
    ///
    /// - Parameters:
    ///   - percent: the share of the time that pays off debt, 1...100; 100 disables throttling.
    ///   - free: nanoseconds of debt that are allowed.
    ///   - mustShare: whether another user wants the thread; if not, the debt is cleared.
    /// - Returns: the time until which the user is throttled; nil when it may continue.
    package mutating func charge(_ used: Int64, percent: Int, free: Int64, mustShare: Bool, now: Int64) -> Int64? {
        guard mustShare, percent < 100 else {
            (debt, paidAt) = (0, now)
            return nil
        }
        let passed = paidAt == .min ? .max / 200 : max(0, now - paidAt)
        paidAt = now
        debt = max(0, debt - min(passed, .max / 200) * Int64(percent) / 100) + used
        guard debt > free else { return nil }
        return now + min(Self.throttleMax, debt * 100 / Int64(percent))
    }
}
