// Linux only: OpenSSL; on Apple platforms: CryptoKit's SHA256.
internal import COpenSSL
import ThicketPlatform

/// A digest of SHA-256 (FIPS 180-4) as a value: 32 bytes without a heap allocation.
///
/// For public hashes only: `==` does not take constant time.
public struct Digest256: Sendable, Hashable {
    /// Bytes of a digest.
    public static let byteCount = 32
    /// 32 zero bytes, which are not the digest of any known input.
    public static let zero = Digest256()

    // The bytes in memory order, independent of the machine's byte order.
    private var words = SIMD4<UInt64>.zero

    private init() {}

    /// Makes a digest from its bytes.
    ///
    /// - Returns: nil for another number than 32 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
    }

    /// The SHA-256 of bytes.
    public static func of(_ bytes: [UInt8]) -> Digest256 { tagged(nil, bytes) }

    /// The 32 bytes.
    public var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }

    /// A bit of the digest; bit 0 is the highest of the first byte.
    ///
    /// - Parameter index: 0...255.
    func bit(_ index: Int) -> Bool { withUnsafeBytes(of: words) { $0[index >> 3] >> UInt8(7 - index & 7) & 1 == 1 } }

    /// SHA-256(tag ‖ bytes).
    static func tagged(_ tag: UInt8?, _ bytes: [UInt8]) -> Digest256 {
        hashing { state in
            if var tag { thicket_sha256_update(&state, &tag, 1) }
            thicket_sha256_update(&state, bytes, bytes.count)
        }
    }

    /// SHA-256(tag ‖ left ‖ right).
    static func tagged(_ tag: UInt8, _ left: Digest256, _ right: Digest256) -> Digest256 {
        hashing { state in
            var tag = tag
            thicket_sha256_update(&state, &tag, 1)
            for part in [left, right] {
                _ = withUnsafeBytes(of: part.words) { thicket_sha256_update(&state, $0.baseAddress, $0.count) }
            }
        }
    }

    /// SHA-256(tag ‖ secret); the state of SHA-256 is overwritten afterwards.
    static func tagged(_ tag: UInt8, _ secret: SecureBytes) -> Digest256 {
        hashing { state in
            var tag = tag
            thicket_sha256_update(&state, &tag, 1)
            _ = secret.withUnsafeBytes { thicket_sha256_update(&state, $0.baseAddress, $0.count) }
        }
    }

    private static func hashing(_ write: (inout SHA256_CTX) -> Void) -> Digest256 {
        var state = SHA256_CTX()
        defer { OPENSSL_cleanse(&state, MemoryLayout<SHA256_CTX>.size) }
        thicket_sha256_init(&state)
        write(&state)
        var digest = Digest256()
        _ = withUnsafeMutableBytes(of: &digest.words) { thicket_sha256_final($0.baseAddress, &state) }
        return digest
    }
}

extension Digest256: CustomStringConvertible {
    /// The bytes as lower-case hex.
    public var description: String { Hex.encode(bytes) }
}
