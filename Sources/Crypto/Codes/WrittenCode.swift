/// Bytes in a form that people write down and type again: base32 letters (RFC 4648, 6) in groups of four, eight groups
/// per line, and at the end of each line two check letters, computed from the line and its number. They reveal a typing
/// error and its line.
///
/// The lines need not be separated when they are typed. Capitals, spaces, hyphens and line ends are ignored; the digits
/// 0, 1 and 8, which are not in the alphabet, are read as the letters that they resemble.
public enum WrittenCode {
    /// Bytes of a line.
    public static let lineBytes = 20
    /// Bytes of a code at most.
    public static let bytesMax = 2_000
    /// Bytes of typed text that are read at most.
    public static let textBytesMax = 16_384
    private static let groupLetters = 4
    private static let checkLetters = 2

    /// Why a code cannot be read.
    public enum Failure: Error, Sendable, Hashable {
        /// The text contains a character that codes never contain, or has an impossible length.
        case unreadable
        /// This line, counted from 1, contains an error, or a letter is missing in an earlier line.
        case line(Int)
    }

    /// Encodes bytes.
    ///
    /// - Parameter bytes: 1...2,000 bytes.
    /// - Returns: the lines, each with a line feed, as a secret; nil for an empty or too long input.
    public static func text(of bytes: SecureBytes) -> SecureBytes? {
        guard (1...bytesMax).contains(bytes.count) else { return nil }
        var lines = [SecureBytes]()
        for start in stride(from: 0, to: bytes.count, by: lineBytes) {
            let part = bytes.part(start..<min(start + lineBytes, bytes.count))
            lines.append(line(part, number: lines.count + 1))
        }
        return .joined(lines)
    }

    /// Decodes a typed code.
    ///
    /// - Throws: `unreadable`, or the first line that does not match its check letters.
    public static func bytes(of text: SecureBytes) throws(Failure) -> SecureBytes {
        guard text.count <= textBytesMax else { throw .unreadable }
        let letters = try bare(PastedText.plain(text))
        guard letters.count > checkLetters else { throw .unreadable }
        let whole = letterCount(lineBytes) + checkLetters
        var parts = [SecureBytes]()
        for start in stride(from: 0, to: letters.count, by: whole) {
            let number = parts.count + 1
            let end = min(start + whole, letters.count)
            guard end - start > checkLetters else { throw .line(number) }
            let content = letters.part(start..<end - checkLetters)
            guard let part = decoded(content),
                check(part, number) == letters.part(end - checkLetters..<end)
            else { throw .line(number) }
            parts.append(part)
        }
        return .joined(parts)
    }

    // MARK: Lines

    private static func letterCount(_ bytes: Int) -> Int { (bytes * 8 + 4) / 5 }

    private static func line(_ part: SecureBytes, number: Int) -> SecureBytes {
        let letters = encoded(part)
        var groups = [SecureBytes]()
        for start in stride(from: 0, to: letters.count, by: groupLetters) {
            groups.append(letters.part(start..<min(start + groupLetters, letters.count)))
            groups.append(SecureBytes(copying: [0x20]))
        }
        return .joined(groups + [check(part, number), SecureBytes(copying: [0x0A])])
    }

    private static func encoded(_ part: SecureBytes) -> SecureBytes {
        SecureBytes(count: letterCount(part.count)) { room in
            part.withUnsafeBytes { Sextets.write($0, width: 5, to: room, letter: letter) }
        }
    }

    private static func decoded(_ letters: SecureBytes) -> SecureBytes? {
        // Impossible lengths: 1, 3 or 6 letters more than whole groups of eight.
        guard ![1, 3, 6].contains(letters.count % 8) else { return nil }
        var isRead = false
        let bytes = SecureBytes(count: letters.count * 5 / 8) { room in
            isRead = letters.withUnsafeBytes { Sextets.read($0, width: 5, to: room, value: value) }
        }
        return isRead ? bytes : nil
    }

    /// Ten bits of SHA-256(0x0C ‖ number ‖ the line's bytes).
    private static func check(_ part: SecureBytes, _ number: Int) -> SecureBytes {
        let head = SecureBytes(copying: [0x0C, UInt8(truncatingIfNeeded: number)])
        let digest = Hash.digest(.sha256, .joined([head, part]))
        return encoded(digest.part(0..<2)).part(0..<checkLetters)
    }

    /// The letters alone, in lower case.
    private static func bare(_ text: SecureBytes) throws(Failure) -> SecureBytes {
        var count = 0
        let room = try SecureBytes(count: text.count) { room throws(Failure) in
            try text.withUnsafeBytes { text throws(Failure) in
                for byte in text {
                    switch byte {
                    // Blanks, line ends and the punctuation that people write between groups.
                    case 0x20, 0x09, 0x0A, 0x0D, 0x2C...0x2F, 0x3A, 0x3B, 0x5F: continue
                    default: break
                    }
                    let value = value(byte)
                    guard value & 0x80 == 0 else { throw .unreadable }
                    room[count] = letter(UInt32(value))
                    count += 1
                }
            }
        }
        return room.part(0..<count)
    }

    private static func letter(_ value: UInt32) -> UInt8 {
        let v = Int32(value)
        return UInt8(truncatingIfNeeded: 97 + v - (Sextets.past(v, 25) & 73))
    }

    private static func value(_ letter: UInt8) -> UInt8 {
        let c = Int32(letter)
        var value: Int32 = 0x80
        value += Sextets.within(c, 97, 122) & (c - 97 - 0x80)
        value += Sextets.within(c, 65, 90) & (c - 65 - 0x80)
        value += Sextets.within(c, 50, 55) & (c - 50 + 26 - 0x80)
        value += Sextets.within(c, 48, 48) & (14 - 0x80)
        value += Sextets.within(c, 49, 49) & (11 - 0x80)
        value += Sextets.within(c, 56, 56) & (1 - 0x80)
        return UInt8(truncatingIfNeeded: value)
    }
}
