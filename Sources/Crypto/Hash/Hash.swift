// Linux only: OpenSSL; on Apple platforms: CryptoKit's hashes.
internal import COpenSSL

/// Digests in one call.
public enum Hash {
    /// SHA-256 (FIPS 180-4), 32 bytes.
    public static func sha256(_ bytes: [UInt8]) -> [UInt8] { digest(.sha256, bytes) }

    /// SHA-512 (FIPS 180-4), 64 bytes.
    public static func sha512(_ bytes: [UInt8]) -> [UInt8] { digest(.sha512, bytes) }

    /// SHA-1 (FIPS 180-4), 20 bytes. Only for the WebSocket handshake (RFC 6455, 4.2.2), whose security does not depend
    /// on it.
    public static func sha1(_ bytes: [UInt8]) -> [UInt8] { digest(.sha1, bytes) }

    /// The digest of public bytes.
    public static func digest(_ function: HashFunction, _ bytes: [UInt8]) -> [UInt8] {
        [UInt8].made(function.digestBytes) { room in bytes.withUnsafeBytes { digest(function, $0, into: room) } }
    }

    /// The digest of a secret, as a secret.
    public static func digest(_ function: HashFunction, _ secret: SecureBytes) -> SecureBytes {
        SecureBytes(count: function.digestBytes) { room in secret.withUnsafeBytes { digest(function, $0, into: room) } }
    }

    /// Writes a digest into memory of the caller.
    ///
    /// - Parameters:
    ///   - function: the hash function.
    ///   - bytes: the input.
    ///   - room: memory for exactly `digestBytes` of the function.
    public static func digest(
        _ function: HashFunction, _ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) {
        precondition(room.count == function.digestBytes, "the memory must have the size of the digest")
        // The two frequent functions avoid EVP, which allocates twice for each digest (decision 0032).
        switch function {
        case .sha256:
            var hash = SHA256()
            hash.update(bytes)
            return hash.write(to: room)
        case .sha512:
            var hash = SHA512()
            hash.update(bytes)
            return hash.write(to: room)
        case .sha1: break
        }
        let isDone =
            EVP_Digest(bytes.octets, bytes.count, room.octets, nil, function.implementation, nil) == 1
        precondition(isDone, "OpenSSL refused a digest, which has no failing input")
    }

    /// SHAKE128 (FIPS 202, 6.2): `count` bytes of output. Published test data is described by it.
    public static func shake128(_ bytes: [UInt8], count: Int) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        return [UInt8].made(count) { room in
            let isDone =
                EVP_DigestInit_ex(context, shake.pointer, nil) == 1
                && EVP_DigestUpdate(context, bytes, bytes.count) == 1
                && EVP_DigestFinalXOF(context, room.octets, count) == 1
            precondition(isDone, "OpenSSL refused a digest, which has no failing input")
        }
    }

    private static let shake = Fetched.digest("SHAKE128")
}

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. A value type: copies continue independently.
public struct SHA256: Sendable {
    /// Bytes of a digest.
    public static let digestBytes = 32
    private var state = SHA256_CTX()

    /// Starts with an empty input.
    public init() { thicket_sha256_init(&state) }

    /// Adds bytes to the input.
    public mutating func update(_ bytes: [UInt8]) { thicket_sha256_update(&state, bytes, bytes.count) }
    /// Adds bytes to the input.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        thicket_sha256_update(&state, bytes.octets, bytes.count)
    }

    /// The digest of the input so far; more may follow.
    public func digest() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.digestBytes) { room, count in
            write(to: UnsafeMutableRawBufferPointer(room))
            count = Self.digestBytes
        }
    }

    /// - Parameter room: memory for at least `digestBytes`.
    func write(to room: UnsafeMutableRawBufferPointer) {
        var state = self.state
        thicket_sha256_final(room.octets, &state)
        OPENSSL_cleanse(&state, MemoryLayout<SHA256_CTX>.size)
    }
}

/// SHA-512 (FIPS 180-4) of bytes that arrive in pieces. A value type: copies continue independently.
public struct SHA512: Sendable {
    /// Bytes of a digest.
    public static let digestBytes = 64
    private var state = SHA512_CTX()

    /// Starts with an empty input.
    public init() { thicket_sha512_init(&state) }

    /// Adds bytes to the input.
    public mutating func update(_ bytes: [UInt8]) { thicket_sha512_update(&state, bytes, bytes.count) }
    /// Adds bytes to the input.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        thicket_sha512_update(&state, bytes.octets, bytes.count)
    }

    /// The digest of the input so far; more may follow.
    public func digest() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.digestBytes) { room, count in
            write(to: UnsafeMutableRawBufferPointer(room))
            count = Self.digestBytes
        }
    }

    /// - Parameter room: memory for at least `digestBytes`.
    func write(to room: UnsafeMutableRawBufferPointer) {
        var state = self.state
        thicket_sha512_final(room.octets, &state)
        OPENSSL_cleanse(&state, MemoryLayout<SHA512_CTX>.size)
    }
}
