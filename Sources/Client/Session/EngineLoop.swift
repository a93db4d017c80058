internal import Synchronization

internal import ThicketCrypto
import ThicketPlatform

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A dedicated thread that runs one actor: its jobs, then the actor's turn, then sleep until an event.
///
/// Store and network calls may block; on the shared thread pool they would stall unrelated tasks. The thread ends after
/// `stop()`, which its owner calls when no more work can arrive.
///
/// `@unchecked`: `state` is protected by its mutex; `sleep` and `turn` are set before the thread uses them, and only
/// the thread uses them; the file descriptors never change.
package final class EngineLoop: SerialExecutor, @unchecked Sendable {
    private struct State {
        var jobs = [UnownedJob]()
        var isStopped = false
        /// The thread sleeps, or is about to, and no other thread has woken it yet.
        var isAsleep = false
        var thread: pthread_t?

        /// Ends the sleep. Returns true to the one caller that has to write the wake-up byte.
        mutating func endSleep() -> Bool {
            defer { isAsleep = false }
            return isAsleep
        }
    }

    private let state = Mutex(State())
    /// The two ends of the pipe that ends the sleep.
    private let pipeEnds: (read: Int32, write: Int32)
    /// Called on the thread after the jobs; returns the milliseconds until the next call, or nil for no limit.
    private var turn: (@Sendable () -> Int64?)?
    /// Blocks the thread until the wake descriptor is readable, the time is over, or the transport has an event.
    private var sleep: ((_ wake: Int32, _ milliseconds: Int32) -> Void)?

    private static let stackBytes = 16 << 20

    /// - Throws: `limit` when the system cannot make a pipe or a thread.
    package init() throws(ClientError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw ClientError(.limit, "the system cannot create another pipe (errno \(errno))")
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        pipeEnds = (ends[0], ends[1])
        // Merging recurses over nested objects, and input can be nested deeply on purpose.
        do throws(OwnThread.Refused) {
            try OwnThread.detached("sync", stackBytes: Self.stackBytes) { [self] in run() }
        } catch {
            throw ClientError(.limit, "the system cannot create another thread (errno \(error.code))")
        }
    }

    deinit {
        close(pipeEnds.read)
        close(pipeEnds.write)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isAsleep = state.withLock { state in
            state.jobs.append(job)
            return state.endSleep()
        }
        if isAsleep { ring() }
    }

    package func checkIsolated() {
        let thread = state.withLock { $0.thread }
        precondition(thread == pthread_self(), "called off the engine's thread")
    }

    /// Sets the work that the thread does between jobs. Call it on the thread.
    package func drive(
        turn: @escaping @Sendable () -> Int64?, sleep: @escaping (_ wake: Int32, _ milliseconds: Int32) -> Void
    ) {
        self.turn = turn
        self.sleep = sleep
    }

    /// Drops `turn` and `sleep`, and frees the thread-local state of libraries. Call it on the thread.
    package func release() {
        turn = nil
        sleep = nil
        CryptoThread.release()
    }

    /// Ends the sleep. May be called from any thread.
    package func wake() {
        if state.withLock({ $0.endSleep() }) { ring() }
    }

    private func ring() {
        var byte: UInt8 = 1
        // When the pipe is full, its bytes wake the thread anyway.
        _ = write(pipeEnds.write, &byte, 1)
    }

    /// Ends the thread when its jobs are done. May be called from any thread.
    package func stop() {
        let isAsleep = state.withLock { state in
            state.isStopped = true
            return state.endSleep()
        }
        if isAsleep { ring() }
    }

    private func run() {
        state.withLock { $0.thread = pthread_self() }
        while true {
            let (jobs, isStopped) = state.withLock { state in
                defer { state.jobs = [] }
                return (state.jobs, state.isStopped)
            }
            if isStopped, jobs.isEmpty { break }
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
            let pause = turn?() ?? -1
            let isIdle = state.withLock { state in
                state.isAsleep = state.jobs.isEmpty && !state.isStopped
                return state.isAsleep
            }
            if isIdle { awaitEvent(Int32(clamping: pause)) }
        }
        release()
    }

    private func awaitEvent(_ milliseconds: Int32) {
        if let sleep {
            sleep(pipeEnds.read, milliseconds)
        } else {
            var watched = pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0)
            _ = poll(&watched, 1, milliseconds)
        }
        // A thread that ended the sleep has written a byte into the pipe, or is about to.
        let isRung = state.withLock { !$0.endSleep() }
        guard isRung else { return }
        var byte: UInt8 = 0
        while read(pipeEnds.read, &byte, 1) != 1 {
            var watched = pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0)
            _ = poll(&watched, 1, -1)
        }
    }
}

/// Milliseconds of a monotonic clock that includes the time in which the machine sleeps.
package func monotonicMilliseconds() -> Int64 { SystemClock.monotonicWithSleep() / 1_000_000 }
