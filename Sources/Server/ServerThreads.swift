import Glibc

/// The clocks of the machine, read at the edge and passed inwards.
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

/// When something began or ended, with what the calling thread had computed until then.
struct ThreadMoment {
    /// Nanoseconds of the monotonic clock.
    let time = SystemClock.monotonic()
    /// Nanoseconds.
    let processor = SystemClock.threadTime()
}
