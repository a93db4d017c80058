#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A mutex with one condition variable, for state that several threads share.
///
/// Waits are measured on the monotonic clock. Spurious wake-ups occur: check the state again after each wait.
public final class Monitor: @unchecked Sendable {
    // Both are created once and are thread-safe by nature.
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    @usableFromInline let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    @inlinable public init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        #if !canImport(Darwin)
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        #endif
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` with the mutex held.
    @inlinable public func locked<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Releases the mutex until this thread is woken. Only inside `locked`.
    @inlinable public func wait() { pthread_cond_wait(condition, mutex) }

    /// As `wait()`, but not beyond `time`.
    /// - Parameter time: nanoseconds of the monotonic clock; `.max` waits without end.
    @inlinable public func wait(until time: Int64) {
        guard time != .max else { return wait() }
        #if canImport(Darwin)
            // Condition variables have no monotonic clock here, but a relative wait.
            let left = max(0, time - SystemClock.monotonic())
            var pause = timespec(tv_sec: Int(left / 1_000_000_000), tv_nsec: Int(left % 1_000_000_000))
            pthread_cond_timedwait_relative_np(condition, mutex, &pause)
        #else
            var deadline = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            pthread_cond_timedwait(condition, mutex, &deadline)
        #endif
    }

    /// Wakes one waiting thread.
    @inlinable public func wakeOne() { pthread_cond_signal(condition) }

    /// Wakes all waiting threads.
    @inlinable public func wakeAll() { pthread_cond_broadcast(condition) }
}
