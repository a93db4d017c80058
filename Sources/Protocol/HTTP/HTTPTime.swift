/// Times in the format of HTTP fields (RFC 9110, 5.6.7).
public enum HTTPTime {
    private static let days: [String] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months: [String] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Formats a time: `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// - Parameter seconds: seconds since 1970, up to the year 9999; other values are moved to the nearest of these.
    public static func text(unixSeconds seconds: Int64) -> String {
        let seconds = min(max(0, seconds), 253_402_300_799)
        let day = seconds / 86_400
        let time = seconds % 86_400
        let date = date(day)
        let clock = [time / 3_600, time / 60 % 60, time % 60].map(twoDigits).joined(separator: ":")
        return "\(days[Int(day % 7)]), \(twoDigits(date.day)) \(months[date.month]) \(date.year) \(clock) GMT"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The date of a day counted from 1970-01-01. Years begin in March in the computation, so that a leap day is the
    /// last day of its year.
    private static func date(_ day: Int64) -> (year: Int64, month: Int, day: Int64) {
        let shifted = day + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let isNextYear = month >= 10
        return (
            year: era * 400 + yearOfEra + (isNextYear ? 1 : 0), month: Int(isNextYear ? month - 10 : month + 2),
            day: dayOfYear - (153 * month + 2) / 5 + 1
        )
    }
}
