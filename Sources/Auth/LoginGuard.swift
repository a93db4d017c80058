/// Slows down guessing of one name's proof: after a few failures in a row each further attempt must wait, twice as
/// long each time. It makes no difference whether the name exists.
///
/// Memory is bounded: beyond `namesMax` names, those that failed longest ago are forgotten.
public struct LoginGuard: Sendable {
    /// Failures in a row without a wait.
    public static let freeFailures = 5
    /// Seconds of the first wait.
    public static let waitMin: Double = 1
    /// Seconds of the longest wait.
    public static let waitMax: Double = 900
    /// Names kept, in two halves.
    public static let namesMax = 65_536

    private struct Entry {
        var failures: Int
        var last: Double
    }

    private var current = [String: Entry]()
    private var previous = [String: Entry]()

    /// A guard with no failures.
    public init() {}

    /// Names kept now, for tests.
    var count: Int { current.count + previous.count }

    /// Whether the name may be tried.
    /// - Parameter now: seconds.
    /// - Returns: nil when the name may be tried; otherwise the whole seconds to wait.
    public func wait(_ name: String, now: Double) -> Int? {
        guard let entry = current[name] ?? previous[name] else { return nil }
        let rest = entry.last + Self.wait(after: entry.failures) - now
        guard rest > 0 else { return nil }
        // A step back of the clock does not lengthen a wait beyond that of a stopped clock.
        return Int(min(rest, Self.wait(after: entry.failures)).rounded(.up))
    }

    /// Counts a failure. `now`: seconds.
    public mutating func failed(_ name: String, now: Double) {
        let before = current[name] ?? previous[name]
        if current[name] == nil, current.count >= Self.namesMax / 2 { (previous, current) = (current, [:]) }
        current[name] = Entry(failures: min((before?.failures ?? 0) + 1, 64), last: now)
        previous[name] = nil
    }

    /// A proof was right: the series of failures ends.
    public mutating func succeeded(_ name: String) {
        current[name] = nil
        previous[name] = nil
    }

    static func wait(after failures: Int) -> Double {
        guard failures >= freeFailures else { return 0 }
        var seconds = waitMin
        for _ in freeFailures..<failures where seconds < waitMax { seconds *= 2 }
        return min(seconds, waitMax)
    }
}
