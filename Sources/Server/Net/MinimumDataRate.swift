/// A bound on how slowly bytes may move: an average rate per second, after a pause of at most `patience`. A peer that
/// keeps the rate may continue forever; a peer that sends a byte now and then may not.
struct MinimumDataRate {
    /// 0 accepts every rate.
    let bytesPerSecond: Int
    /// Nanoseconds.
    let patience: Int64

    /// The deadline after some progress. Each byte extends it by its part of a second, but never beyond `patience` from
    /// now.
    ///
    /// - Parameters:
    ///   - deadline: the previous deadline, in nanoseconds of the monotonic clock.
    ///   - count: bytes received or sent now.
    func deadline(_ deadline: Int64, after count: Int, now: Int64) -> Int64 {
        guard bytesPerSecond > 0 else { return now + patience }
        let (product, overflows) = Int64(count).multipliedReportingOverflow(by: 1_000_000_000)
        let earned = overflows ? patience : product / Int64(bytesPerSecond)
        return min(now + patience, deadline == .max ? .max : deadline + min(earned, patience))
    }
}

extension EventLoop {
    /// Extends a connection's deadline by the time that the bytes received or sent are worth.
    func holdToDataRate(_ connection: Connection, _ count: Int, patience: Duration) {
        let pace = MinimumDataRate(bytesPerSecond: settings.paceBytesPerSecond, patience: patience.nanoseconds)
        let slot = Int(connection.id.slot)
        deadlines[slot] = pace.deadline(deadlines[slot], after: count, now: now)
    }
}
