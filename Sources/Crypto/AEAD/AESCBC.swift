// Linux only: OpenSSL; on Apple platforms: CommonCrypto's CCCrypt.
internal import COpenSSL

/// AES in CBC mode with PKCS#7 padding (NIST SP 800-38A, 6.2; RFC 5652, 6.3).
///
/// Only for the format of notes of old versions. It does not authenticate: the caller must check a MAC over
/// initialisation vector and text before decryption, or the error becomes a padding oracle.
public enum AESCBC {
    /// Bytes of a block and of an initialisation vector.
    public static let blockBytes = 16

    /// Encrypts bytes.
    ///
    /// - Parameters:
    ///   - clear: the bytes to encrypt.
    ///   - key: 16, 24 or 32 bytes, for AES-128, -192 or -256.
    ///   - vector: 16 bytes that an attacker cannot predict.
    /// - Returns: whole blocks, at least one.
    /// - Throws: `outOfBounds` for a key or a vector of another length.
    public static func encrypt(
        _ clear: UnsafeRawBufferPointer, key: SecureBytes, vector: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        let cipher = try cipher(key)
        guard vector.count == blockBytes else { throw .outOfBounds(.nonce) }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        return [UInt8].made((clear.count / blockBytes + 1) * blockBytes) { room in
            let isReady = key.withUnsafeBytes {
                EVP_EncryptInit_ex(context, cipher, nil, $0.octets, vector) == 1
            }
            let count = isReady ? Pieces.run(context, clear, into: room) : nil
            var rest: Int32 = 0
            let isDone =
                count.map { EVP_EncryptFinal_ex(context, room.octets + $0, &rest) == 1 && $0 + Int(rest) == room.count }
                ?? false
            precondition(isDone, "OpenSSL refused AES-CBC, which has no failing input")
        }
    }

    /// Decrypts bytes.
    ///
    /// - Parameters:
    ///   - text: the encrypted blocks.
    ///   - key: 16, 24 or 32 bytes.
    ///   - vector: 16 bytes.
    /// - Throws: `openingFailed` for an incomplete block or a wrong padding; `outOfBounds` for a key or a vector of
    ///   another length.
    public static func decrypt(
        _ text: UnsafeRawBufferPointer, key: SecureBytes, vector: [UInt8]
    ) throws(CryptoError) -> SecureBytes {
        let cipher = try cipher(key)
        guard vector.count == blockBytes else { throw .outOfBounds(.nonce) }
        guard !text.isEmpty, text.count % blockBytes == 0 else { throw .openingFailed }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var clearCount = 0
        let padded = try SecureBytes(count: text.count) { room throws(CryptoError) in
            let isReady = key.withUnsafeBytes {
                EVP_DecryptInit_ex(context, cipher, nil, $0.octets, vector) == 1
            }
            guard isReady, let count = Pieces.run(context, text, into: room) else { throw .openingFailed }
            var rest: Int32 = 0
            guard EVP_DecryptFinal_ex(context, room.octets + count, &rest) == 1 else {
                ERR_clear_error()
                throw .openingFailed
            }
            clearCount = count + Int(rest)
        }
        return padded.part(0..<clearCount)
    }

    private static func cipher(_ key: SecureBytes) throws(CryptoError) -> OpaquePointer {
        switch key.count {
        case 16: aes128.pointer
        case 24: aes192.pointer
        case 32: aes256.pointer
        default: throw .outOfBounds(.key)
        }
    }

    private static let aes128 = Fetched.cipher("AES-128-CBC")
    private static let aes192 = Fetched.cipher("AES-192-CBC")
    private static let aes256 = Fetched.cipher("AES-256-CBC")
}

/// OpenSSL counts in 32 bits, so longer input is processed in parts.
enum Pieces {
    private static let bytesMax = 1 << 30

    /// - Parameter room: null for additional data.
    /// - Returns: the number of bytes written; nil when OpenSSL refuses.
    static func run(
        _ context: OpaquePointer?, _ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer?
    ) -> Int? {
        var (place, written) = (0, 0)
        while place < input.count {
            let count = min(bytesMax, input.count - place)
            var length: Int32 = 0
            let output = room.map { $0.octets + written }
            guard EVP_CipherUpdate(context, output, &length, input.octets + place, Int32(count)) == 1 else {
                return nil
            }
            (place, written) = (place + count, written + Int(length))
        }
        return written
    }
}

extension AESCBC {
    /// Encrypts an array.
    ///
    /// - Throws: `outOfBounds` for a key or a vector of another length.
    public static func encrypt(
        _ clear: [UInt8], key: SecureBytes, vector: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        try clear.lent { clear throws(CryptoError) in try encrypt(clear, key: key, vector: vector) }
    }

    /// Decrypts an array.
    ///
    /// - Throws: `openingFailed` for a wrong text, `outOfBounds` for a key or a vector of another length.
    public static func decrypt(
        _ text: [UInt8], key: SecureBytes, vector: [UInt8]
    ) throws(CryptoError) -> SecureBytes {
        try text.lent { text throws(CryptoError) in try decrypt(text, key: key, vector: vector) }
    }
}
