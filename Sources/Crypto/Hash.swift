// Linux only: OpenSSL; on Apple platforms: CommonCrypto and SecRandomCopyBytes behind the same functions.
internal import COpenSSL

/// One-shot digests and keyed hashes over OpenSSL's EVP.
public enum Hash {
    /// SHA-256 (FIPS 180-4), 32 bytes.
    public static func sha256(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, EVP_sha256(), 32) }

    /// SHA-1 (FIPS 180-4), 20 bytes. Only for the WebSocket handshake (RFC 6455, 4.2.2), where nothing rests on it.
    public static func sha1(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, EVP_sha1(), 20) }

    /// HMAC-SHA-256 (RFC 2104), 32 bytes.
    public static func hmacSHA256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = .init(repeating: 0, count: 32)
        var length: UInt32 = 0
        let result = HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &output, &length)
        precondition(result != nil && length == 32, "OpenSSL refused HMAC-SHA-256, which has no failing input")
        return output
    }

    /// HMAC-SHA-512 (RFC 2104), 64 bytes. A key of 64 bytes or more is what RFC 7518, 3.2 wants for HS512.
    public static func hmacSHA512(key: [UInt8], _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = .init(repeating: 0, count: 64)
        var length: UInt32 = 0
        let isDone: Bool = bytes.withUnsafeBufferPointer {
            HMAC(EVP_sha512(), key, Int32(key.count), $0.baseAddress, $0.count, &output, &length) != nil
        }
        precondition(isDone && length == 64, "OpenSSL refused HMAC-SHA-512, which has no failing input")
        return output
    }

    private static func digest(_ bytes: [UInt8], _ kind: OpaquePointer?, _ size: Int) -> [UInt8] {
        var output: [UInt8] = .init(repeating: 0, count: size)
        var length: UInt32 = 0
        let result: Int32 = EVP_Digest(bytes, bytes.count, &output, &length, kind, nil)
        precondition(result == 1 && Int(length) == size, "OpenSSL refused a digest, which has no failing input")
        return output
    }
}
