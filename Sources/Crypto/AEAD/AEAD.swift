// Linux only: OpenSSL; on Apple platforms: CryptoKit's AES.GCM and ChaChaPoly.
internal import COpenSSL

/// Authenticated encryption with associated data (RFC 5116): a key that seals and opens.
///
/// Several threads may use one object at the same time. The key schedule is computed once per thread that uses it
/// concurrently, so a caller that seals often should keep the object.
public final class AEAD: Sendable {
    let algorithm: AEADAlgorithm
    private let key: SecureBytes
    private let contexts = ContextPool { EVP_CIPHER_CTX_free($0) }
    #if DEBUG
        private let keyID: [UInt8]
    #endif

    /// Makes a key for one suite.
    ///
    /// - Parameters:
    ///   - suite: the algorithm.
    ///   - key: 32 bytes.
    /// - Throws: `outOfBounds(.key)` for another length.
    public convenience init(_ suite: AEADSuite, key: SecureBytes) throws(CryptoError) {
        try self.init(algorithm: suite.algorithm, key: key)
    }

    package init(algorithm: AEADAlgorithm, key: SecureBytes) throws(CryptoError) {
        guard key.count == algorithm.keyBytes else { throw .outOfBounds(.key) }
        (self.algorithm, self.key) = (algorithm, key)
        #if DEBUG
            keyID = SealRecorder.keyID(algorithm, key)
        #endif
    }

    /// Seals bytes.
    ///
    /// - Parameters:
    ///   - clear: the bytes to seal.
    ///   - nonce: one that this key has never used, except for the same bytes.
    ///   - data: authenticated with them, and not contained in the result.
    /// - Returns: ciphertext ‖ tag: 16 bytes more than `clear`.
    public func seal(_ clear: [UInt8], nonce: AEADNonce, data: [UInt8]) -> [UInt8] {
        [UInt8].made(clear.count + AEADSuite.tagBytes) { room in
            clear.withUnsafeBytes { clear in
                data.withUnsafeBytes { seal(clear, nonce: nonce, data: $0, into: room) }
            }
        }
    }

    /// Seals a secret; the parameters are those of bytes.
    public func seal(_ clear: SecureBytes, nonce: AEADNonce, data: [UInt8]) -> [UInt8] {
        [UInt8].made(clear.count + AEADSuite.tagBytes) { room in
            clear.withUnsafeBytes { clear in
                data.withUnsafeBytes { seal(clear, nonce: nonce, data: $0, into: room) }
            }
        }
    }

    /// Seals bytes from memory that the caller lends.
    ///
    /// - Parameters:
    ///   - clear: the bytes to seal.
    ///   - nonce: one that this key has never used, except for the same bytes.
    ///   - data: authenticated with them.
    ///   - room: memory for ciphertext ‖ tag, exactly 16 bytes more than `clear`; it may begin where `clear` does.
    public func seal(
        _ clear: UnsafeRawBufferPointer, nonce: AEADNonce, data: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) {
        precondition(room.count == clear.count + AEADSuite.tagBytes, "a sealed text is 16 bytes longer")
        precondition(clear.count <= algorithm.clearBytesMax, "the text is too long for one nonce")
        #if DEBUG
            SealRecorder.record(key: keyID, nonce: nonce, clear, data)
        #endif
        let context = contexts.take() ?? make()
        defer { contexts.give(context) }
        let isDone = nonce.withUnsafeBytes { Self.seal(context, $0, clear, data, into: room) }
        precondition(isDone, "OpenSSL refused to seal, which has no failing input")
    }

    /// Opens sealed bytes.
    ///
    /// - Throws: `openingFailed` for any deviation: key, nonce, data, length or a single bit.
    public func open(_ sealed: [UInt8], nonce: AEADNonce, data: [UInt8]) throws(CryptoError) -> [UInt8] {
        try sealed.lent { sealed throws(CryptoError) in try open(sealed, nonce: nonce, data: data) }
    }

    /// Opens sealed bytes from memory that the caller lends.
    ///
    /// - Throws: `openingFailed` for any deviation.
    public func open(
        _ sealed: UnsafeRawBufferPointer, nonce: AEADNonce, data: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        try [UInt8].made(try Self.clearBytes(of: sealed)) { room throws(CryptoError) in
            try data.lent { data throws(CryptoError) in try open(sealed, nonce: nonce, data: data, into: room) }
        }
    }

    /// Opens a sealed secret.
    ///
    /// - Throws: `openingFailed` for any deviation.
    public func openSecret(_ sealed: [UInt8], nonce: AEADNonce, data: [UInt8]) throws(CryptoError) -> SecureBytes {
        try sealed.lent { sealed throws(CryptoError) in
            try SecureBytes(count: try Self.clearBytes(of: sealed)) { room throws(CryptoError) in
                try data.lent { data throws(CryptoError) in try open(sealed, nonce: nonce, data: data, into: room) }
            }
        }
    }

    /// Opens sealed bytes into memory of the caller.
    ///
    /// - Parameters:
    ///   - sealed: ciphertext ‖ tag.
    ///   - nonce: the nonce of the seal.
    ///   - data: the authenticated data of the seal.
    ///   - room: memory for the clear bytes, exactly 16 fewer than `sealed`. It contains zeros after a failure.
    /// - Throws: `openingFailed` for any deviation.
    public func open(
        _ sealed: UnsafeRawBufferPointer, nonce: AEADNonce, data: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) throws(CryptoError) {
        let count = try Self.clearBytes(of: sealed)
        precondition(room.count == count, "a clear text is 16 bytes shorter")
        let context = contexts.take() ?? make()
        defer { contexts.give(context) }
        guard nonce.withUnsafeBytes({ Self.open(context, $0, sealed, data, into: room) }) else {
            room.cleanse()
            ERR_clear_error()
            throw .openingFailed
        }
    }

    static func clearBytes(of sealed: UnsafeRawBufferPointer) throws(CryptoError) -> Int {
        guard sealed.count >= AEADSuite.tagBytes else { throw .openingFailed }
        return sealed.count - AEADSuite.tagBytes
    }
}

extension AEAD {
    /// - Parameter nonce: of the length set in the context: 12 bytes unless it was changed.
    /// - Returns: false when OpenSSL refuses.
    static func seal(
        _ context: OpaquePointer, _ nonce: UnsafeRawBufferPointer, _ clear: UnsafeRawBufferPointer,
        _ data: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let text = UnsafeMutableRawBufferPointer(rebasing: room[..<clear.count])
        var length: Int32 = 0
        return EVP_CipherInit_ex(context, nil, nil, nil, nonce.octets, 1) == 1
            && Pieces.run(context, data, into: nil) != nil && Pieces.run(context, clear, into: text) == clear.count
            && EVP_EncryptFinal_ex(context, text.octets + clear.count, &length) == 1
            && EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_GET_TAG, Int32(AEADSuite.tagBytes), room.octets + clear.count) == 1
    }

    /// - Parameter nonce: as for `seal`.
    /// - Returns: false when it does not open; the caller must then overwrite `room`.
    static func open(
        _ context: OpaquePointer, _ nonce: UnsafeRawBufferPointer, _ sealed: UnsafeRawBufferPointer,
        _ data: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> Bool {
        EVP_CipherInit_ex(context, nil, nil, nil, nonce.octets, 0) == 1 && open(context, sealed, data, into: room)
    }

    /// Opens with a context that has the key and the nonce already.
    static func open(
        _ context: OpaquePointer, _ sealed: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let count = room.count
        // Set before the text is decrypted, because `room` may overlap the end of the text.
        var tag: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &tag) { $0.copyMemory(from: .init(rebasing: sealed[count...])) }
        var length: Int32 = 0
        return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(AEADSuite.tagBytes), &tag) == 1
            && Pieces.run(context, data, into: nil) != nil
            && Pieces.run(context, .init(rebasing: sealed[..<count]), into: room) == count
            && EVP_DecryptFinal_ex(context, room.octets + count, &length) == 1
    }

    /// A context with the key, for nonces of 12 bytes.
    func make() -> OpaquePointer {
        let context = EVP_CIPHER_CTX_new()
        let isReady = key.withUnsafeBytes {
            EVP_CipherInit_ex(context, algorithm.implementation, nil, $0.octets, nil, 1) == 1
        }
        guard isReady, let context else {
            preconditionFailure("OpenSSL refused a key of the right length")
        }
        return context
    }
}

extension [UInt8] {
    /// Like `withUnsafeBytes`, with typed errors.
    func lent<Result, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> Result
    ) throws(E) -> Result {
        var outcome: Swift.Result<Result, E>?
        withUnsafeBytes { bytes in
            do throws(E) {
                outcome = .success(try body(bytes))
            } catch {
                outcome = .failure(error)
            }
        }
        guard let outcome else { preconditionFailure("an array lends its bytes") }
        return try outcome.get()
    }
}
