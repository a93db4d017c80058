/// How slowly bytes may come: so many a second on average, after a pause that is no longer than the patience. Whoever
/// keeps the pace goes on for ever, whoever sends a byte now and then does not.
struct Pace {
    /// 0: any pace.
    let bytesPerSecond: Int
    /// Nanoseconds.
    let patience: Int64

    /// The deadline after some progress. Each byte is good for its part of a second, and none for more than the
    /// patience.
    ///
    /// - Parameters:
    ///   - deadline: before it, nanoseconds of the monotonic clock.
    ///   - count: bytes that came, or went, now.
    func deadline(_ deadline: Int64, after count: Int, now: Int64) -> Int64 {
        guard bytesPerSecond > 0 else { return now + patience }
        let (product, overflows) = Int64(count).multipliedReportingOverflow(by: 1_000_000_000)
        let earned = overflows ? patience : product / Int64(bytesPerSecond)
        return min(now + patience, deadline == .max ? .max : deadline + min(earned, patience))
    }
}

extension EventLoop {
    /// Bytes came, or went: gives a connection the time that they are worth.
    func keepPace(_ connection: Connection, _ count: Int, patience: Duration) {
        let pace = Pace(bytesPerSecond: settings.paceBytesPerSecond, patience: patience.nanoseconds)
        let slot = Int(connection.id.slot)
        deadlines[slot] = pace.deadline(deadlines[slot], after: count, now: now)
    }
}
