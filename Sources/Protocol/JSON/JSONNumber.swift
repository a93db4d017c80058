/// A JSON number, kept as written. Nothing is rounded: a number that is not changed is sent exactly as it was received.
///
/// Two numbers are equal when their decimal values are, whatever their notation: 1 = 1.0 = 1e0, -0 = 0.
public struct JSONNumber: Sendable {
    /// The text of the number (RFC 8259, section 6).
    public let lexeme: String

    /// Reads a number.
    ///
    /// - Returns: nil when `lexeme` is not exactly one JSON number.
    public init?(lexeme: String) {
        let isNumber = lexeme.withBytes { (bytes: UnsafeBufferPointer<UInt8>) -> Bool in
            guard let base = bytes.baseAddress else { return false }
            return (try? JSONScanner.numberEnd(base, from: 0, count: bytes.count)) == bytes.count
        }
        guard isNumber else { return nil }
        self.lexeme = lexeme
    }

    /// The number of an integer, in plain digits.
    public init(_ integer: Int64) { lexeme = String(integer) }

    /// The shortest text that reads back as the same double, in JavaScript's form.
    ///
    /// - Returns: nil for infinities and NaN, which JSON cannot represent.
    public init?(_ double: Double) {
        guard double.isFinite else { return nil }
        lexeme = JavaScriptNumber.text(of: double)
    }

    /// Trusts that the lexeme fits the grammar.
    init(unchecked lexeme: String) { self.lexeme = lexeme }

    /// The value, if it is whole and fits; the notation does not matter (1.0 and 1e2 are whole).
    public var int64: Int64? {
        lexeme.withBytes { (bytes: UnsafeBufferPointer<UInt8>) -> Int64? in
            if let plain = Self.plainInteger(bytes) { return plain }
            return Decimal(bytes).int64
        }
    }

    /// The nearest double; infinite when the value is beyond the range of doubles.
    public var double: Double {
        if let integer = plainInteger { return Double(integer) }
        return Double(lexeme) ?? 0
    }

    /// The text that JavaScript's `JSON.stringify(JSON.parse(lexeme))` gives: "1.0" becomes "1", and a value beyond the
    /// range of doubles "null".
    public var javaScriptForm: String {
        if let integer = plainInteger, integer.magnitude <= 1 << 53 { return String(integer) }
        let value = double
        return value.isFinite ? JavaScriptNumber.text(of: value) : "null"
    }

    /// The exact sum.
    ///
    /// - Returns: nil when the sum takes more than `Limits.numberDigitsMax` digits.
    public func adding(_ other: JSONNumber) -> JSONNumber? {
        if let left = plainInteger, let right = other.plainInteger {
            let (sum, overflow) = left.addingReportingOverflow(right)
            if !overflow { return JSONNumber(sum) }
        }
        let (left, right) = (Decimal(self), Decimal(other))
        if left.isZero { return other }
        if right.isZero { return self }
        return left.adding(right, digitsMax: Limits.numberDigitsMax)
    }

    /// The value of a lexeme without point and exponent, if it fits.
    private var plainInteger: Int64? { lexeme.withBytes(Self.plainInteger) }

    static func plainInteger(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        let isNegative = bytes.first == UInt8(ascii: "-")
        var place = isNegative ? 1 : 0
        // 18 digits always fit; the rare longer ones take the slow path.
        guard bytes.count > place, bytes.count - place <= 18 else { return nil }
        var magnitude: Int64 = 0
        while place < bytes.count {
            let digit = bytes[place] &- 0x30
            guard digit < 10 else { return nil }
            magnitude = magnitude &* 10 &+ Int64(digit)
            place += 1
        }
        return isNegative ? -magnitude : magnitude
    }
}

extension JSONNumber: Hashable {
    /// Equal by decimal value.
    public static func == (left: JSONNumber, right: JSONNumber) -> Bool {
        if left.lexeme.hasSameBytes(as: right.lexeme) { return true }
        if let left = left.plainInteger, let right = right.plainInteger { return left == right }
        return Decimal(left) == Decimal(right)
    }

    /// Hashes the decimal value.
    public func hash(into hasher: inout Hasher) { Decimal(self).hash(into: &hasher) }
}

extension JSONNumber: ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The number of an integer literal.
    public init(integerLiteral value: Int64) { self.init(value) }
    /// The lexeme.
    public var description: String { lexeme }
}
