/// Slows down whoever guesses the proof of one name: after a few failures in a row each next try has to wait, twice as
/// long each time. It makes no difference whether anybody has the name.
///
/// What it keeps is bounded: of more than `namesMax` names those that failed longest ago are forgotten.
public struct LoginGuard: Sendable {
    /// Failures in a row that cost nothing.
    public static let freeFailures = 5
    /// Seconds of the first wait, and of the longest.
    public static let waitMin: Double = 1
    public static let waitMax: Double = 900
    /// Names kept, in two halves.
    public static let namesMax = 65_536

    private struct Entry {
        var failures: Int
        var last: Double
    }

    private var current = [String: Entry]()
    private var previous = [String: Entry]()

    public init() {}

    /// Names kept now, for tests.
    var count: Int { current.count + previous.count }

    /// - Parameter now: seconds.
    /// - Returns: nil when the name may be tried; else the whole seconds to wait.
    public func wait(_ name: String, now: Double) -> Int? {
        guard let entry = current[name] ?? previous[name] else { return nil }
        let rest = entry.last + Self.wait(after: entry.failures) - now
        guard rest > 0 else { return nil }
        // A clock that has gone back makes nobody wait for longer than the clock that stood still.
        return Int(min(rest, Self.wait(after: entry.failures)).rounded(.up))
    }

    public mutating func failed(_ name: String, now: Double) {
        let before = current[name] ?? previous[name]
        if current[name] == nil, current.count >= Self.namesMax / 2 { (previous, current) = (current, [:]) }
        current[name] = Entry(failures: min((before?.failures ?? 0) + 1, 64), last: now)
        previous[name] = nil
    }

    /// Somebody has proved to be the user: the row of failures ends.
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
