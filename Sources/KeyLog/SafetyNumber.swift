public import ThicketCrypto

/// 60 digits that two users compare, by phone or in person, to verify that each has the other's identity key and not an
/// attacker's.
///
/// For each of the two: d₀ = `thicket/safety-number/1` ‖ 0x00 ‖ user ‖ identity key, with 16 bits of length each; dₙ =
/// SHA-512(dₙ₋₁ ‖ identity key), 5,200 times; the first 30 bytes of the last one are six numbers of 40 bits,
/// big-endian, each of which gives five digits: its remainder modulo 100,000. The smaller 30 digits come first, so both
/// users see the same. Finding a key with the digits of another one takes about 2^99 attempts of 5,200 hashes each.
///
/// The encryption key is not included: the identity key signs it (`KeyLogEntry`), and it may change without a new
/// comparison.
public struct SafetyNumber: Sendable, Hashable, CustomStringConvertible {
    /// Number of digits.
    public static let digitsCount = 60
    /// Number of hashes for each of the two.
    static let rounds = 5_200
    private static let groupDigits = 5
    private static let groupsOfOne = 6

    /// 60 digits without separators.
    public let digits: String

    /// - Throws: `CryptoError.outOfBounds(.info)` for a user name of more than 65,535 bytes.
    public init(_ one: PublicKeys, _ other: PublicKeys) throws(CryptoError) {
        let halves = [try Self.half(one), try Self.half(other)].sorted()
        digits = halves.joined()
    }

    /// Twelve groups of five digits.
    public var description: String {
        let letters: [Character] = Array(digits)
        return stride(from: 0, to: letters.count, by: Self.groupDigits)
            .map { String(letters[$0..<$0 + Self.groupDigits]) }.joined(separator: " ")
    }

    private static func half(_ keys: PublicKeys) throws(CryptoError) -> String {
        var start = LabelledBytes("thicket/safety-number/1")
        try start.add(keys.user.utf8)
        try start.add(keys.identity.octets)
        var digest = start.octets
        for _ in 0..<rounds { digest = Hash.sha512(digest + keys.identity.octets) }
        return (0..<groupsOfOne).map { group in
            let number = digest[group * 5..<group * 5 + 5].reduce(0) { $0 << 8 | UInt64($1) }
            let text = String(number % 100_000)
            return String(repeating: "0", count: groupDigits - text.count) + text
        }.joined()
    }
}
