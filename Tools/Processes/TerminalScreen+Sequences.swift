/// The parsing of bytes into letters and control sequences.
extension TerminalScreen {
    /// Shows a program's output. A letter or sequence that is cut continues with the next bytes.
    public mutating func feed(_ bytes: some Sequence<UInt8>) { for byte in bytes { feed(byte) } }

    private static let escape: UInt8 = 0x1B

    private mutating func feed(_ byte: UInt8) {
        guard !pending.isEmpty else { return begin(byte) }
        guard continues(byte) else {
            recordUnknown(pending)
            pending = []
            return begin(byte)
        }
        pending.append(byte)
        guard isComplete else { return }
        let whole = pending
        pending = []
        if !perform(whole) { recordUnknown(whole) }
    }

    private mutating func begin(_ byte: UInt8) {
        switch byte {
        case Self.escape, 0x80...: pending = [byte]
        case 0x20..<0x7F: put(Unicode.Scalar(byte))
        // Nothing, and the bell.
        case 0x00, 0x07, 0x7F: break
        case 0x08: move(column: cursor.column - 1)
        case 0x09: move(column: cursor.column / 8 * 8 + 8)
        case 0x0A...0x0C: lineFeed()
        case 0x0D: move(column: 0)
        default: recordUnknown([byte])
        }
    }

    // MARK: - The end of a piece

    private var isText: Bool { pending[0] != Self.escape }
    /// A title or the like: any bytes up to a bell or ESC \.
    private var isString: Bool { pending.count > 1 && !isText && "]P^_X".utf8.contains(pending[1]) }

    private func continues(_ byte: UInt8) -> Bool {
        if isText { return 0x80..<0xC0 ~= byte && pending[0] >= 0xC0 }
        return isString || 0x20..<0x7F ~= byte
    }

    private var isComplete: Bool {
        let last = pending[pending.count - 1]
        if isText { return pending.count == (pending[0] >= 0xF0 ? 4 : pending[0] >= 0xE0 ? 3 : 2) }
        if isString { return last == 0x07 || pending.suffix(2) == [Self.escape, UInt8(ascii: "\\")] }
        switch pending[1] {
        case UInt8(ascii: "["): return pending.count > 2 && 0x40..<0x7F ~= last
        case 0x20..<0x30: return pending.count > 2 && last >= 0x30
        default: return true
        }
    }

    private mutating func recordUnknown(_ bytes: [UInt8]) {
        guard unknown.count < Self.unknownMax else { return }
        unknown.append(
            bytes.map { (byte: UInt8) in
                if byte == Self.escape { return "\\e" }
                return 0x20..<0x7F ~= byte
                    ? String(Unicode.Scalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }.joined())
    }

    // MARK: - Effects

    /// - Returns: false for an unknown sequence.
    private mutating func perform(_ whole: [UInt8]) -> Bool {
        guard whole[0] == Self.escape else {
            guard let letter = String(validating: whole, as: UTF8.self)?.unicodeScalars.first,
                letter.value >= 0xA0
            else { return false }
            put(letter)
            return true
        }
        switch String(decoding: whole[1...], as: UTF8.self) {
        case "7": saveCursor()
        case "8": restoreCursor()
        case "D": lineFeed()
        case "M": reverseLineFeed()
        case "E":
            move(column: 0)
            lineFeed()
        // The number pad, and the plain character set (ncurses selects it when it ends an attribute).
        case "=", ">", "(B", ")B": break
        case let text where text.hasPrefix("["): return control(text.dropFirst())
        default: return false
        }
        return true
    }

    /// A control sequence: numbers, then a letter that gives their meaning.
    private mutating func control(_ text: Substring) -> Bool {
        let isPrivate = text.hasPrefix("?")
        var numbers = [Int]()
        for part in text.dropFirst(isPrivate ? 1 : 0).dropLast()
            .split(separator: ";", omittingEmptySubsequences: false)
        {
            // An omitted number is 0. Anything else has a meaning that is not known here.
            guard part.utf8.count <= 5, part.utf8.allSatisfy({ 0x30..<0x3A ~= $0 }) else { return false }
            numbers.append(Int(part) ?? 0)
        }
        let letter = text.last ?? " "
        if isPrivate {
            guard letter == "h" || letter == "l" else { return false }
            return numbers.allSatisfy { set($0, letter == "h") }
        }
        return move(letter, numbers) || change(letter, numbers)
    }

    private mutating func move(_ letter: Character, _ numbers: [Int]) -> Bool {
        let count = max(1, numbers[0])
        switch letter {
        case "A": climb(-count)
        case "B", "e": climb(count)
        case "C", "a": move(column: cursor.column + count)
        case "D": move(column: cursor.column - count)
        case "E", "F":
            climb(letter == "E" ? count : -count)
            move(column: 0)
        case "G", "`": move(column: count - 1)
        case "H", "f": move(row: count - 1, column: max(1, numbers.dropFirst().first ?? 1) - 1)
        case "I": move(column: (cursor.column / 8 + count) * 8)
        case "Z": move(column: ((cursor.column + 7) / 8 - count) * 8)
        case "d": move(row: count - 1)
        default: return false
        }
        return true
    }

    private mutating func change(_ letter: Character, _ numbers: [Int]) -> Bool {
        let count = max(1, numbers[0])
        switch letter {
        case "@": insertCells(count)
        case "J": return eraseScreen(numbers[0])
        case "K": return eraseInRow(numbers[0])
        case "L": insertRows(count)
        case "M": insertRows(-count)
        case "P": deleteCells(count)
        case "S": scroll(count)
        // With more numbers it is a mouse command.
        case "T" where numbers.count == 1: scroll(-count)
        case "X": eraseCells(count)
        case "b": putAgain(count)
        case "h" where numbers == [4]: setInserts(true)
        case "l" where numbers == [4]: setInserts(false)
        // Colours and the like.
        case "m": break
        case "r": return setScrolled(count, numbers.count > 1 && numbers[1] > 0 ? numbers[1] : rowCount)
        // Saves and restores the window's title.
        case "t" where numbers[0] == 22 || numbers[0] == 23: break
        default: return false
        }
        return true
    }
}
