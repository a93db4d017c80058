// Linux only: OpenSSL; on Apple platforms: CryptoKit's HKDF and AES.GCM or ChaChaPoly.
internal import COpenSSL

/// Opens messages that are each sealed with a separate key, which HKDF derives from one root. The context is prepared
/// once and reused, and each key overwrites the one before it.
///
/// For one thread at a time, so it is not `Sendable`. For keys that are used more than once see `AEAD`.
public final class DerivedOpener {
    private let root: SecretMessageKey256
    private let context: OpaquePointer

    /// Bytes of a key: HKDF derives it as one digest of SHA-256.
    private static let keyBytes: Int = AEADSuite.keyBytes

    /// Prepares the context.
    ///
    /// - Parameters:
    ///   - suite: the algorithm of all messages.
    ///   - root: the pseudorandom key from the extract step of HKDF-SHA-256.
    public init(_ suite: AEADSuite, root: SecureBytes) {
        self.root = SecretMessageKey256(root)
        guard let context = EVP_CIPHER_CTX_new(),
            EVP_CipherInit_ex(context, suite.algorithm.implementation, nil, nil, nil, 0) == 1
        else { preconditionFailure("OpenSSL has no memory for a key") }
        self.context = context
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// The parts of a message, in memory that the caller lends.
    public struct Parts {
        /// Ciphertext ‖ tag.
        let sealed: UnsafeRawBufferPointer
        let nonce: UnsafeRawBufferPointer
        let data: UnsafeRawBufferPointer

        /// Describes a message.
        ///
        /// - Parameters:
        ///   - sealed: ciphertext ‖ tag.
        ///   - nonce: 12 bytes.
        ///   - data: the authenticated data of the seal.
        public init(sealed: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer) {
            (self.sealed, self.nonce, self.data) = (sealed, nonce, data)
        }
    }

    /// Opens a message.
    ///
    /// - Parameters:
    ///   - message: the parts of the message.
    ///   - info: the info of HKDF's expand step; at most `HKDF.infoBytesMax` bytes.
    ///   - room: memory for the clear bytes, exactly 16 fewer than are sealed.
    /// - Returns: false for any deviation; `room` then contains zeros.
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

    /// Derives the key, T(1) of HKDF (RFC 5869, 2.3), and sets it in the context together with the nonce.
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
