import Glibc

/// The clocks of the machine. Only the outermost code reads them and passes times inwards.
enum SystemClock {
    static func monotonic() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }
    static func unixMilliseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

    /// Processor time of the calling thread.
    static func threadTime() -> Int64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// A moment in time, with the processor time that the calling thread had used until then.
struct ThreadMoment {
    /// Nanoseconds of the monotonic clock.
    let time = SystemClock.monotonic()
    /// Nanoseconds of processor time.
    let processor = SystemClock.threadTime()
}
