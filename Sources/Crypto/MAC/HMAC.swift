// Linux only: OpenSSL; on Apple platforms: CryptoKit's HMAC.
internal import COpenSSL

/// HMAC (RFC 2104) in one call. For many messages with one key see `MessageKey256` and `MessageKey512`.
public enum HMAC {
    /// The code of a message, as long as the hash's digest.
    ///
    /// - Parameters:
    ///   - function: the hash function.
    ///   - key: of any length.
    ///   - message: the bytes to authenticate.
    public static func code(_ function: HashFunction, key: SecureBytes, _ message: [UInt8]) -> [UInt8] {
        [UInt8].made(function.digestBytes) { room in
            key.withUnsafeBytes { key in message.withUnsafeBytes { write(function, key: key, $0, into: room) } }
        }
    }

    /// The code of a message from memory that the caller lends.
    public static func code(_ function: HashFunction, key: SecureBytes, _ message: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8].made(function.digestBytes) { room in
            key.withUnsafeBytes { write(function, key: $0, message, into: room) }
        }
    }

    /// A code that is a secret itself: a key derived from a key.
    public static func secret(_ function: HashFunction, key: SecureBytes, _ message: [UInt8]) -> SecureBytes {
        SecureBytes(count: function.digestBytes) { room in
            key.withUnsafeBytes { key in message.withUnsafeBytes { write(function, key: key, $0, into: room) } }
        }
    }

    /// Whether it is the complete code of the message. Compares in constant time.
    public static func isCode(
        _ code: [UInt8], _ function: HashFunction, key: SecureBytes, of message: UnsafeRawBufferPointer
    ) -> Bool {
        ConstantTime.equal(self.code(function, key: key, message), code)
    }

    /// Whether it is the complete code of the message. Compares in constant time.
    public static func isCode(
        _ code: [UInt8], _ function: HashFunction, key: SecureBytes, of message: [UInt8]
    ) -> Bool {
        message.withUnsafeBytes { isCode(code, function, key: key, of: $0) }
    }

    static func write(
        _ function: HashFunction, key: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) {
        precondition(room.count == function.digestBytes, "a code has the length of a digest")
        switch function {
        case .sha256:
            var key = MessageKey256(bytes: key)
            key.write(message, to: room.octets)
            return OPENSSL_cleanse(&key, MemoryLayout<MessageKey256>.size)
        case .sha512:
            var key = MessageKey512(bytes: key)
            key.write(message, to: room.octets)
            return OPENSSL_cleanse(&key, MemoryLayout<MessageKey512>.size)
        case .sha1: break
        }
        let context = EVP_MAC_CTX_new(implementation.pointer)
        defer { EVP_MAC_CTX_free(context) }
        let isWritten =
            function.withName { thicket_hmac_begin(context, $0, key.octets, key.count) } == 1
            && EVP_MAC_update(context, message.octets, message.count) == 1
            && EVP_MAC_final(context, room.octets, nil, room.count) == 1
        precondition(isWritten, "OpenSSL refused an HMAC, which has no failing input")
    }

    private static let implementation = Fetched.mac("HMAC")
}

extension Hash {
    /// HMAC-SHA-256 (RFC 2104), 32 bytes, for a key that is an array already.
    public static func hmacSHA256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] { code(.sha256, key, bytes[...]) }

    /// HMAC-SHA-512 (RFC 2104), 64 bytes. RFC 7518, 3.2 requires a key of 64 bytes or more for HS512.
    public static func hmacSHA512(key: [UInt8], _ bytes: ArraySlice<UInt8>) -> [UInt8] { code(.sha512, key, bytes) }

    private static func code(_ function: HashFunction, _ key: [UInt8], _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        [UInt8].made(function.digestBytes) { room in
            key.withUnsafeBytes { key in bytes.withUnsafeBytes { HMAC.write(function, key: key, $0, into: room) } }
        }
    }
}
