import Testing

@testable import ThicketCLI

/// The codes are read back by a reader of their own: format, mask, placement, error correction and content.
@Suite("QR codes of safety numbers")
struct QRCodeTests {
    private static func digits(_ seed: UInt64) -> String {
        var state = seed
        return (0..<60).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return String((state >> 33) % 10)
        }.joined()
    }

    @Test("60 digits are read back from the modules, with each codeword right", arguments: 0..<50)
    func readBack(seed: Int) throws {
        let text = Self.digits(UInt64(seed))
        let code = try #require(QRCode(text))
        #expect(code.width == 25, "version 2")
        let reader = QRReader(width: code.width, isDark: code.isDark)
        #expect(reader.hasFinders)
        #expect(try reader.digits() == text)
    }

    @Test("a changed module is an error of its codeword, so the reader of this test sees differences")
    func changed() throws {
        let code = try #require(QRCode(Self.digits(1)))
        let reader = QRReader(width: code.width) { row, column in
            code.isDark(row, column) != (row == 12 && column == 22)
        }
        #expect(throws: QRReader.Fault.self) { _ = try reader.digits() }
    }

    @Test("the drawing shows the same modules with a light edge of four, in lines of equal width")
    func drawing() throws {
        let code = try #require(QRCode(Self.digits(7)))
        #expect(code.columns == 33 && code.lines.count == 17)
        for (line, text) in code.lines.enumerated() {
            let blocks = text.drop { $0 != "m" }.dropFirst().prefix { $0 != "\u{1B}" }
            #expect(blocks.count == code.columns && text.hasPrefix("\u{1B}[40;97m") && text.hasSuffix("\u{1B}[0m"))
            for (column, block) in blocks.enumerated() {
                let place = (row: 2 * line - QRCode.quietZone, column: column - QRCode.quietZone)
                let (upper, lower) = ("█▀".contains(block), "█▄".contains(block))
                #expect(upper != code.isDark(place.row, place.column), "\(place)")
                #expect(lower != code.isDark(place.row + 1, place.column), "\(place)")
            }
        }
        #expect(QRCode(String(repeating: "7", count: 10_000)) == nil)
    }
}

/// Reads QR codes of version 2 (25 modules) with one block of codewords and digits only: ISO/IEC 18004, written for
/// these tests without a look at the library that makes them.
private struct QRReader {
    enum Fault: Error { case format, codewords, content }

    let width: Int
    let isDark: (Int, Int) -> Bool

    var hasFinders: Bool {
        [(0, 0), (0, width - 7), (width - 7, 0)].allSatisfy { top, left in
            (0..<7).allSatisfy { row in
                (0..<7).allSatisfy { column in
                    let ring = max(abs(row - 3), abs(column - 3))
                    return isDark(top + row, left + column) == (ring != 2)
                }
            }
        }
    }

    /// Level and mask, after the fixed pattern over them is removed.
    private func format() throws(Fault) -> (level: Int, mask: Int) {
        let places = (0..<6).map { (8, $0) } + [(8, 7), (8, 8), (7, 8)] + (0..<6).reversed().map { ($0, 8) }
        let value = places.reduce(0) { $0 << 1 | (isDark($1.0, $1.1) ? 1 : 0) } ^ 0b101_0100_0001_0010
        // The lower ten bits are the remainder of the upper five by the generator of the BCH code.
        var remainder = value
        for bit in stride(from: 14, through: 10, by: -1) where remainder >> bit & 1 == 1 {
            remainder ^= 0b101_0011_0111 << (bit - 10)
        }
        guard remainder == 0 else { throw .format }
        return (value >> 13, value >> 10 & 0b111)
    }

    private func isFunction(_ row: Int, _ column: Int) -> Bool {
        if row == 6 || column == 6 { return true }
        if row < 9, column < 9 || column >= width - 8 { return true }
        if row >= width - 8, column < 9 { return true }
        return (16...20).contains(row) && (16...20).contains(column)
    }

    private static func isMasked(_ mask: Int, _ row: Int, _ column: Int) -> Bool {
        switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: row * column % 2 + row * column % 3 == 0
        case 6: (row * column % 2 + row * column % 3) % 2 == 0
        default: ((row + column) % 2 + row * column % 3) % 2 == 0
        }
    }

    private func codewords(_ mask: Int) -> [UInt8] {
        var (bits, right, goesUp) = ([Bool](), width - 1, true)
        while right > 0 {
            if right == 6 { right -= 1 }
            for step in 0..<width {
                let row = goesUp ? width - 1 - step : step
                for column in [right, right - 1] where !isFunction(row, column) {
                    bits.append(isDark(row, column) != Self.isMasked(mask, row, column))
                }
            }
            (right, goesUp) = (right - 2, !goesUp)
        }
        return stride(from: 0, to: bits.count - 7, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
    }

    /// The block as a polynomial is zero at the powers of 2 as far as there are codewords for error correction.
    private static func isRight(_ block: [UInt8], corrections: Int) -> Bool {
        func product(_ one: UInt8, _ other: UInt8) -> UInt8 {
            var (left, right, sum) = (UInt16(one), other, UInt16(0))
            while right > 0 {
                if right & 1 == 1 { sum ^= left }
                left <<= 1
                if left & 0x100 != 0 { left ^= 0x11D }
                right >>= 1
            }
            return UInt8(truncatingIfNeeded: sum)
        }
        var power: UInt8 = 1
        for _ in 0..<corrections {
            if block.reduce(UInt8(0), { product($0, power) ^ $1 }) != 0 { return false }
            power = product(power, 2)
        }
        return true
    }

    func digits() throws(Fault) -> String {
        let (level, mask) = try format()
        // Level M: 28 codewords of content, 16 for error correction.
        guard level == 0 else { throw .format }
        let block = codewords(mask)
        guard block.count == 44, Self.isRight(block, corrections: 16) else { throw .codewords }
        var bits = block.prefix(28).flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 == 1 } }[...]
        func number(_ count: Int) -> Int {
            defer { bits = bits.dropFirst(count) }
            return bits.prefix(count).reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
        }
        guard number(4) == 1 else { throw .content }
        var (left, text) = (number(10), "")
        while left > 0 {
            let count = min(3, left)
            let value = String(number([0, 4, 7, 10][count]))
            guard value.count <= count else { throw .content }
            text += String(repeating: "0", count: count - value.count) + value
            left -= count
        }
        return text
    }
}
