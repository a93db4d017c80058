// Linux only: OpenSSL; on Apple platforms: CryptoKit's HKDF and AES.GCM or ChaChaPoly.
internal import COpenSSL

/// Opens messages of which each was sealed under a key of its own that HKDF makes of one root. What such a key needs
/// besides itself is made once, and no key is left behind: the next takes its place.
///
/// For one thread at a time, which is why it is not `Sendable`; `AEAD` is for keys that are used more than once.
public final class DerivedOpener {
    private let root: SecretMessageKey256
    private let context: OpaquePointer

    /// Bytes of a key: one digest of SHA-256 is all that HKDF has to make.
    private static let keyBytes: Int = AEADSuite.keyBytes

    /// - Parameter root: the pseudorandom key that HKDF-SHA-256's extract gave.
    public init(_ suite: AEADSuite, root: SecureBytes) {
        self.root = SecretMessageKey256(root)
        guard let context = EVP_CIPHER_CTX_new(),
            EVP_CipherInit_ex(context, suite.algorithm.implementation, nil, nil, nil, 0) == 1
        else { preconditionFailure("OpenSSL has no memory for a key") }
        self.context = context
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// A message in its parts, which are lent.
    public struct Parts {
        /// Ciphertext ‖ tag.
        let sealed: UnsafeRawBufferPointer
        let nonce: UnsafeRawBufferPointer
        let data: UnsafeRawBufferPointer

        /// - Parameters:
        ///   - sealed: ciphertext ‖ tag.
        ///   - nonce: 12 bytes.
        ///   - data: authenticated with them.
        public init(sealed: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) {
            (self.sealed, self.nonce, self.data) = (sealed, nonce, data)
        }
    }

    /// Opens a message.
    ///
    /// - Parameters:
    ///   - info: of HKDF's expand; at most `HKDF.infoBytesMax` bytes.
    ///   - room: for the clear bytes, exactly 16 fewer than are sealed.
    /// - Returns: false when anything at all is wrong with it; then `room` holds zeros.
    public func open(_ message: Parts, info: [UInt8], into room: UnsafeMutableRawBufferPointer) -> Bool {
        let count = max(0, message.sealed.count - AEADSuite.tagBytes)
        precondition(room.count == count, "a clear text is 16 bytes shorter")
        precondition(info.count <= HKDF.infoBytesMax, "an info of more than 32 KiB")
        if message.sealed.count >= AEADSuite.tagBytes, message.nonce.count == AEADSuite.nonceBytes,
            begin(info, message.nonce), AEAD.open(context, message.sealed, message.data, into: room)
        {
            return true
        }
        room.cleanse()
        ERR_clear_error()
        return false
    }

    /// Makes a key, T(1) of HKDF (RFC 5869, 2.3), and gives it to the context, with the nonce.
    private func begin(_ info: [UInt8], _ nonce: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.keyBytes, alignment: 16) { key in
            defer { key.cleanse() }
            withUnsafeTemporaryAllocation(byteCount: info.count + 1, alignment: 16) { message in
                message.copyBytes(from: info)
                message[info.count] = 1
                root.write(UnsafeRawBufferPointer(message), into: key)
            }
            return EVP_CipherInit_ex(context, nil, nil, key.octets, nonce.octets, 0) == 1
        }
    }
}
