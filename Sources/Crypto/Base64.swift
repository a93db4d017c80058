/// base64 and base64url (RFC 4648), without leniency: one text for each sequence of bytes, and nothing else is read.
public enum Base64 {
    /// base64 with padding (section 4).
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = letters(of: bytes, standard)
        text.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (3 - bytes.count % 3) % 3))
        return String(decoding: text, as: UTF8.self)
    }

    /// base64url without padding (section 5; RFC 7515, 2).
    public static func encodeURL(_ bytes: [UInt8]) -> String {
        String(decoding: letters(of: bytes, url), as: UTF8.self)
    }

    /// Reads base64 with its padding.
    /// - Returns: nil for white space, missing or superfluous padding, other letters, or unused bits that are not zero.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let padding: Int = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return bytes(of: text.dropLast(padding), standardValues)
    }

    /// Reads base64url without padding.
    /// - Returns: nil for white space, padding, other letters, a length that no bytes have, or unused bits that are not
    ///   zero.
    public static func decodeURL(_ text: ArraySlice<UInt8>) -> [UInt8]? { bytes(of: text, urlValues) }

    private static let standard: [UInt8] = alphabet("+", "/")
    private static let url: [UInt8] = alphabet("-", "_")
    private static let standardValues: [UInt8] = values(of: standard)
    private static let urlValues: [UInt8] = values(of: url)
    /// Stands for "no letter" in the tables of values.
    private static let none: UInt8 = 0xFF

    private static func alphabet(_ last: Character...) -> [UInt8] {
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8) + last.compactMap(\.asciiValue)
    }

    private static func values(of alphabet: [UInt8]) -> [UInt8] {
        var values: [UInt8] = .init(repeating: none, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }

    private static func letters(of bytes: [UInt8], _ alphabet: [UInt8]) -> [UInt8] {
        .init(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { room, count in
            bytes.withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) in
                alphabet.withUnsafeBufferPointer { write(bytes, $0, to: room, &count) }
            }
        }
    }

    private static func write(
        _ bytes: UnsafeBufferPointer<UInt8>, _ alphabet: UnsafeBufferPointer<UInt8>,
        to room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
    ) {
        var place: Int = 0
        while place + 3 <= bytes.count {
            let (a, b, c): (UInt8, UInt8, UInt8) = (bytes[place], bytes[place + 1], bytes[place + 2])
            room[count] = alphabet[Int(a >> 2)]
            room[count + 1] = alphabet[Int((a & 3) << 4 | b >> 4)]
            room[count + 2] = alphabet[Int((b & 15) << 2 | c >> 6)]
            room[count + 3] = alphabet[Int(c & 63)]
            (place, count) = (place + 3, count + 4)
        }
        guard place < bytes.count else { return }
        let (a, b): (UInt8, UInt8) = (bytes[place], place + 1 < bytes.count ? bytes[place + 1] : 0)
        room[count] = alphabet[Int(a >> 2)]
        room[count + 1] = alphabet[Int((a & 3) << 4 | b >> 4)]
        count += 2
        guard place + 1 < bytes.count else { return }
        room[count] = alphabet[Int((b & 15) << 2)]
        count += 1
    }

    private static func bytes(of text: ArraySlice<UInt8>, _ values: [UInt8]) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var isRead: Bool = false
        let bytes: [UInt8] = .init(unsafeUninitializedCapacity: text.count / 4 * 3 + 3) { room, count in
            isRead = text.withUnsafeBufferPointer { (text: UnsafeBufferPointer<UInt8>) in
                values.withUnsafeBufferPointer { read(text, $0, to: room, &count) }
            }
        }
        return isRead ? bytes : nil
    }

    /// - Returns: false for what is no base64; then nothing in `room` counts.
    private static func read(
        _ text: UnsafeBufferPointer<UInt8>, _ values: UnsafeBufferPointer<UInt8>,
        to room: UnsafeMutableBufferPointer<UInt8>, _ count: inout Int
    ) -> Bool {
        // A letter's value has six bits, "no letter" all eight: one look at the end tells whether there was any.
        var seen: UInt8 = 0
        var place: Int = 0
        while place + 4 <= text.count {
            let (a, b): (UInt8, UInt8) = (values[Int(text[place])], values[Int(text[place + 1])])
            let (c, d): (UInt8, UInt8) = (values[Int(text[place + 2])], values[Int(text[place + 3])])
            seen |= a | b | c | d
            room[count] = a << 2 | b >> 4
            room[count + 1] = b << 4 | c >> 2
            room[count + 2] = c << 6 | d
            (place, count) = (place + 4, count + 3)
        }
        var (bits, width): (UInt32, Int) = (0, 0)
        for letter: UInt8 in text[place...] {
            let value: UInt8 = values[Int(letter)]
            seen |= value
            (bits, width) = (bits << 6 | UInt32(value), width + 6)
            guard width >= 8 else { continue }
            width -= 8
            room[count] = UInt8(truncatingIfNeeded: bits >> UInt32(width))
            count += 1
            bits &= (1 << UInt32(width)) - 1
        }
        return seen < 64 && bits == 0
    }
}
