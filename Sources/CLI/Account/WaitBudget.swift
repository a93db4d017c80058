import Synchronization
import ThicketPlatform

/// How long one command may wait for the server. Time that is not a wait, such as editing in an editor, is not counted.
final class WaitBudget: Sendable {
    /// The value of `--timeout`, or the default.
    let total: Duration
    /// `--timeout` was given: all waits together take no longer. Otherwise each wait has `total`, and a new wait begins
    /// while the sync makes progress, so that a large bucket is read to its end.
    let isWhole: Bool
    private let clock: @Sendable () -> Int64
    /// Milliseconds spent in completed waits.
    private let spent = Mutex<Int64>(0)
    private let reached = Mutex<Bool>(false)

    init(
        _ total: Duration, isWhole: Bool,
        clock: @escaping @Sendable () -> Int64 = { (SystemClock.monotonic() / 1_000_000) }
    ) {
        (self.total, self.isWhole, self.clock) = (total, isWhole, clock)
    }

    /// Whether the server has answered during this command. Until then a failed attempt to connect ends a wait at once;
    /// afterwards the connection is lost only for now, for the next wait too.
    var hasReached: Bool { reached.withLock { $0 } }

    func markReached() { reached.withLock { $0 = true } }

    /// The time for a wait that begins now.
    var left: Duration {
        guard isWhole else { return total }
        return max(.zero, total - .milliseconds(spent.withLock { $0 }))
    }

    /// Runs a wait with the time that is left, and subtracts its duration.
    func counting<Value: Sendable, Problem: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ wait: (_ left: Duration) async throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        let begin = clock()
        defer { spent.withLock { $0 += max(0, clock() - begin) } }
        return try await wait(left)
    }
}
