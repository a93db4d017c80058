internal import COpenSSL

/// AES-128 on single 16-byte blocks (FIPS 197): a keyed permutation that makes the server's positions opaque.
///
/// Not a way to encrypt content: equal blocks give equal results, which is what a change version needs.
public struct AESBlock: Sendable {
    private let key: [UInt8]

    /// - Parameter key: 16 bytes.
    public init(key: [UInt8]) {
        precondition(key.count == 16, "an AES-128 key has 16 bytes")
        self.key = key
    }

    public func encrypt(_ block: [UInt8]) -> [UInt8] { run(block, encrypting: 1) }
    public func decrypt(_ block: [UInt8]) -> [UInt8] { run(block, encrypting: 0) }

    private func run(_ block: [UInt8], encrypting: Int32) -> [UInt8] {
        precondition(block.count == 16, "an AES block has 16 bytes")
        let context: OpaquePointer? = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var output: [UInt8] = .init(repeating: 0, count: 32)
        var length: Int32 = 0
        let ready: Bool =
            EVP_CipherInit_ex(context, EVP_aes_128_ecb(), nil, key, nil, encrypting) == 1
            && EVP_CIPHER_CTX_set_padding(context, 0) == 1
            && EVP_CipherUpdate(context, &output, &length, block, 16) == 1
        precondition(ready && length == 16, "OpenSSL refused one AES block, which has no failing input")
        return Array(output[0..<16])
    }
}
