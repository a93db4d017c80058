import Glibc

/// A lock with one condition to wait for, for state that several threads share.
///
/// Waits are measured on the clock that never goes back. Whoever waits may be woken for nothing: look again.
final class Monitor: @unchecked Sendable {
    // The two are made once and are for many threads by their nature.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
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

    /// Runs `body` while nobody else does.
    func locked<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Lets others in until somebody wakes this thread. Only inside `locked`.
    func wait() { pthread_cond_wait(condition, mutex) }

    /// The same, but not beyond `time`.
    /// - Parameter time: nanoseconds on the clock that never goes back; `.max` is without end.
    func wait(until time: Int64) {
        guard time != .max else { return wait() }
        var deadline = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
        pthread_cond_timedwait(condition, mutex, &deadline)
    }

    /// Wakes one of those who wait.
    func wakeOne() { pthread_cond_signal(condition) }

    /// Wakes all who wait.
    func wakeAll() { pthread_cond_broadcast(condition) }
}
