// Linux only: OpenSSL; on Apple platforms: CryptoKit's AES.GCM and ChaChaPoly.
internal import COpenSSL

/// The algorithm of a seal. Its number is written in the sealed bytes or beside the key; other numbers are refused.
public enum AEADSuite: UInt8, Sendable, CaseIterable {
    /// AES-256-GCM (NIST SP 800-38D; RFC 5116, 5.2).
    case aes256GCM = 1
    /// ChaCha20-Poly1305 (RFC 8439, 2.8).
    case chaCha20Poly1305 = 2

    /// Bytes of a key in either suite.
    public static let keyBytes = 32
    /// Bytes of a nonce in either suite.
    public static let nonceBytes = 12
    /// Bytes of a tag in either suite.
    public static let tagBytes = 16

    /// Reads a suite's number.
    ///
    /// - Throws: `outOfBounds(.suite)` for a number without a suite.
    public init(number: UInt8) throws(CryptoError) {
        guard let suite = AEADSuite(rawValue: number) else { throw .outOfBounds(.suite) }
        self = suite
    }

    var algorithm: AEADAlgorithm {
        switch self {
        case .aes256GCM: .aes256GCM
        case .chaCha20Poly1305: .chaCha20Poly1305
        }
    }
}

/// The two suites, and the algorithms that only published vectors and HPKE (RFC 9180, 7.3) use; Thicket never seals
/// with them.
package enum AEADAlgorithm: UInt8, Sendable {
    case aes256GCM = 1
    case chaCha20Poly1305 = 2
    case aes128GCM = 3
    case aes192GCM = 4

    package var keyBytes: Int {
        switch self {
        case .aes256GCM, .chaCha20Poly1305: 32
        case .aes128GCM: 16
        case .aes192GCM: 24
        }
    }

    /// Clear bytes of one seal at most: 2^36 − 32 (SP 800-38D, 5.2.1.1) and 2^38 − 64 (RFC 8439, 2.8).
    var clearBytesMax: Int {
        switch self {
        case .aes128GCM, .aes192GCM, .aes256GCM: 1 << 36 - 32
        case .chaCha20Poly1305: 1 << 38 - 64
        }
    }

    /// `const EVP_CIPHER *`.
    var implementation: OpaquePointer {
        switch self {
        case .aes128GCM: Self.aes128.pointer
        case .aes192GCM: Self.aes192.pointer
        case .aes256GCM: Self.aes256.pointer
        case .chaCha20Poly1305: Self.chaCha20.pointer
        }
    }

    private static let aes128 = Fetched.cipher("AES-128-GCM")
    private static let aes192 = Fetched.cipher("AES-192-GCM")
    private static let aes256 = Fetched.cipher("AES-256-GCM")
    private static let chaCha20 = Fetched.cipher("ChaCha20-Poly1305")
}

/// A nonce of 12 bytes, which one key uses once (RFC 5116, 3.1).
public struct AEADNonce: Sendable {
    // In memory order.
    private var bytes: (UInt32, UInt32, UInt32) = (0, 0, 0)

    /// Makes a nonce of bytes.
    ///
    /// - Parameter bytes: exactly 12.
    /// - Throws: `outOfBounds(.nonce)` for another length.
    public init(_ bytes: some Collection<UInt8>) throws(CryptoError) {
        guard bytes.count == AEADSuite.nonceBytes else { throw .outOfBounds(.nonce) }
        withUnsafeMutableBytes(of: &self.bytes) { $0.copyBytes(from: bytes) }
    }

    private init() {}

    /// A random nonce from OpenSSL's generator. One key seals at most 2^32 messages with random nonces (SP 800-38D,
    /// 8.3).
    public static func random() -> AEADNonce {
        var nonce = AEADNonce()
        withUnsafeMutableBytes(of: &nonce.bytes) { RandomBytes.fill($0) }
        return nonce
    }

    /// The nonce of a chunk: a number in 11 bytes, and whether it is the last (STREAM: Hoang, Reyhanitabar, Rogaway,
    /// Vizár 2015; spec 3.3).
    public static func chunk(_ number: UInt64, isLast: Bool) -> AEADNonce {
        var nonce = AEADNonce()
        withUnsafeMutableBytes(of: &nonce.bytes) { room in
            for place in 0..<8 { room[10 - place] = UInt8(truncatingIfNeeded: number >> UInt64(8 * place)) }
            room[11] = isLast ? 1 : 0
        }
        return nonce
    }

    /// This base nonce XOR a message number (RFC 9180, 5.2; RFC 8446, 5.3).
    func combined(with number: UInt64) -> AEADNonce {
        var nonce = self
        withUnsafeMutableBytes(of: &nonce.bytes) { room in
            for place in 0..<8 { room[11 - place] ^= UInt8(truncatingIfNeeded: number >> UInt64(8 * place)) }
        }
        return nonce
    }

    /// The 12 bytes in order.
    public var octets: [UInt8] { withUnsafeBytes { Array($0) } }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        Swift.withUnsafeBytes(of: bytes, body)
    }
}
