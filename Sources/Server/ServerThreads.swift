import Glibc

/// Hands values to threads that wait for them, in order.
///
/// It has no bound of its own: the hub counts what is under way (`ServerLimits.changesQueuedMax`, `readsQueuedMax`) and
/// stops reading from clients before it grows further.
final class WorkQueue<Work: Sendable>: @unchecked Sendable {
    // All mutable state is guarded by `mutex`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var waiting: [Work] = []
    private var start: Int = 0
    private var isClosed: Bool = false

    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes: pthread_condattr_t = .init()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Adds work; after `close` it is dropped.
    func push(_ work: [Work]) {
        guard !work.isEmpty else { return }
        pthread_mutex_lock(mutex)
        if !isClosed {
            if waiting.isEmpty { waiting = work } else { waiting.append(contentsOf: work) }
        }
        pthread_mutex_unlock(mutex)
        if work.count == 1 { pthread_cond_signal(condition) } else { pthread_cond_broadcast(condition) }
    }

    /// No more work comes; what is queued is still handed out.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_mutex_unlock(mutex)
        pthread_cond_broadcast(condition)
    }

    /// The oldest work, waiting for it; nil when closed and empty.
    func next() -> Work? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while start == waiting.count && !isClosed { pthread_cond_wait(condition, mutex) }
        guard start < waiting.count else { return nil }
        let work: Work = waiting[start]
        start += 1
        if start == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            start = 0
        } else if start > 256 && start * 2 > waiting.count {
            waiting.removeFirst(start)
            start = 0
        }
        return work
    }

    /// All that waits, at most `most`; nil when closed and empty.
    /// - Parameter seconds: longest wait for the first; 0 does not wait. An empty array comes back when it is over.
    func take(most: Int, waitingSeconds seconds: Double) -> [Work]? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if start == waiting.count && !isClosed && seconds > 0 {
            var deadline: timespec = Self.deadline(after: seconds)
            while start == waiting.count && !isClosed {
                guard pthread_cond_timedwait(condition, mutex, &deadline) == 0 else { break }
            }
        }
        guard start < waiting.count else { return isClosed ? nil : [] }
        if start == 0 && waiting.count <= most {
            // The usual case: the whole array changes hands, nothing is copied.
            let all: [Work] = waiting
            waiting = []
            return all
        }
        let end: Int = min(waiting.count, start + most)
        let taken: [Work] = Array(waiting[start..<end])
        start = end
        if start == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            start = 0
        } else if start > 4_096 {
            waiting.removeFirst(start)
            start = 0
        }
        return taken
    }

    private static func deadline(after seconds: Double) -> timespec {
        var now: timespec = .init()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let nanoseconds: Int = now.tv_nsec + Int(seconds * 1e9)
        now.tv_sec += nanoseconds / 1_000_000_000
        now.tv_nsec = nanoseconds % 1_000_000_000
        return now
    }
}

/// The clocks of the machine, read at the edge and passed inwards.
enum SystemClock {
    static func now() -> HubInstant { HubInstant(monotonic: nanoseconds(CLOCK_MONOTONIC), unix: unixMilliseconds()) }
    static func monotonic() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }
    static func unixMilliseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

    /// Processor time of the calling thread.
    static func threadTime() -> Int64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time: timespec = .init()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
