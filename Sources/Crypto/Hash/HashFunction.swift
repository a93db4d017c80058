// Linux only: OpenSSL; on Apple platforms: CryptoKit's SHA256, SHA512 and Insecure.SHA1.
internal import COpenSSL

/// A hash function, alone and inside HMAC, HKDF and PBKDF2.
public enum HashFunction: String, Sendable, CaseIterable {
    /// SHA-1 (FIPS 180-4): only for WebSocket handshakes (RFC 6455) and the PBKDF2 of old notes.
    case sha1
    /// SHA-256 (FIPS 180-4).
    case sha256
    /// SHA-512 (FIPS 180-4).
    case sha512

    /// Bytes of a digest.
    public var digestBytes: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }

    /// OpenSSL's name.
    var name: StaticString {
        switch self {
        case .sha1: "SHA1"
        case .sha256: "SHA256"
        case .sha512: "SHA512"
        }
    }

    /// OpenSSL's implementation, `const EVP_MD *`.
    var implementation: OpaquePointer {
        switch self {
        case .sha1: Self.sha1Fetched.pointer
        case .sha256: Self.sha256Fetched.pointer
        case .sha512: Self.sha512Fetched.pointer
        }
    }

    private static let sha1Fetched = Fetched.digest("SHA1")
    private static let sha256Fetched = Fetched.digest("SHA256")
    private static let sha512Fetched = Fetched.digest("SHA512")
}

extension HashFunction {
    /// Lends the name to C, which keeps no pointer to it.
    func withName<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        name.withUTF8Buffer { text in
            // A string literal ends with a zero byte (StaticString).
            body(UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self))
        }
    }
}
