import ThicketProtocol

/// When a note was made: milliseconds since 1970, or in the form of the old app's server, `2013-11-17T08:15:30.250Z`
/// (ISO 8601, UTC).
public enum NoteTime {
    /// Milliseconds since 1970; nil for any other value.
    public static func milliseconds(_ value: JSONValue) -> Int64? {
        value.intValue ?? value.stringValue.flatMap(milliseconds)
    }

    private static func milliseconds(_ text: String) -> Int64? {
        let bytes: [UInt8] = Array(text.utf8)
        guard bytes.count == 24, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            bytes[19] == UInt8(ascii: "."), bytes[23] == UInt8(ascii: "Z")
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            bytes[range].allSatisfy { (0x30...0x39).contains($0) }
                ? bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) } : nil
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            let fraction = number(20..<23), (1...12).contains(month), (1...31).contains(day), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        // Days since 1970-03-01 in years that begin in March, so that the leap day is the last day of a year.
        let shifted = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
        return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + fraction
    }
}
