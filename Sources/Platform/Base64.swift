/// base64 and base64url (RFC 4648), strict: each sequence of bytes has exactly one text, and any other text is refused.
package enum Base64 {
    /// Encodes as base64 with padding (section 4).
    package static func encode(_ bytes: [UInt8]) -> String {
        var text = letters(of: bytes, standard)
        text.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (3 - bytes.count % 3) % 3))
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes as base64url without padding (section 5; RFC 7515, 2).
    package static func encodeURL(_ bytes: [UInt8]) -> String {
        String(decoding: letters(of: bytes, url), as: UTF8.self)
    }

    /// Decodes base64 with padding.
    ///
    /// - Returns: nil for white space, missing or superfluous padding, other characters, or unused bits that are not
    ///   zero.
    package static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return text.dropLast(padding).withUnsafeBufferPointer { bytes(of: $0, standardValues) }
    }

    /// Decodes base64url without padding.
    ///
    /// - Returns: nil for white space, padding, other characters, an impossible length, or unused bits that are not
    ///   zero.
    package static func decodeURL(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        text.withUnsafeBufferPointer { bytes(of: $0, urlValues) }
    }

    /// Decodes base64url without padding, from memory that the caller lends.
    package static func decodeURL(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? { bytes(of: text, urlValues) }

    /// Decodes base64url without padding into memory of the caller.
    ///
    /// - Parameters:
    ///   - text: the text to decode.
    ///   - room: memory for exactly `decodedCount` bytes.
    /// - Returns: false for a text that is not base64url; the content of `room` is undefined then.
    package static func decodeURL(
        _ text: UnsafeBufferPointer<UInt8>, into room: UnsafeMutableBufferPointer<UInt8>
    ) -> Bool {
        precondition(decodedCount(text.count) == room.count, "the memory must have exactly the decoded size")
        return read(text, urlValues, to: room)
    }

    /// Number of bytes that a text of this length decodes to, without padding; nil for an impossible length.
    package static func decodedCount(_ letters: Int) -> Int? {
        letters % 4 == 1 ? nil : letters / 4 * 3 + max(0, letters % 4 - 1)
    }

    /// Whether a byte is one of the 64 letters of base64.
    package static func isLetter(_ byte: UInt8) -> Bool { standardValues[Int(byte)] != none }

    private static let standard = alphabet("+", "/")
    private static let url = alphabet("-", "_")
    private static let standardValues = values(of: standard)
    private static let urlValues = values(of: url)
    /// Marks other characters in the tables of values.
    private static let none: UInt32 = 0xFF00_0000

    private static func alphabet(_ last: Character...) -> [UInt8] {
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8) + last.compactMap(\.asciiValue)
    }

    /// For each position in a group of four and each character, its six bits at their place in the three bytes, the
    /// first byte being the lowest.
    private static func values(of alphabet: [UInt8]) -> [UInt32] {
        var values = [UInt32](repeating: none, count: 4 * 256)
        for (number, letter) in alphabet.enumerated() {
            let bits = UInt32(number)
            values[Int(letter)] = bits << 2
            values[256 + Int(letter)] = bits >> 4 | (bits & 15) << 12
            values[512 + Int(letter)] = (bits >> 2) << 8 | (bits & 3) << 22
            values[768 + Int(letter)] = bits << 16
        }
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
        var place = 0
        while place + 3 <= bytes.count {
            let (a, b, c) = (bytes[place], bytes[place + 1], bytes[place + 2])
            room[count] = alphabet[Int(a >> 2)]
            room[count + 1] = alphabet[Int((a & 3) << 4 | b >> 4)]
            room[count + 2] = alphabet[Int((b & 15) << 2 | c >> 6)]
            room[count + 3] = alphabet[Int(c & 63)]
            (place, count) = (place + 3, count + 4)
        }
        guard place < bytes.count else { return }
        let (a, b) = (bytes[place], place + 1 < bytes.count ? bytes[place + 1] : 0)
        room[count] = alphabet[Int(a >> 2)]
        room[count + 1] = alphabet[Int((a & 3) << 4 | b >> 4)]
        count += 2
        guard place + 1 < bytes.count else { return }
        room[count] = alphabet[Int((b & 15) << 2)]
        count += 1
    }

    private static func bytes(of text: UnsafeBufferPointer<UInt8>, _ values: [UInt32]) -> [UInt8]? {
        guard let bytes = decodedCount(text.count) else { return nil }
        // All empty arrays share one object, and several threads would write its count at the same time.
        guard bytes > 0 else { return [] }
        var isRead = false
        let decoded = [UInt8](unsafeUninitializedCapacity: bytes) { room, count in
            isRead = read(text, values, to: .init(rebasing: room[..<bytes]))
            count = bytes
        }
        return isRead ? decoded : nil
    }

    /// - Parameter room: memory for `decodedCount` bytes.
    /// - Returns: false for a text that is not base64; the content of `room` is undefined then.
    private static func read(
        _ text: UnsafeBufferPointer<UInt8>, _ values: [UInt32], to room: UnsafeMutableBufferPointer<UInt8>
    ) -> Bool {
        values.withUnsafeBufferPointer { values in
            // One check at the end finds out whether all characters were valid.
            var seen: UInt32 = 0
            var (place, written) = (0, 0)
            let bytes = UnsafeMutableRawBufferPointer(room)
            // Writes four bytes of which three are valid; the loop stops early enough that the fourth is inside `room`.
            while place + 8 <= text.count {
                let word =
                    values[Int(text[place])] | values[256 + Int(text[place + 1])]
                    | values[512 + Int(text[place + 2])] | values[768 + Int(text[place + 3])]
                seen |= word
                bytes.storeBytes(of: word.littleEndian, toByteOffset: written, as: UInt32.self)
                (place, written) = (place + 4, written + 3)
            }
            while place < text.count {
                var word: UInt32 = 0
                let count = min(4, text.count - place)
                for letter in 0..<count { word |= values[letter * 256 + Int(text[place + letter])] }
                seen |= word
                for _ in 0..<(count == 4 ? 3 : count - 1) {
                    room[written] = UInt8(truncatingIfNeeded: word)
                    (word, written) = (word >> 8, written + 1)
                }
                // Unused bits must be zero.
                if count < 4, word & 0xFF != 0 { return false }
                place += count
            }
            return seen & none == 0
        }
    }
}
