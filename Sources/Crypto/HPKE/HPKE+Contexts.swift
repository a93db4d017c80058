extension HPKE {
    /// The side that seals (RFC 9180, 5.2). It cannot be copied, because a copy would seal with the same nonces.
    public struct Sender: ~Copyable {
        /// The encapsulated key for the receiver, 32 bytes.
        public let encapsulated: [UInt8]
        private var schedule: KeySchedule

        /// Starts an exchange.
        ///
        /// - Parameters:
        ///   - cipher: the algorithm.
        ///   - receiver: the receiver's public key.
        ///   - info: the purpose of the exchange, the same on both sides.
        ///   - sender: in auth mode, the key by which the receiver identifies this sender; nil for base mode.
        /// - Throws: `unusablePublicKey` for a receiver's key of small order.
        public init(
            _ cipher: Cipher, to receiver: X25519.PublicKey, info: [UInt8], sender: X25519.PrivateKey? = nil
        ) throws(CryptoError) {
            let parts = try Self.begun(cipher, receiver, info, sender, nil, .random())
            (schedule, encapsulated) = parts
        }

        /// - Parameter ephemeral: a key for this exchange only; a parameter for tests with published keys.
        package init(
            _ cipher: Cipher, to receiver: X25519.PublicKey, info: [UInt8], sender: X25519.PrivateKey?,
            psk: PresharedSecret?, ephemeral: X25519.PrivateKey
        ) throws(CryptoError) {
            let parts = try Self.begun(cipher, receiver, info, sender, psk, ephemeral)
            (schedule, encapsulated) = parts
        }

        private static func begun(
            _ cipher: Cipher, _ receiver: X25519.PublicKey, _ info: [UInt8], _ sender: X25519.PrivateKey?,
            _ psk: PresharedSecret?, _ ephemeral: X25519.PrivateKey
        ) throws(CryptoError) -> (KeySchedule, [UInt8]) {
            let shared = try KEM.encapsulate(to: receiver, ephemeral: ephemeral, sender: sender)
            let schedule = try KeySchedule(
                cipher, shared: shared, info: info, isAuthenticated: sender != nil, psk: psk)
            return (schedule, ephemeral.publicKey.octets)
        }

        /// Seals the next message: ciphertext ‖ tag.
        ///
        /// - Throws: `messageLimitReached`; `outOfBounds(.suite)` for a cipher that only exports.
        public mutating func seal(_ clear: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.next()
            return aead.seal(clear, nonce: nonce, data: data)
        }

        /// Seals a secret as the next message.
        ///
        /// - Throws: `messageLimitReached`; `outOfBounds(.suite)` for a cipher that only exports.
        public mutating func seal(_ clear: SecureBytes, data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.next()
            return aead.seal(clear, nonce: nonce, data: data)
        }

        /// Derives a secret that both sides can compute, for another use (5.3).
        ///
        /// - Parameters:
        ///   - context: identifies the use.
        ///   - count: number of bytes, 1 to 8,160.
        /// - Throws: `outOfBounds` for another count.
        public func export(_ context: [UInt8], count: Int) throws(CryptoError) -> SecureBytes {
            try schedule.export(context, count: count)
        }

        /// For tests: skips message numbers.
        package mutating func skip(to number: UInt64) { schedule.skip(to: number) }

        /// For tests, against published values.
        package var intermediate: (context: [UInt8], secret: SecureBytes, key: SecureBytes?, nonce: [UInt8]) {
            let values = schedule.intermediate
            return (values.context, values.secret, values.key, values.baseNonce)
        }
    }

    /// The side that opens, message by message in order (RFC 9180, 5.2).
    public struct Receiver: ~Copyable {
        private var schedule: KeySchedule

        /// Starts an exchange.
        ///
        /// - Parameters:
        ///   - cipher: the algorithm.
        ///   - encapsulated: the sender's encapsulated key, 32 bytes.
        ///   - receiver: the receiver's secret key.
        ///   - info: the purpose of the exchange, the same on both sides.
        ///   - sender: in auth mode, the key that the sender must have; nil for base mode.
        /// - Throws: `openingFailed` for bytes that are not an encapsulated key, or that lead to a secret which anyone
        ///   can compute.
        public init(
            _ cipher: Cipher, encapsulated: [UInt8], with receiver: X25519.PrivateKey, info: [UInt8],
            sender: X25519.PublicKey? = nil
        ) throws(CryptoError) {
            schedule = try Self.begun(cipher, encapsulated, receiver, info, sender, nil)
        }

        package init(
            _ cipher: Cipher, encapsulated: [UInt8], with receiver: X25519.PrivateKey, info: [UInt8],
            sender: X25519.PublicKey?, psk: PresharedSecret?
        ) throws(CryptoError) {
            schedule = try Self.begun(cipher, encapsulated, receiver, info, sender, psk)
        }

        private static func begun(
            _ cipher: Cipher, _ encapsulated: [UInt8], _ receiver: X25519.PrivateKey, _ info: [UInt8],
            _ sender: X25519.PublicKey?, _ psk: PresharedSecret?
        ) throws(CryptoError) -> KeySchedule {
            let shared: SecureBytes
            do throws(CryptoError) {
                shared = try KEM.decapsulate(encapsulated, with: receiver, sender: sender)
            } catch {
                // One error for all causes, because the input is untrusted.
                throw .openingFailed
            }
            return try KeySchedule(cipher, shared: shared, info: info, isAuthenticated: sender != nil, psk: psk)
        }

        /// Opens the next message.
        ///
        /// - Throws: `openingFailed` (the next call then expects the same number); `messageLimitReached`;
        ///   `outOfBounds(.suite)` for a cipher that only exports.
        public mutating func open(_ sealed: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.current()
            let clear = try aead.open(sealed, nonce: nonce, data: data)
            schedule.advance()
            return clear
        }

        /// Opens the next message, which is a secret.
        ///
        /// - Throws: the errors of `open`.
        public mutating func openSecret(_ sealed: [UInt8], data: [UInt8]) throws(CryptoError) -> SecureBytes {
            let (aead, nonce) = try schedule.current()
            let clear = try aead.openSecret(sealed, nonce: nonce, data: data)
            schedule.advance()
            return clear
        }

        /// Derives a secret that both sides can compute, for another use (5.3).
        ///
        /// - Parameters:
        ///   - context: identifies the use.
        ///   - count: number of bytes, 1 to 8,160.
        /// - Throws: `outOfBounds` for another count.
        public func export(_ context: [UInt8], count: Int) throws(CryptoError) -> SecureBytes {
            try schedule.export(context, count: count)
        }

        /// For tests: skips message numbers.
        package mutating func skip(to number: UInt64) { schedule.skip(to: number) }
    }
}
