/// The bound of growth from the first half of a run to its end that still counts as flat.
public struct EnduranceBound: Sendable {
    /// Factor of the earlier value.
    let factor: Double
    /// Additional bytes or pieces, in a run of `longSeconds` and more.
    let slack: Int
    /// The same in a shorter run: in its first half caches fill, stores grow to their bounds, and the server restarts
    /// once.
    let shortSlack: Int

    /// Duration of a long run, in which everything has filled before the first measurement.
    public static let longSeconds: Double = 1_800

    /// Bytes in use, including the allocator's variation.
    public static let memory = Self(factor: 1.15, slack: 6 << 20, shortSlack: 24 << 20)
    /// Bytes of the server's file. The growth of a former fault (0.8 to 6.6 MB in 25 minutes) is far above.
    public static let database = Self(factor: 1.2, slack: 1 << 20, shortSlack: 24 << 20)
    /// Bytes of all clients' files with their logs, which restart occasionally.
    public static let stores = Self(factor: 1.2, slack: 8 << 20, shortSlack: 24 << 20)
    public static let descriptors = Self(factor: 1.2, slack: 8, shortSlack: 16)

    public func admits(_ end: Int, after before: Int, seconds: Double) -> Bool {
        Double(end) <= Double(before) * factor + Double(seconds >= Self.longSeconds ? slack : shortSlack)
    }
}
