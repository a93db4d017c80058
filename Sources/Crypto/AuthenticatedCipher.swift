// Linux only: OpenSSL; on Apple platforms: CryptoKit's AES.GCM.
internal import COpenSSL

/// AES-256-GCM (NIST SP 800-38D) over whole short messages: nonce ‖ ciphertext ‖ tag.
///
/// A nonce is random, so one key seals at most 2^32 messages.
public enum AES256GCM {
    /// Bytes of a key.
    public static let keyBytes: Int = 32
    private static let nonceBytes: Int = 12
    private static let tagBytes: Int = 16

    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - data: authenticated with the message and not contained in the result.
    ///   - nonce: 12 bytes that this key has never seen.
    public static func seal(
        _ clear: [UInt8], key: [UInt8], data: [UInt8], nonce: [UInt8] = RandomBytes.make(12)
    ) -> [UInt8] {
        precondition(key.count == keyBytes && nonce.count == nonceBytes, "AES-256-GCM wants 32 and 12 bytes")
        let context: OpaquePointer? = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var sealed: [UInt8] = .init(repeating: 0, count: clear.count)
        var tag: [UInt8] = .init(repeating: 0, count: tagBytes)
        var length: Int32 = 0
        let isDone: Bool =
            EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
            && EVP_EncryptUpdate(context, nil, &length, data, Int32(data.count)) == 1
            && EVP_EncryptUpdate(context, &sealed, &length, clear, Int32(clear.count)) == 1
            && EVP_EncryptFinal_ex(context, nil, &length) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), &tag) == 1
        precondition(isDone, "OpenSSL refused to seal, which has no failing input")
        return nonce + sealed + tag
    }

    /// - Returns: nil when anything at all is wrong with it: key, data or a single bit.
    public static func open(_ sealed: [UInt8], key: [UInt8], data: [UInt8]) -> [UInt8]? {
        precondition(key.count == keyBytes, "AES-256-GCM wants a key of 32 bytes")
        guard sealed.count >= nonceBytes + tagBytes else { return nil }
        let context: OpaquePointer? = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        let nonce: [UInt8] = Array(sealed.prefix(nonceBytes))
        let text: [UInt8] = Array(sealed.dropFirst(nonceBytes).dropLast(tagBytes))
        var tag: [UInt8] = Array(sealed.suffix(tagBytes))
        var clear: [UInt8] = .init(repeating: 0, count: text.count)
        var length: Int32 = 0
        let isGood: Bool =
            EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
            && EVP_DecryptUpdate(context, nil, &length, data, Int32(data.count)) == 1
            && EVP_DecryptUpdate(context, &clear, &length, text, Int32(text.count)) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1
            && EVP_DecryptFinal_ex(context, nil, &length) == 1
        guard isGood else {
            OPENSSL_cleanse(&clear, clear.count)
            return nil
        }
        return clear
    }
}
