// Linux only: OpenSSL; on Apple platforms: CryptoKit's SHA256.
internal import COpenSSL

/// What SHA-256 gives (FIPS 180-4), as a value: 32 bytes that need no heap.
///
/// For hashes that everybody may see: it is compared with `==`, whose time tells where two differ.
public struct Digest256: Sendable, Hashable {
    /// Bytes of a digest.
    public static let byteCount = 32
    /// 32 zero bytes, which no input is known to give.
    public static let zero = Digest256()

    // The bytes in their order in memory, whatever the machine holds for the order inside of a number.
    private var words = SIMD4<UInt64>.zero

    private init() {}

    /// - Returns: nil for anything but 32 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
    }

    /// SHA-256 of these bytes.
    public static func of(_ bytes: [UInt8]) -> Digest256 { tagged(nil, bytes) }

    /// The 32 bytes.
    public var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }

    /// A bit of it, the first being the highest of the first byte.
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

    /// SHA-256(tag ‖ secret); what SHA-256 has kept of it is overwritten.
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
    /// Lower-case hex.
    public var description: String { Hex.encode(bytes) }
}
