/// Why a text is not a valid value: a phrase that follows the setting's name.
public struct ValueError: Error, Equatable {
    /// The phrase, such as "is not a whole number".
    public let problem: String
    /// An error with this phrase.
    public init(_ problem: String) { self.problem = problem }
}

/// Reads and writes values with units. Numbers need an explicit unit: `30` is refused where `30s` is meant.
public enum SettingValue {
    private static let durationUnits: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]
    private static let byteUnits: [(name: String, bytes: Int64)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000),
        ("B", 1),
    ]

    /// `250ms`, `30s`, `5m`, `2h`, `30d`; whole numbers only.
    public static func milliseconds(_ text: String) throws(ValueError) -> Int64 {
        try quantity(text, durationUnits.map { ($0.name, $0.milliseconds) }, example: "30s, 5m or 250ms")
    }

    /// `512B`, `64KiB`, `16MiB`, `1GiB`, and in powers of 1,000 `64kB`, `16MB`, `1GB`.
    public static func bytes(_ text: String) throws(ValueError) -> Int64 {
        try quantity(text, byteUnits.map { ($0.name, $0.bytes) }, example: "64KiB, 16MiB or 1GiB")
    }

    /// `128`, `10_000`.
    public static func integer(_ text: String) throws(ValueError) -> Int64 {
        guard let number = number(text[...]) else { throw ValueError("'\(shown(text))' is not a whole number") }
        return number
    }

    /// `on`, `true`, `yes`; `off`, `false`, `no`.
    public static func flag(_ text: String) throws(ValueError) -> Bool {
        switch text.lowercased() {
        case "on", "true", "yes": return true
        case "off", "false", "no": return false
        default: throw ValueError("'\(shown(text))' is neither on nor off")
        }
    }

    /// The largest unit that gives a whole number: `90s`, `1h`.
    public static func text(milliseconds: Int64) -> String {
        milliseconds == 0 ? "0s" : text(milliseconds, durationUnits.map { ($0.0, $0.1) })
    }

    /// The largest unit that gives a whole number: `16MiB`.
    public static func text(bytes: Int64) -> String {
        bytes == 0 ? "0B" : text(bytes, byteUnits.filter { $0.bytes % 1_024 == 0 || $0.bytes == 1 })
    }

    private static func quantity(
        _ text: String, _ units: [(String, Int64)], example: String
    ) throws(ValueError) -> Int64 {
        let digits: Substring = text.prefix { (letter: Character) in
            letter.isASCII && (letter.isNumber || letter == "_")
        }
        let unit: Substring = text[digits.endIndex...].drop { $0 == " " }
        guard let number = number(digits) else {
            throw ValueError("'\(shown(text))' is not a number with a unit, such as \(example)")
        }
        guard !unit.isEmpty else { throw ValueError("'\(shown(text))' has no unit; write it as in \(example)") }
        guard let factor = units.first(where: { $0.0.lowercased() == unit.lowercased() })?.1 else {
            let names = units.map(\.0).joined(separator: ", ")
            throw ValueError("'\(shown(text))' has the unknown unit '\(shown(String(unit)))'; use one of \(names)")
        }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        guard !overflow else { throw ValueError("'\(shown(text))' is too large") }
        return product
    }

    private static func number(_ text: Substring) -> Int64? {
        guard text.utf8.first.map({ (0x30...0x39).contains($0) }) == true else { return nil }
        return Int64(text.filter { $0 != "_" })
    }

    private static func text(_ number: Int64, _ units: [(String, Int64)]) -> String {
        for (name, factor) in units where number % factor == 0 { return "\(number / factor)\(name)" }
        return String(number)
    }

    /// The text for an error line: short and printable.
    static func shown(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(60).map { $0.value < 0x20 ? "?" : $0 }))
    }
}

/// Where the server listens: `127.0.0.1:8000`, `[::1]:8000`, `localhost:0`.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    /// A numeric address or a name; without the brackets of IPv6.
    public var host: String
    /// 0 lets the kernel choose; the line printed at the start reports the port.
    public var port: UInt16

    /// An address that is not checked.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// - Throws: `ValueError` when the host is missing or the port is not within 0...65535.
    public init(_ text: String) throws(ValueError) {
        guard let colon = text.lastIndex(of: ":") else {
            throw ValueError("'\(SettingValue.shown(text))' is not HOST:PORT, such as 127.0.0.1:8000")
        }
        let digits: Substring = text[text.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits)
        else {
            throw ValueError("'\(SettingValue.shown(String(digits)))' is not a port within 0...65535")
        }
        var host: Substring = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw ValueError("an IPv6 address needs brackets, such as [::1]:8000")
        }
        guard !host.isEmpty else {
            throw ValueError(
                "the host is missing; 0.0.0.0 means every IPv4 address of this machine, [::] every address")
        }
        self.init(host: String(host), port: port)
    }

    /// `host:port`, with brackets around an IPv6 address.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
