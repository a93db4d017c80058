#if DEBUG
    // Linux only: OpenSSL; on Apple platforms: CryptoKit's AES.GCM, whose nonces may be longer.
    internal import COpenSSL

    /// AES-GCM under nonces of other than 12 bytes, in debug builds: published vectors have such cases. Release builds
    /// have nothing of it.
    ///
    /// Nothing of ours uses it. GCM counts from a nonce of 12 bytes as it stands; from any other it counts from a hash
    /// (SP 800-38D, 7.1, step 2), and two nonces may then begin at one place. So SP 800-38D (5.2.1.1) recommends 12,
    /// and RFC 5116 (5.1, 5.2) allows nothing else. No seal of these is recorded (`SealRecorder`): their keys and
    /// nonces are published.
    extension AEAD {
        /// What OpenSSL 3.0 takes for GCM: a standard nonce may have 2^61 − 1 bytes (SP 800-38D, 5.2.1.1).
        package static let gcmNonceBytes: ClosedRange<Int> = 1...128

        /// Seals bytes: ciphertext ‖ tag.
        /// - Throws: `outOfBounds(.nonce)` for a length that OpenSSL does not take, and for ChaCha20-Poly1305.
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

        /// Opens what was sealed.
        /// - Throws: `outOfBounds(.nonce)` as `seal`; else `openingFailed`.
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

        /// A context of its own: one that is set to another length must not come into the pool.
        private func make(nonceBytes: Int) throws(CryptoError) -> OpaquePointer {
            guard algorithm != .chaCha20Poly1305, Self.gcmNonceBytes.contains(nonceBytes) else {
                throw .outOfBounds(.nonce)
            }
            let context = make()
            let isSet = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonceBytes), nil) == 1
            precondition(isSet, "OpenSSL refused a length that it takes")
            return context
        }
    }
#endif
