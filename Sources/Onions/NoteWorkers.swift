import Synchronization
import ThicketCrypto
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Threads that derive keys: as many as the machine has cores, up to a few. In the pool that all tasks share, which has
/// no more threads than that, a list of old notes would stall everything else for seconds.
///
/// Each queued job has a caller that waits for it, so the queue is bounded by the number of callers; `Vault` has at
/// most `workersMax` at once.
final class NoteWorkers: Sendable {
    /// Most threads.
    static let workersMax = 4

    private struct State {
        var waiting = Deque<@Sendable () -> Void>()
        var running = 0
        /// Callers that wait until no work is left.
        var idle = [CheckedContinuation<Void, Never>]()
    }

    private let state = Mutex(State())
    /// Number of threads of this instance.
    let count: Int

    init(count: Int = max(1, min(workersMax, sysconf(Int32(_SC_NPROCESSORS_ONLN))))) { self.count = count }

    /// Runs `body` on one of the threads.
    func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { (continuation: CheckedContinuation<Value, Never>) in
            add { continuation.resume(returning: body()) }
        }
    }

    /// Returns when no work is running: its data has been freed then.
    func settle() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if state.running > 0 { state.idle.append(continuation) }
                return state.running == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func add(_ work: @escaping @Sendable () -> Void) {
        let isNew = state.withLock { state in
            state.waiting.append(work)
            guard state.running < count else { return false }
            state.running += 1
            return true
        }
        guard isNew else { return }
        do throws(OwnThread.Refused) {
            try OwnThread.detached("notes") { [self] in drain() }
        } catch {
            // No more threads are available: run the work on this one.
            drain()
        }
    }

    /// Works until the queue is empty.
    private func drain() {
        while let work = next() { work() }
        CryptoThread.release()
        for continuation in finished() { continuation.resume() }
    }

    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            if let first = state.waiting.popFirst() { return first }
            state.running -= 1
            return nil
        }
    }

    private func finished() -> [CheckedContinuation<Void, Never>] {
        state.withLock { state in
            guard state.running == 0 else { return [] }
            defer { state.idle = [] }
            return state.idle
        }
    }
}
