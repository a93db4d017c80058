extension Duration {
    /// Whole nanoseconds; durations over 292 years are cut to half of `Int64.max`.
    @inlinable public var nanoseconds: Int64 {
        let parts = components
        let (product, overflows) = parts.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max / 2 : product + parts.attoseconds / 1_000_000_000
    }
}
