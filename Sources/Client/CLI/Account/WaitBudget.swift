import Synchronization

/// How long one command may wait for the server. What is no wait, such as an editor at work, takes nothing of it.
final class WaitBudget: Sendable {
    /// As it was said, or what holds when nothing was.
    let total: Duration
    /// `--timeout` was said: all waits together take no longer. Otherwise each wait has `total`, and a new one begins
    /// as long as something moves, so that a large bucket is read to its end.
    let isWhole: Bool
    private let clock: @Sendable () -> Int64
    /// Milliseconds that ended waits took.
    private let spent = Mutex<Int64>(0)

    init(_ total: Duration, isWhole: Bool, clock: @escaping @Sendable () -> Int64 = { Clock.milliseconds() }) {
        (self.total, self.isWhole, self.clock) = (total, isWhole, clock)
    }

    /// For a wait that begins now.
    var left: Duration {
        guard isWhole else { return total }
        return max(.zero, total - .milliseconds(spent.withLock { $0 }))
    }

    /// Gives a wait what is left, and counts how long it takes.
    func counting<Value: Sendable, Problem: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ wait: (_ left: Duration) async throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        let begin = clock()
        defer { spent.withLock { $0 += max(0, clock() - begin) } }
        return try await wait(left)
    }
}
