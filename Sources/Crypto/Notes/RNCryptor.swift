/// The message format of old notes: RNCryptor's data format 3, and format 2 for reading
/// (github.com/RNCryptor/RNCryptor-Spec).
///
/// version ‖ options ‖ [encryption salt (8) ‖ HMAC salt (8)] ‖ IV (16) ‖ AES-256-CBC with PKCS#7 padding ‖ HMAC-SHA-256
/// (32) over everything before it. With a password both keys are derived by PBKDF2, each with its own salt; rounds and
/// hash are stored beside the message, not in it.
///
/// The order of the checks is fixed: form, code, then decryption, then padding. Every failure is `openingFailed`.
public enum RNCryptor {
    /// The version that is written.
    public static let version: UInt8 = 3
    /// The older version that can also be read; it truncated passwords.
    public static let oldVersion: UInt8 = 2
    /// PBKDF2 rounds that a message may ask for. The number may come from an attacker, and it determines how long a
    /// thread is blocked.
    public static let roundsMax = 10_000_000
    /// The default number of rounds, as in published messages and in notes.
    public static let rounds = 10_000
    /// Bytes of a password at most.
    public static let passwordBytesMax = 1 << 20

    static let saltBytes = 8
    private static let vectorBytes = 16
    private static let codeBytes = 32
    private static let keyBytes = 32

    /// The derivation of both keys from a password.
    public struct Stretching: Sendable, Hashable {
        /// The hash of PBKDF2's HMAC: SHA-1 as published, SHA-512 in the first notes.
        public let function: HashFunction
        /// Number of rounds, 1...`roundsMax`.
        public let rounds: Int

        /// Makes a derivation.
        ///
        /// - Throws: `openingFailed` for rounds out of bounds, because no valid message has them.
        public init(_ function: HashFunction = .sha1, rounds: Int = RNCryptor.rounds) throws(CryptoError) {
            guard (1...roundsMax).contains(rounds) else { throw .openingFailed }
            (self.function, self.rounds) = (function, rounds)
        }
    }

    /// The values that make two messages of one text differ: random, or given by tests.
    public struct Freshness: Sendable {
        let encryptionSalt: [UInt8]
        let codeSalt: [UInt8]
        let vector: [UInt8]

        /// Random values.
        public init() {
            (encryptionSalt, codeSalt, vector) = (RandomBytes.make(8), RandomBytes.make(8), RandomBytes.make(16))
        }

        /// Given values, for tests.
        ///
        /// - Throws: `outOfBounds(.salt)` unless they have 8, 8 and 16 bytes.
        public init(encryptionSalt: [UInt8], codeSalt: [UInt8], vector: [UInt8]) throws(CryptoError) {
            guard encryptionSalt.count == saltBytes, codeSalt.count == saltBytes, vector.count == vectorBytes else {
                throw .outOfBounds(.salt)
            }
            (self.encryptionSalt, self.codeSalt, self.vector) = (encryptionSalt, codeSalt, vector)
        }
    }

    /// Opens a message that was sealed with a password, of format 3 or 2.
    ///
    /// - Parameters:
    ///   - message: the sealed message.
    ///   - password: UTF-8, complete; for format 2 it is truncated here.
    ///   - stretching: the derivation of the keys.
    /// - Throws: `openingFailed` for any deviation.
    public static func open(
        _ message: [UInt8], password: SecureBytes, _ stretching: Stretching
    ) throws(CryptoError) -> SecureBytes {
        let parts = try Parts(message, hasPassword: true)
        guard password.count <= passwordBytesMax else { throw .openingFailed }
        let password = parts.version == oldVersion ? cut(password) : password
        let codeKey = try key(password, parts.codeSalt, stretching)
        try check(message, parts, codeKey)
        return try decrypt(message, parts, try key(password, parts.encryptionSalt, stretching))
    }

    /// Opens a message that was sealed with two keys.
    ///
    /// - Parameters:
    ///   - message: the sealed message.
    ///   - encryptionKey: 32 bytes.
    ///   - codeKey: the key of the HMAC, of any length.
    /// - Throws: `openingFailed` for any deviation.
    public static func open(
        _ message: [UInt8], encryptionKey: SecureBytes, codeKey: SecureBytes
    ) throws(CryptoError) -> SecureBytes {
        let parts = try Parts(message, hasPassword: false)
        guard encryptionKey.count == keyBytes else { throw .openingFailed }
        try check(message, parts, codeKey)
        return try decrypt(message, parts, encryptionKey)
    }

    /// Seals with a password, in format 3.
    ///
    /// - Throws: `outOfBounds(.count)` for a password of more than `passwordBytesMax` bytes.
    public static func seal(
        _ clear: SecureBytes, password: SecureBytes, _ stretching: Stretching, _ fresh: Freshness = Freshness()
    ) throws(CryptoError) -> [UInt8] {
        guard password.count <= passwordBytesMax else { throw .outOfBounds(.count) }
        let head = [version, 1] + fresh.encryptionSalt + fresh.codeSalt + fresh.vector
        return try seal(
            clear, head, fresh.vector, encryptionKey: try key(password, fresh.encryptionSalt, stretching),
            codeKey: try key(password, fresh.codeSalt, stretching))
    }

    /// Seals with two keys, in format 3.
    ///
    /// - Parameters:
    ///   - clear: the secret to seal.
    ///   - encryptionKey: 32 bytes.
    ///   - codeKey: the key of the HMAC, of any length.
    ///   - fresh: random values.
    /// - Throws: `outOfBounds(.key)` for an encryption key of another length.
    public static func seal(
        _ clear: SecureBytes, encryptionKey: SecureBytes, codeKey: SecureBytes, _ fresh: Freshness = Freshness()
    ) throws(CryptoError) -> [UInt8] {
        guard encryptionKey.count == keyBytes else { throw .outOfBounds(.key) }
        return try seal(
            clear, [version, 0] + fresh.vector, fresh.vector, encryptionKey: encryptionKey, codeKey: codeKey)
    }

    private static func seal(
        _ clear: SecureBytes, _ head: [UInt8], _ vector: [UInt8], encryptionKey: SecureBytes, codeKey: SecureBytes
    ) throws(CryptoError) -> [UInt8] {
        let text = try clear.withUnsafeBytes { clear throws(CryptoError) in
            try AESCBC.encrypt(clear, key: encryptionKey, vector: vector)
        }
        let sealed = head + text
        return sealed + HMAC.code(.sha256, key: codeKey, sealed)
    }

    private static func key(
        _ password: SecureBytes, _ salt: [UInt8], _ stretching: Stretching
    ) throws(CryptoError) -> SecureBytes {
        try PBKDF2.derive(
            stretching.function, password: password, salt: salt, rounds: stretching.rounds, count: keyBytes)
    }

    private static func check(_ message: [UInt8], _ parts: Parts, _ key: SecureBytes) throws(CryptoError) {
        let isGenuine = message.withUnsafeBytes { bytes in
            HMAC.isCode(parts.code, .sha256, key: key, of: .init(rebasing: bytes.dropLast(codeBytes)))
        }
        guard isGenuine else { throw .openingFailed }
    }

    private static func decrypt(
        _ message: [UInt8], _ parts: Parts, _ key: SecureBytes
    ) throws(CryptoError) -> SecureBytes {
        try message.lent { bytes throws(CryptoError) in
            try AESCBC.decrypt(.init(rebasing: bytes[parts.text]), key: key, vector: parts.vector)
        }
    }

    /// The password of format 2: truncated to as many bytes as it has UTF-16 units, an error of its first
    /// implementations.
    private static func cut(_ password: SecureBytes) -> SecureBytes {
        let units = password.withUnsafeBytes { bytes in
            // A character begins with a byte that is not 10xxxxxx, and has two units if that byte is 11110xxx or above.
            bytes.reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : $1 >= 0xF0 ? 2 : 1) }
        }
        return password.part(0..<min(units, password.count))
    }

    /// The parts of a message of valid form.
    private struct Parts {
        let version: UInt8
        let encryptionSalt: [UInt8]
        let codeSalt: [UInt8]
        let vector: [UInt8]
        let text: Range<Int>
        let code: [UInt8]

        init(_ message: [UInt8], hasPassword: Bool) throws(CryptoError) {
            let headBytes = 2 + (hasPassword ? 2 * saltBytes : 0) + vectorBytes
            let textBytes = message.count - headBytes - codeBytes
            guard textBytes > 0, textBytes % AESCBC.blockBytes == 0,
                [RNCryptor.version, oldVersion].contains(message[0]),
                message[1] == (hasPassword ? 1 : 0)
            else { throw .openingFailed }
            version = message[0]
            encryptionSalt = hasPassword ? Array(message[2..<10]) : []
            codeSalt = hasPassword ? Array(message[10..<18]) : []
            vector = Array(message[headBytes - vectorBytes..<headBytes])
            text = headBytes..<headBytes + textBytes
            code = Array(message.suffix(codeBytes))
        }
    }
}
