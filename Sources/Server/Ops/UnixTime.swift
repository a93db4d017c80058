import ThicketPlatform

/// A time, in milliseconds since 1970-01-01T00:00:00Z.
public struct UnixTime: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970; negative before.
    public var milliseconds: Int64
    /// A time from its milliseconds since 1970.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The wall clock.
    @Sendable public static func now() -> UnixTime {
        UnixTime(milliseconds: SystemClock.unixMilliseconds())
    }

    /// The earlier time is less.
    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// `2026-01-31T23:59:59.000Z` (RFC 3339).
    public var text: String {
        let day = milliseconds.dividedRoundingDown(by: 86_400_000)
        let inDay = milliseconds - day * 86_400_000
        let date = UnixTime.civil(fromDay: day)
        let clock =
            "\(pad(inDay / 3_600_000, 2)):\(pad(inDay / 60_000 % 60, 2)):\(pad(inDay / 1_000 % 60, 2))"
        return "\(pad(date.year, 4))-\(pad(date.month, 2))-\(pad(date.day, 2))T\(clock).\(pad(inDay % 1_000, 3))Z"
    }

    /// The date of a day counted from 1970-01-01, by counting 400-year eras that begin on a 1 March.
    private static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = shifted.dividedRoundingDown(by: 146_097)
        let inEra = shifted - era * 146_097
        let yearOfEra = (inEra - inEra / 1_460 + inEra / 36_524 - inEra / 146_096) / 365
        let dayOfYear = inEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    private func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

extension Int64 {
    fileprivate func dividedRoundingDown(by divisor: Int64) -> Int64 {
        self >= 0 ? self / divisor : -((-self + divisor - 1) / divisor)
    }
}
