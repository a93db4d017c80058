// Linux only: OpenSSL; on Apple platforms: CryptoKit's SHA256.
internal import COpenSSL

/// The values that old notes accounts send instead of user name and password (Onions).
///
/// 15,000 rounds of SHA-256 without a salt: the server never sees the password, but an attacker with these values can
/// try passwords cheaply, and can also sign in. They are secrets like the password.
public struct StretchedCredentials: Sendable {
    /// Rounds of SHA-256.
    public static let rounds = 15_000
    /// Letters of a stretched value: 32 bytes in base64 with padding.
    public static let letterCount = 44

    /// Sent as the user name: base64 of the stretched user name.
    public let username: SecureBytes
    /// Sent as the password: base64 of the stretched password ‖ user name.
    public let password: SecureBytes

    /// Derives both values. The inputs are not trimmed, folded or normalised: other bytes are another account.
    ///
    /// - Parameters:
    ///   - username: UTF-8.
    ///   - password: UTF-8.
    /// - Throws: `outOfBounds(.count)` when one of them is empty.
    public init(username: SecureBytes, password: SecureBytes) throws(CryptoError) {
        guard username.count > 0, password.count > 0 else { throw .outOfBounds(.count) }
        self.username = Self.stretch(username, rounds: Self.rounds)
        self.password = Self.stretch(.joined([password, username]), rounds: Self.rounds)
    }

    /// - Parameter rounds: 1 or more; published test values also use other numbers.
    package static func stretch(_ text: SecureBytes, rounds: Int) -> SecureBytes {
        let digest = SecureBytes(count: Digest256.byteCount) { room in
            text.withUnsafeBytes { Hash.digest(.sha256, $0, into: room) }
            var state = SHA256_CTX()
            for _ in 1..<rounds {
                thicket_sha256_init(&state)
                thicket_sha256_update(&state, room.baseAddress, room.count)
                thicket_sha256_final(room.octets, &state)
            }
            OPENSSL_cleanse(&state, MemoryLayout<SHA256_CTX>.size)
        }
        return digest.withUnsafeBytes { digest in
            SecureBytes(count: letterCount) { letters in
                for place in 0..<letterCount { letters[place] = letter(place, of: digest) }
            }
        }
    }

    /// A letter of base64 (RFC 4648, 4), computed without a table, because cache lines would reveal which entry was
    /// read.
    private static func letter(_ place: Int, of bytes: UnsafeRawBufferPointer) -> UInt8 {
        // 32 bytes are 42 letters of 6 bits, one of 4 bits, and one for padding.
        guard place < letterCount - 1 else { return UInt8(ascii: "=") }
        let bit = place * 6
        let next = bit / 8 + 1 < bytes.count ? UInt16(bytes[bit / 8 + 1]) : 0
        let pair = UInt16(bytes[bit / 8]) << 8 | next
        let value = Int16(truncatingIfNeeded: pair >> UInt16(10 - bit % 8) & 63)
        // `jump` if the value is at or above `border`, where the next run of the alphabet begins: A-Z, a-z, 0-9, +, /.
        func step(_ border: Int16, _ jump: Int16) -> Int16 { ~((value - border) >> 15) & jump }
        return UInt8(truncatingIfNeeded: value + 65 + step(26, 6) + step(52, -75) + step(62, -15) + step(63, 3))
    }
}
