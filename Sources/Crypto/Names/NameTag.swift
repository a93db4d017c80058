/// The name under which a server stores a node without knowing the node's real name.
///
/// First 20 bytes of HMAC-SHA-256(child salt, "thicket/name/1" ‖ 0 ‖ fold(name)) as 32 letters of base32. Names that
/// differ only in case or in the encoding of their accents have the same tag; without the salt, an attacker cannot
/// guess a name from it.
public enum NameTag {
    /// Bytes of a tag.
    public static let byteCount = 20
    /// Letters of a tag.
    public static let letterCount = 32
    private static let label: [UInt8] = Array("thicket/name/1".utf8) + [0]

    /// The tag of a name.
    ///
    /// - Parameters:
    ///   - name: the name as people see it, UTF-8.
    ///   - salt: the parent's child salt, 32 random bytes.
    /// - Returns: 20 bytes.
    /// - Throws: `UnicodeText.Failure` for a name that is not UTF-8 or too long.
    public static func bytes(of name: [UInt8], salt: [UInt8]) throws(UnicodeText.Failure) -> [UInt8] {
        let folded = try UnicodeText.folded(name)
        return Array(Hash.hmacSHA256(key: salt, label + folded).prefix(byteCount))
    }

    /// The tag of a name as lower-case base32.
    public static func text(of name: [UInt8], salt: [UInt8]) throws(UnicodeText.Failure) -> String {
        Base32.encode(try bytes(of: name, salt: salt))
    }
}
