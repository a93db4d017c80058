/// How long the loop polls for the shard's next commit before it sleeps: a wake-up takes as long as the sync of a fast
/// disk.
///
/// The window opens each time the loop hands over changes, and each time a group is committed while the next one
/// begins. Other wake-ups do not extend it. With a single core the loop never polls: the shard, a reader or the kernel
/// thread that syncs the disk would wait for that core. Pure: times are passed in, in nanoseconds of a monotonic clock.
package struct BusyPollWindow {
    /// Longest polling for one group, in nanoseconds.
    package static let longest: Int64 = 200_000
    /// Most changes in progress for which the loop polls: more changes usually take longer than the window.
    package static let changesMax = 4

    private let hasOtherCores: Bool
    private var until = Int64.min

    /// - Parameter cores: number of cores that the loop's thread may use; 0 when unknown.
    package init(cores: Int) { hasOtherCores = cores != 1 }

    /// Opens the window: changes were handed over, or the next group of them is being written.
    package mutating func begin(now: Int64) { until = now + Self.longest }

    /// The time until which to poll; nil for no polling.
    /// - Parameter changes: number of changes in progress.
    package func end(changes: Int) -> Int64? {
        hasOtherCores && (1...Self.changesMax).contains(changes) ? until : nil
    }
}
