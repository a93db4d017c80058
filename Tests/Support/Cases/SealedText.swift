import ThicketProtocol

/// Values that look sealed to a server: a header, and arbitrary bytes for the rest. The layout is that of decision
/// 0042; no key opens them.
public enum SealedText {
    /// Header, nonce and tag.
    private static let frameBytes = 22 + 12 + 16

    /// A sealed operation with this id, 32 hex digits.
    /// - Parameter clearBytes: a multiple of 64.
    public static func operation(_ changeID: String, clearBytes: Int = 64) -> String {
        text(kind: 2, id: hex(changeID), clearBytes: clearBytes)
    }

    /// A sealed snapshot.
    /// - Parameters:
    ///   - number: distinguishes it from others.
    ///   - clearBytes: a size that Padmé gives, such as a power of two.
    public static func snapshot(_ number: UInt8 = 0, clearBytes: Int = 64) -> String {
        text(kind: 1, id: Array(repeating: number, count: 16), clearBytes: clearBytes)
    }

    /// 32 hex digits.
    public static func changeID(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.utf8.count) + digits
    }

    /// A key as the server knows it.
    public static func key(_ number: Int = 0) -> String {
        let letter = Character(Unicode.Scalar(UInt8(ascii: "a") + UInt8(number % 26)))
        return String(repeating: letter, count: 32)
    }

    /// Any header on as many bytes as are asked for.
    public static func text(
        suite: UInt8 = 1, kind: UInt8, epoch: UInt8 = 0, id: [UInt8], clearBytes: Int
    ) -> String {
        base64URL([suite, kind, 0, 0, 0, epoch] + id + Array(repeating: 0xA5, count: frameBytes - 22 + clearBytes))
    }

    private static func hex(_ text: String) -> [UInt8] {
        var bytes = [UInt8]()
        let digits = text.utf8.map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
        for place in stride(from: 0, to: digits.count, by: 2) {
            bytes.append(digits[place] << 4 | digits[place + 1])
        }
        return bytes
    }

    private static let letters: [UInt8] = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func base64URL(_ bytes: [UInt8]) -> String {
        var text = [UInt8]()
        var (gathered, bits) = (0, 0)
        for byte in bytes {
            (gathered, bits) = (gathered << 8 | Int(byte), bits + 8)
            while bits >= 6 {
                text.append(letters[gathered >> (bits - 6) & 63])
                bits -= 6
            }
            gathered &= 0xFF
        }
        if bits > 0 { text.append(letters[gathered << (6 - bits) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Changes, as `v`

    public static func creation(_ snapshot: String) -> JSONValue {
        [
            "z": ["o": "+", "v": 1], "s": ["o": "+", "v": ["0": .string(snapshot)]],
            "d": ["o": "+", "v": []],
        ]
    }

    public static func insertion(_ operation: String) -> JSONValue {
        ["d": ["o": "L", "v": ["0": ["o": "+", "v": .string(operation)]]]]
    }

    /// - Parameter removed: indexes of the tail.
    public static func compaction(
        _ position: Int, _ snapshot: String, over known: [Int], removing removed: Range<Int>
    ) -> JSONValue {
        var named: JSONObject = [:]
        named[String(position)] = ["o": "+", "v": .string(snapshot)]
        for old in known { named[String(old)] = ["o": "-"] }
        var tail: JSONObject = [:]
        for index in removed { tail[String(index)] = ["o": "-"] }
        return ["s": ["o": "O", "v": .object(named)], "d": ["o": "L", "v": .object(tail)]]
    }
}
