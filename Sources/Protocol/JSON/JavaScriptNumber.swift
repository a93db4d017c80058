/// The text of numbers in ECMAScript (ECMA-262, `Number::toString`, radix 10).
enum JavaScriptNumber {
    /// The text of a finite double: the shortest digits that read back as the same value.
    static func text(of value: Double) -> String {
        if value == 0 { return "0" }
        // Swift prints the same shortest digits in another layout, so they are extracted from its text.
        let printed = value.magnitude.description
        var digits = [UInt8]()
        var point = 0
        var isPastPoint = false
        var exponent = 0
        var bytes = printed.utf8.makeIterator()
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "."): isPastPoint = true
            case UInt8(ascii: "e"): exponent = readExponent(&bytes)
            default:
                digits.append(byte &- 0x30)
                if !isPastPoint { point += 1 }
            }
        }
        let zeros = digits.prefix { $0 == 0 }.count
        let trailing = digits.reversed().prefix { $0 == 0 }.count
        return layout(
            isNegative: value < 0, digits: digits[zeros..<(digits.count - trailing)],
            point: point + exponent - zeros, plainMax: 21)
    }

    private static func readExponent(_ bytes: inout String.UTF8View.Iterator) -> Int {
        var value = 0
        var isNegative = false
        while let byte = bytes.next() {
            if byte == UInt8(ascii: "-") {
                isNegative = true
            } else if byte != UInt8(ascii: "+") {
                value = value * 10 + Int(byte &- 0x30)
            }
        }
        return isNegative ? -value : value
    }

    /// Lays out 0.DIGITS × 10^point; digits are values 0...9 that neither begin nor end with 0.
    ///
    /// Numbers with up to `plainMax` digits before the point (21 in the standard) are written without exponent.
    static func layout(isNegative: Bool, digits: ArraySlice<UInt8>, point: Int, plainMax: Int) -> String {
        var text = isNegative ? [UInt8(ascii: "-")] : []
        let zero = UInt8(ascii: "0")
        let ascii = digits.map { $0 &+ zero }
        if point > 0, point <= plainMax {
            text.append(contentsOf: ascii.prefix(point))
            if point >= ascii.count {
                text.append(contentsOf: repeatElement(zero, count: point - ascii.count))
            } else {
                text.append(UInt8(ascii: "."))
                text.append(contentsOf: ascii.dropFirst(point))
            }
        } else if point <= 0, point > -6 {
            text.append(contentsOf: "0.".utf8)
            text.append(contentsOf: repeatElement(zero, count: -point))
            text.append(contentsOf: ascii)
        } else {
            text.append(contentsOf: ascii.prefix(1))
            if ascii.count > 1 {
                text.append(UInt8(ascii: "."))
                text.append(contentsOf: ascii.dropFirst())
            }
            text.append(contentsOf: (point > 0 ? "e+" : "e").utf8)
            text.append(contentsOf: String(point - 1).utf8)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
