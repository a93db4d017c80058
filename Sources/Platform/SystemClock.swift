#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The clocks of the machine. Only the outermost code reads them and passes times inwards.
public enum SystemClock {
    /// Nanoseconds of a clock that never goes back; on Linux it stops while the machine sleeps.
    public static func monotonic() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }

    /// As `monotonic`, but it includes the time in which the machine sleeps.
    public static func monotonicWithSleep() -> Int64 {
        #if canImport(Darwin)
            nanoseconds(CLOCK_MONOTONIC)
        #else
            // Linux only: CLOCK_BOOTTIME. On Apple platforms CLOCK_MONOTONIC includes sleep.
            nanoseconds(CLOCK_BOOTTIME)
        #endif
    }

    /// Time on the monotonic clock.
    public static func steadyTime() -> Duration { .nanoseconds(monotonic()) }

    /// Nanoseconds since 1970.
    public static func unixNanoseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) }
    /// Milliseconds since 1970.
    public static func unixMilliseconds() -> Int64 { unixNanoseconds() / 1_000_000 }

    /// Nanoseconds of processor time of the calling thread.
    public static func threadTime() -> Int64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// A moment in time, with the processor time that the calling thread had used until then.
public struct ThreadMoment {
    /// Nanoseconds of the monotonic clock.
    public let time = SystemClock.monotonic()
    /// Nanoseconds of processor time.
    public let processor = SystemClock.threadTime()

    /// Now.
    public init() {}
}
