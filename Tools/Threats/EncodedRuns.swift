/// Bytes that a text contains as base64, base64url, base32 or hex: data that was packed before its encoding is found in
/// these.
enum EncodedRuns {
    /// Fewest letters of a run: shorter ones hold no canary.
    private static let lettersMin = 12

    /// All decodings of runs of letters, with zeros between: base64 of both alphabets from each of the four possible
    /// first letters, base32 from each of eight, hex from both.
    static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var found = [UInt8]()
        bytes.withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) in
            values.withUnsafeBufferPointer { (values: UnsafeBufferPointer<UInt8>) in
                gather(bytes, values, bits: 6, starts: 4, into: &found)
            }
            fives.withUnsafeBufferPointer { (fives: UnsafeBufferPointer<UInt8>) in
                gather(bytes, fives, bits: 5, starts: 8, into: &found)
            }
            digits.withUnsafeBufferPointer { (digits: UnsafeBufferPointer<UInt8>) in
                gather(bytes, digits, bits: 4, starts: 2, into: &found)
            }
        }
        return found
    }

    private static func gather(
        _ bytes: UnsafeBufferPointer<UInt8>, _ values: UnsafeBufferPointer<UInt8>, bits: UInt32, starts: Int,
        into found: inout [UInt8]
    ) {
        var run = [UInt8]()
        var place = 0
        while place <= bytes.count {
            if place < bytes.count, case let value = values[Int(bytes[place])], value != 0xFF {
                run.append(value)
                place += 1
            } else if case let skipped = lineEnd(bytes, place), skipped > 0, !run.isEmpty {
                // Old notes cut their base64 into lines.
                place += skipped
            } else {
                if run.count >= lettersMin { join(run, bits: bits, starts: starts, into: &found) }
                run.removeAll(keepingCapacity: true)
                place += 1
            }
        }
    }

    /// Bytes of a line's end at a place, as it is or in JSON's escapes; 0 without one.
    private static func lineEnd(_ bytes: UnsafeBufferPointer<UInt8>, _ place: Int) -> Int {
        guard place < bytes.count else { return 0 }
        if bytes[place] == 13 || bytes[place] == 10 { return 1 }
        guard bytes[place] == UInt8(ascii: "\\"), place + 1 < bytes.count else { return 0 }
        return bytes[place + 1] == UInt8(ascii: "r") || bytes[place + 1] == UInt8(ascii: "n") ? 2 : 0
    }

    private static func join(_ run: [UInt8], bits: UInt32, starts: Int, into found: inout [UInt8]) {
        for start in 0..<starts {
            var (kept, count): (UInt32, UInt32) = (0, 0)
            var place: Int = start
            while place < run.count {
                kept = kept << bits | UInt32(run[place])
                count += bits
                if count >= 8 {
                    count -= 8
                    found.append(UInt8(truncatingIfNeeded: kept >> count))
                }
                place += 1
            }
            found.append(0)
        }
    }

    private static let values = table(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", ("-", 62), ("_", 63))
    /// Values of base32 in both cases, the spelling of sealed objects' names.
    private static let fives = {
        var fives = table("abcdefghijklmnopqrstuvwxyz234567")
        for letter in 0x41...0x5A { fives[letter] = fives[letter + 0x20] }
        return fives
    }()
    private static let digits = table(
        "0123456789abcdef", ("A", 10), ("B", 11), ("C", 12), ("D", 13), ("E", 14), ("F", 15))

    /// The value of each letter; 255 for others.
    private static func table(_ letters: String, _ more: (Unicode.Scalar, UInt8)...) -> [UInt8] {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in letters.utf8.enumerated() { table[Int(letter)] = UInt8(value) }
        for (letter, value) in more { table[Int(UInt8(ascii: letter))] = value }
        return table
    }
}
