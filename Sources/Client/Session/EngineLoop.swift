internal import Synchronization

internal import ThicketCrypto

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A thread of our own that runs one actor: jobs, then the actor's own turn, then sleep until something happens.
///
/// Store and network calls may block; on the shared pool they would stall strangers. The thread ends after `stop()`,
/// which is called when nobody can have work for it any more.
///
/// `@unchecked`: `state` is behind its mutex; `sleeper` and `turn` are set before the thread starts to use them and
/// used by it alone; the file descriptors never change.
package final class EngineLoop: SerialExecutor, @unchecked Sendable {
    private struct State {
        var jobs = [UnownedJob]()
        var isStopped = false
        /// The thread sleeps, or is about to, and nobody has woken it yet.
        var isResting = false
        var thread: pthread_t?

        /// Ends the rest; true for the one who did, and who has to ring.
        mutating func takeRest() -> Bool {
            defer { isResting = false }
            return isResting
        }
    }

    private let state = Mutex(State())
    /// Reading end and writing end of the pipe that ends the sleep.
    private let pipeEnds: (read: Int32, write: Int32)
    /// Called on the thread after the jobs: milliseconds until it wants to be called again; nil: no limit.
    private var turn: (@Sendable () -> Int64?)?
    /// Sleeps, on the thread, until the wake descriptor is readable or something else happens.
    private var sleep: ((_ wake: Int32, _ milliseconds: Int32) -> Void)?

    private static let stackBytes = 16 << 20

    /// - Throws: `limit` when the system gives no pipe or no thread.
    package init() throws(ClientError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw ClientError(.limit, "the system gives no more pipes (errno \(errno))")
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        pipeEnds = (ends[0], ends[1])
        var thread = pthread_t()
        let held = Unmanaged.passRetained(self).toOpaque()
        // Merging follows the nesting of objects, which is deep for whoever wants to see it.
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, Self.stackBytes)
        let result = pthread_create(&thread, &attributes, engineLoopMain, held)
        pthread_attr_destroy(&attributes)
        guard result == 0 else {
            Unmanaged<EngineLoop>.fromOpaque(held).release()
            throw ClientError(.limit, "the system gives no more threads (errno \(result))")
        }
        pthread_detach(thread)
    }

    deinit {
        close(pipeEnds.read)
        close(pipeEnds.write)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isResting = state.withLock { state in
            state.jobs.append(job)
            return state.takeRest()
        }
        if isResting { ring() }
    }

    package func checkIsolated() {
        let thread = state.withLock { $0.thread }
        precondition(thread == pthread_self(), "called off the engine's thread")
    }

    /// What the thread does between jobs. Called on the thread.
    package func drive(
        turn: @escaping @Sendable () -> Int64?, sleep: @escaping (_ wake: Int32, _ milliseconds: Int32) -> Void
    ) {
        self.turn = turn
        self.sleep = sleep
    }

    /// Forgets turn and sleep, and gives back what libraries keep for this thread. Called on the thread.
    package func release() {
        turn = nil
        sleep = nil
        CryptoThread.release()
    }

    /// Ends the sleep, from any thread.
    package func wake() {
        if state.withLock({ $0.takeRest() }) { ring() }
    }

    private func ring() {
        var byte: UInt8 = 1
        // A full pipe wakes as well as one more byte would.
        _ = write(pipeEnds.write, &byte, 1)
    }

    /// The thread ends when its jobs are done. From any thread.
    package func stop() {
        let isResting = state.withLock { state in
            state.isStopped = true
            return state.takeRest()
        }
        if isResting { ring() }
    }

    fileprivate func run() {
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
                state.isResting = state.jobs.isEmpty && !state.isStopped
                return state.isResting
            }
            if isIdle { rest(Int32(clamping: pause)) }
        }
        release()
    }

    private func rest(_ milliseconds: Int32) {
        if let sleep {
            sleep(pipeEnds.read, milliseconds)
        } else {
            var watched = pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0)
            _ = poll(&watched, 1, milliseconds)
        }
        // Whoever ended the rest has put a byte into the pipe, or is about to.
        let isRung = state.withLock { !$0.takeRest() }
        guard isRung else { return }
        var byte: UInt8 = 0
        while read(pipeEnds.read, &byte, 1) != 1 {
            var watched = pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0)
            _ = poll(&watched, 1, -1)
        }
    }
}

/// A named function, not a closure: a closure would inherit the isolation of wherever it was written.
private func engineLoopMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    Unmanaged<EngineLoop>.fromOpaque(context).takeRetainedValue().run()
    return nil
}

/// Milliseconds of a clock that never goes back and goes on while the machine sleeps where the system has such a one.
package func monotonicMilliseconds() -> Int64 {
    var time = timespec()
    #if canImport(Darwin)
        clock_gettime(CLOCK_MONOTONIC, &time)
    #else
        // Linux only: CLOCK_BOOTTIME; on Apple platforms: CLOCK_MONOTONIC goes on in sleep.
        clock_gettime(CLOCK_BOOTTIME, &time)
    #endif
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}
