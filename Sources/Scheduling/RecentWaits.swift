/// How long recent commits waited, mostly for the disk.
///
/// A user pays for the waits that its own changes need. While the disk is busy with other work, or other threads have
/// the core, no user uses the thread, and the user whose change happens to wait would be throttled four times as long
/// for it. The shortest recent wait is taken as what a commit needs.
package struct RecentWaits {
    /// Number of recent commits that are taken into account.
    package static let commitsMax = 16

    /// Nanoseconds; the oldest is at `next`.
    private var waits = [Int64](repeating: .max, count: Self.commitsMax)
    private var next = 0

    package init() {}

    /// The time that some changes used of the thread, in nanoseconds.
    /// - Parameters:
    ///   - computed: nanoseconds of processor time.
    ///   - passed: nanoseconds of elapsed time.
    ///   - commits: groups that were committed in that time.
    package mutating func used(computed: Int64, passed: Int64, commits: Int) -> Int64 {
        let waited = max(0, passed - computed)
        let count = Int64(max(1, commits))
        if commits > 0 {
            waits[next] = waited / count
            next = (next + 1) % Self.commitsMax
        }
        let (needed, isOver) = (waits.min() ?? 0).multipliedReportingOverflow(by: count)
        return computed + (isOver ? waited : min(waited, needed))
    }
}
