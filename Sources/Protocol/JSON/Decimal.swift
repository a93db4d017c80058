/// The value of a number lexeme: ± digits × 10^exponent, normalised so that the digits neither begin nor end with a
/// zero. Exponents of any length are read; none is expanded into zeros.
struct Decimal: Hashable {
    enum Digits: Hashable {
        /// Up to 19 digits, as a number.
        case short(UInt64)
        /// More than 19 digits, values 0...9.
        case long([UInt8])
    }

    enum Exponent: Hashable {
        /// Up to 18 digits.
        case short(Int)
        /// More than 18 digits, values 0...9 without leading zeros.
        case long(isNegative: Bool, [UInt8])
    }

    /// Zero has no sign, no digits and the exponent 0.
    let isNegative: Bool
    let digits: Digits
    let exponent: Exponent

    static let zero = Decimal(isNegative: false, digits: .short(0), exponent: .short(0))

    var isZero: Bool { digits == .short(0) }

    private init(isNegative: Bool, digits: Digits, exponent: Exponent) {
        self.isNegative = isNegative
        self.digits = digits
        self.exponent = exponent
    }

    init(_ number: JSONNumber) { self = number.lexeme.withBytes { Decimal($0) } }

    /// Parses a lexeme that is known to fit the grammar.
    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        let isNegative = bytes.first == UInt8(ascii: "-")
        let mantissaStart = isNegative ? 1 : 0
        var mantissaEnd = mantissaStart
        var fractionDigits = 0
        var pointAt = -1
        var firstDigit = -1
        var lastDigit = -1
        while mantissaEnd < bytes.count {
            let byte = bytes[mantissaEnd]
            if byte == UInt8(ascii: ".") {
                pointAt = mantissaEnd
            } else if byte | 0x20 == UInt8(ascii: "e") {
                break
            } else {
                if pointAt >= 0 { fractionDigits += 1 }
                if byte != UInt8(ascii: "0") {
                    if firstDigit < 0 { firstDigit = mantissaEnd }
                    lastDigit = mantissaEnd
                }
            }
            mantissaEnd += 1
        }
        guard firstDigit >= 0 else {
            self = .zero
            return
        }
        var trailingZeros = mantissaEnd - lastDigit - 1
        if pointAt > lastDigit { trailingZeros -= 1 }
        self.isNegative = isNegative
        self.digits = Self.collect(bytes, firstDigit, lastDigit)
        self.exponent = Self.readExponent(bytes, from: mantissaEnd + 1, shift: trailingZeros - fractionDigits)
    }

    private static func collect(_ bytes: UnsafeBufferPointer<UInt8>, _ first: Int, _ last: Int) -> Digits {
        if last - first < 19 {
            var value: UInt64 = 0
            for place in first...last where bytes[place] != UInt8(ascii: ".") {
                value = value &* 10 &+ UInt64(bytes[place] &- 0x30)
            }
            return .short(value)
        }
        var digits = [UInt8]()
        digits.reserveCapacity(last - first + 1)
        for place in first...last where bytes[place] != UInt8(ascii: ".") { digits.append(bytes[place] &- 0x30) }
        return shortened(digits)
    }

    private static func shortened(_ digits: [UInt8]) -> Digits {
        digits.count > 19 ? .long(digits) : .short(digits.reduce(0) { $0 &* 10 &+ UInt64($1) })
    }

    /// Reads the digits after the `e` (if any) and adds `shift`, which is far below 10^18.
    private static func readExponent(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int, shift: Int) -> Exponent {
        var place = start
        var isNegative = false
        if place < bytes.count, bytes[place] == UInt8(ascii: "-") || bytes[place] == UInt8(ascii: "+") {
            isNegative = bytes[place] == UInt8(ascii: "-")
            place += 1
        }
        while place < bytes.count, bytes[place] == UInt8(ascii: "0") { place += 1 }
        guard place < bytes.count else { return .short(shift) }
        if bytes.count - place <= 18 {
            var value = 0
            while place < bytes.count {
                value = value * 10 + Int(bytes[place] &- 0x30)
                place += 1
            }
            return unified(isNegative ? shift - value : shift + value)
        }
        var digits: [UInt8] = bytes[place...].map { $0 &- 0x30 }
        adjust(&digits, by: shift.magnitude, subtract: isNegative != (shift < 0))
        if digits.count > 18 { return .long(isNegative: isNegative, digits) }
        let value = digits.reduce(0) { $0 * 10 + Int($1) }
        return .short(isNegative ? -value : value)
    }

    private static func unified(_ value: Int) -> Exponent {
        guard value.magnitude >= 1_000_000_000_000_000_000 else { return .short(value) }
        return .long(isNegative: value < 0, String(value.magnitude).utf8.map { $0 &- 0x30 })
    }

    /// Adds a smaller number to a number of at least 19 digits, or subtracts it.
    private static func adjust(_ digits: inout [UInt8], by amount: UInt, subtract: Bool) {
        var rest = amount
        var place = digits.count - 1
        while rest > 0, place >= 0 {
            let part = Int(rest % 10)
            rest /= 10
            var digit = Int(digits[place]) + (subtract ? -part : part)
            if digit > 9 {
                digit -= 10
                rest += 1
            } else if digit < 0 {
                digit += 10
                rest += 1
            }
            digits[place] = UInt8(digit)
            place -= 1
        }
        if rest > 0 { digits.insert(contentsOf: String(rest).utf8.map { $0 &- 0x30 }, at: 0) }
        let zeros = digits.prefix { $0 == 0 }.count
        if zeros > 0 { digits.removeFirst(zeros) }
    }
}

extension Decimal {
    /// The value, if it is whole and fits.
    var int64: Int64? {
        guard case .short(let digits) = digits, case .short(let exponent) = exponent else { return nil }
        guard exponent >= 0, exponent < 19 else { return nil }
        var magnitude = digits
        for _ in 0..<exponent {
            let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
            if overflow { return nil }
            magnitude = product
        }
        if isNegative { return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    /// The digits, values 0...9, most significant first.
    var digitList: [UInt8] {
        switch digits {
        case .short(let value): String(value).utf8.map { $0 &- 0x30 }
        case .long(let list): list
        }
    }

    /// The exact sum of two values that are not zero; nil when it takes more than `digitsMax` digits, or when an
    /// exponent has more than 18 digits.
    func adding(_ other: Decimal, digitsMax: Int) -> JSONNumber? {
        guard case .short(let leftExponent) = exponent, case .short(let rightExponent) = other.exponent else {
            return nil
        }
        let (left, right) = (digitList, other.digitList)
        let low = min(leftExponent, rightExponent)
        let high = max(leftExponent + left.count, rightExponent + right.count)
        guard high - low < digitsMax else { return nil }
        // Columns from 10^low upwards, least significant first, and one more for the carry.
        let width = high - low + 1
        let a = Self.columns(left, shift: leftExponent - low, width: width)
        let b = Self.columns(right, shift: rightExponent - low, width: width)
        let isSum = isNegative == other.isNegative
        let leftIsLarger = !a.reversed().lexicographicallyPrecedes(b.reversed())
        let (large, small) = leftIsLarger ? (a, b) : (b, a)
        var result = [UInt8](repeating: 0, count: width)
        var carry: Int8 = 0
        for place in 0..<width {
            var digit = large[place] + (isSum ? small[place] : -small[place]) + carry
            carry = digit > 9 ? 1 : digit < 0 ? -1 : 0
            digit -= carry * 10
            result[width - 1 - place] = UInt8(digit)
        }
        return Self.number(isNegative: leftIsLarger ? isNegative : other.isNegative, digits: result, exponent: low)
    }

    private static func columns(_ digits: [UInt8], shift: Int, width: Int) -> [Int8] {
        var columns = [Int8](repeating: 0, count: width)
        for (place, digit) in digits.reversed().enumerated() { columns[shift + place] = Int8(digit) }
        return columns
    }

    private static func number(isNegative: Bool, digits: [UInt8], exponent: Int) -> JSONNumber {
        let zeros = digits.prefix { $0 == 0 }.count
        let kept = digits[zeros...]
        let trailing = kept.reversed().prefix { $0 == 0 }.count
        let significant = kept.dropLast(trailing)
        guard !significant.isEmpty else { return JSONNumber(unchecked: "0") }
        // Whole numbers are written without exponent, however long they are.
        let point = significant.count + exponent + trailing
        let text = JavaScriptNumber.layout(
            isNegative: isNegative, digits: significant, point: point, plainMax: max(21, digits.count + 1))
        return JSONNumber(unchecked: text)
    }
}
