/// A bound on how slowly bytes may move: an average rate per second, after a pause of at most `patience`. A peer that
/// keeps the rate may continue forever; a peer that sends a byte now and then may not.
package struct MinimumDataRate {
    /// 0 accepts every rate.
    package let bytesPerSecond: Int
    /// Nanoseconds.
    package let patience: Int64

    package init(bytesPerSecond: Int, patience: Int64) {
        (self.bytesPerSecond, self.patience) = (bytesPerSecond, patience)
    }

    /// The deadline after some progress. Each byte extends it by its part of a second, but never beyond `patience` from
    /// now.
    ///
    /// - Parameters:
    ///   - deadline: the previous deadline, in nanoseconds of the monotonic clock.
    ///   - count: bytes received or sent now.
    package func deadline(_ deadline: Int64, after count: Int, now: Int64) -> Int64 {
        guard bytesPerSecond > 0 else { return now + patience }
        let (product, overflows) = Int64(count).multipliedReportingOverflow(by: 1_000_000_000)
        let earned = overflows ? patience : product / Int64(bytesPerSecond)
        return min(now + patience, deadline == .max ? .max : deadline + min(earned, patience))
    }
}
