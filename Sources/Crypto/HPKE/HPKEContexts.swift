extension HPKE {
    /// The side that seals (RFC 9180, 5.2). It cannot be copied: a copy would seal under the same nonces.
    public struct Sender: ~Copyable {
        /// What the receiver needs: 32 bytes.
        public let encapsulated: [UInt8]
        private var schedule: KeySchedule

        /// - Parameters:
        ///   - info: what the exchange is about; both have the same.
        ///   - sender: for auth mode, the key by which the receiver knows us; nil is base mode.
        /// - Throws: `unusablePublicKey`.
        public init(
            _ cipher: Cipher, to receiver: X25519.PublicKey, info: [UInt8], sender: X25519.PrivateKey? = nil
        ) throws(CryptoError) {
            let parts = try Self.begun(cipher, receiver, info, sender, nil, .random())
            (schedule, encapsulated) = parts
        }

        /// - Parameter ephemeral: a key for this exchange alone; tests with published ones have it.
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
        /// - Throws: `messageLimitReached`; `outOfBounds(.suite)` where nothing can be sealed.
        public mutating func seal(_ clear: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.next()
            return aead.seal(clear, nonce: nonce, data: data)
        }

        /// Seals a secret as the next message.
        /// - Throws: as the other.
        public mutating func seal(_ clear: SecureBytes, data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.next()
            return aead.seal(clear, nonce: nonce, data: data)
        }

        /// A secret that both sides have, for some other use (5.3).
        ///
        /// - Parameters:
        ///   - context: the use.
        ///   - count: 1 to 8,160 bytes.
        /// - Throws: `outOfBounds`.
        public func export(_ context: [UInt8], count: Int) throws(CryptoError) -> SecureBytes {
            try schedule.export(context, count: count)
        }

        /// For tests: leaves numbers of messages out.
        package mutating func skip(to number: UInt64) { schedule.skip(to: number) }

        /// For tests, against published values.
        package var intermediate: (context: [UInt8], secret: SecureBytes, key: SecureBytes?, nonce: [UInt8]) {
            let values = schedule.intermediate
            return (values.context, values.secret, values.key, values.baseNonce)
        }
    }

    /// The side that opens, message by message in their order (RFC 9180, 5.2).
    public struct Receiver: ~Copyable {
        private var schedule: KeySchedule

        /// - Parameters:
        ///   - encapsulated: what the sender has given, 32 bytes.
        ///   - info: what the exchange is about.
        ///   - sender: for auth mode, the key that the sender must have; nil is base mode.
        /// - Throws: `openingFailed` for what is no encapsulated key, or leads to a secret that everybody knows.
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
                // Whatever was wrong with it: it came from outside.
                throw .openingFailed
            }
            return try KeySchedule(cipher, shared: shared, info: info, isAuthenticated: sender != nil, psk: psk)
        }

        /// Opens the next message.
        ///
        /// - Throws: `openingFailed`, and then the next message has the same number; `messageLimitReached`;
        ///   `outOfBounds(.suite)` where nothing is sealed.
        public mutating func open(_ sealed: [UInt8], data: [UInt8]) throws(CryptoError) -> [UInt8] {
            let (aead, nonce) = try schedule.current()
            let clear = try aead.open(sealed, nonce: nonce, data: data)
            schedule.advance()
            return clear
        }

        /// Opens the next message, which is a secret.
        /// - Throws: as the other.
        public mutating func openSecret(_ sealed: [UInt8], data: [UInt8]) throws(CryptoError) -> SecureBytes {
            let (aead, nonce) = try schedule.current()
            let clear = try aead.openSecret(sealed, nonce: nonce, data: data)
            schedule.advance()
            return clear
        }

        /// A secret that both sides have, for some other use (5.3).
        /// - Throws: `outOfBounds`.
        public func export(_ context: [UInt8], count: Int) throws(CryptoError) -> SecureBytes {
            try schedule.export(context, count: count)
        }

        /// For tests: leaves numbers of messages out.
        package mutating func skip(to number: UInt64) { schedule.skip(to: number) }
    }
}
