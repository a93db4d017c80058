import ThicketPlatform
/// A field of a new note (`onionVersion` 3), sealed for one user, one note and one field (spec 1.5; AES-256-GCM: NIST
/// SP 800-38D; the key by HKDF: RFC 5869).
///
/// suite ‖ nonce (12) ‖ AES-256-GCM ‖ tag. The key is derived from the vault secret; the sealed content is a 2-byte
/// length, the text, and zeros up to a multiple of 64. A field that is moved to another note, or to another name, does
/// not open.
public struct NoteSeal: Sendable {
    /// Bytes of a text at most: more than the 2,500 UTF-16 units of a note can take, and the most that the 2-byte
    /// length can express.
    public static let textBytesMax = 65_535

    private static let padding = Padding.multiple(of: 64)
    private let key: SecureBytes
    private let data: [UInt8]

    /// Derives the key of one field.
    ///
    /// - Parameters:
    ///   - vaultSecret: 32 random bytes of the account.
    ///   - userID: the owner, UTF-8 as written by the server.
    ///   - noteID: the key of the object.
    ///   - field: `onionTitle` or `onionInfo`.
    /// - Throws: `outOfBounds` for a secret of another length, and for a name of 65,536 bytes or more.
    public init(vaultSecret: SecureBytes, userID: [UInt8], noteID: [UInt8], field: [UInt8]) throws(CryptoError) {
        guard vaultSecret.count == AEADSuite.keyBytes else { throw .outOfBounds(.key) }
        let label = LabelledBytes("thicket/note/1")
        key = try HKDF.derive(.sha256, secret: vaultSecret, info: label.adding(noteID).adding(field).octets)
        data = try label.adding(userID).adding(noteID).adding(field).octets
    }

    /// Seals a text.
    ///
    /// - Parameters:
    ///   - text: UTF-8.
    ///   - nonce: one that this key has never used.
    /// - Returns: base64url of the sealed bytes, the stored form.
    /// - Throws: `outOfBounds(.count)` for more than `textBytesMax` bytes.
    public func seal(_ text: SecureBytes, nonce: AEADNonce = .random()) throws(CryptoError) -> String {
        guard let padded = Self.padding.pad(text, lengthBytes: 2) else { throw .outOfBounds(.count) }
        return Base64.encodeURL(try SealedMessage.seal(padded, key: key, data: data, nonce: nonce))
    }

    /// Opens a text.
    ///
    /// - Parameter stored: the result of `seal`, as UTF-8.
    /// - Throws: `openingFailed` for any deviation.
    public func open(_ stored: [UInt8]) throws(CryptoError) -> SecureBytes {
        // Only the suite that `seal` writes is accepted; the other one is for other content.
        guard let bytes = Base64.decodeURL(stored[...]), bytes.first == AEADSuite.aes256GCM.rawValue else {
            throw .openingFailed
        }
        let padded = try SealedMessage.openSecret(bytes, key: key, data: data)
        guard let text = Self.padding.unpad(padded, lengthBytes: 2) else { throw .openingFailed }
        return text
    }
}
