#if DEBUG
    // Linux only: OpenSSL; on Apple platforms: CryptoKit's AES.GCM, whose nonces may be longer.
    internal import COpenSSL

    /// AES-GCM with nonces of other lengths than 12 bytes, for published vectors. Debug builds only; release builds do
    /// not contain it.
    ///
    /// Thicket itself never seals with it. GCM starts its counter at a nonce of 12 bytes directly, but at a hash of any
    /// other nonce (SP 800-38D, 7.1, step 2), so that two nonces may start at the same counter. Therefore SP 800-38D
    /// (5.2.1.1) recommends 12 bytes, and RFC 5116 (5.1, 5.2) permits only 12. These seals are not recorded
    /// (`SealRecorder`), because their keys and nonces are published.
    extension AEAD {
        /// The lengths that OpenSSL 3.0 accepts for GCM. The standard permits nonces of up to 2^61 − 1 bytes (SP
        /// 800-38D, 5.2.1.1).
        package static let gcmNonceBytes: ClosedRange<Int> = 1...128

        /// Seals bytes: ciphertext ‖ tag.
        ///
        /// - Throws: `outOfBounds(.nonce)` for a length that OpenSSL does not accept, and for ChaCha20-Poly1305.
        package func seal(_ clear: [UInt8], gcmNonce nonce: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let context = try make(nonceBytes: nonce.count)
            defer { EVP_CIPHER_CTX_free(context) }
            return [UInt8].made(clear.count + AEADSuite.tagBytes) { room in
                let isDone = nonce.lent { nonce in
                    clear.lent { clear in data.lent { data in Self.seal(context, nonce, clear, data, into: room) } }
                }
                precondition(isDone, "OpenSSL refused to seal, which has no failing input")
            }
        }

        /// Opens sealed bytes.
        ///
        /// - Throws: `outOfBounds(.nonce)` as `seal`, otherwise `openingFailed`.
        package func open(_ sealed: [UInt8], gcmNonce nonce: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let context = try make(nonceBytes: nonce.count)
            defer { EVP_CIPHER_CTX_free(context) }
            let count = try sealed.lent { sealed throws(CryptoError) in try Self.clearBytes(of: sealed) }
            return try [UInt8].made(count) { room throws(CryptoError) in
                let isGood = nonce.lent { nonce in
                    sealed.lent { sealed in data.lent { data in Self.open(context, nonce, sealed, data, into: room) } }
                }
                guard isGood else {
                    ERR_clear_error()
                    throw .openingFailed
                }
            }
        }

        /// A new context for one call: a context with another nonce length must not get into the pool.
        private func make(nonceBytes: Int) throws(CryptoError) -> OpaquePointer {
            guard algorithm != .chaCha20Poly1305, Self.gcmNonceBytes.contains(nonceBytes) else {
                throw .outOfBounds(.nonce)
            }
            let context = make()
            let isSet = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonceBytes), nil) == 1
            precondition(isSet, "OpenSSL refused a nonce length that it supports")
            return context
        }
    }
#endif
