/// By how much something may have grown from the first half of a run to its end and still count as flat.
public struct EnduranceBound: Sendable {
    /// Times what it was.
    let factor: Double
    /// Bytes or pieces besides, in a run of `longSeconds` and more.
    let slack: Int
    /// The same in a shorter one: its first half is caches that fill, stores that grow to their bounds, one restart.
    let shortSlack: Int

    /// From here on a run is long: everything has filled before the first look.
    public static let longSeconds: Double = 1_800

    /// Bytes in use; the allocator's own play is some of them.
    public static let memory: Self = .init(factor: 1.15, slack: 6 << 20, shortSlack: 24 << 20)
    /// Bytes of the server's file. What was once growth (0.8 to 6.6 MB in 25 minutes) is far above.
    public static let database: Self = .init(factor: 1.2, slack: 1 << 20, shortSlack: 24 << 20)
    /// Bytes of all clients' files with their logs, which begin anew now and then.
    public static let stores: Self = .init(factor: 1.2, slack: 8 << 20, shortSlack: 24 << 20)
    public static let descriptors: Self = .init(factor: 1.2, slack: 8, shortSlack: 16)

    public func admits(_ end: Int, after before: Int, seconds: Double) -> Bool {
        Double(end) <= Double(before) * factor + Double(seconds >= Self.longSeconds ? slack : shortSlack)
    }
}
