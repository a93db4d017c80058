/// The name under which a server keeps a node without knowing what it is called.
///
/// First 20 bytes of HMAC-SHA-256(child salt, "thicket/name/1" ‖ 0 ‖ fold(name)) as 32 letters of base32. Names that
/// differ in case or in how their accents are written have one tag; who lacks the salt cannot guess a name from it.
public enum NameTag {
    /// Bytes of a tag.
    public static let byteCount = 20
    /// Letters of a tag.
    public static let letterCount = 32
    private static let label: [UInt8] = Array("thicket/name/1".utf8) + [0]

    /// - Parameters:
    ///   - name: what people see, UTF-8.
    ///   - salt: the parent's child salt, 32 random bytes.
    /// - Returns: 20 bytes.
    public static func bytes(of name: [UInt8], salt: [UInt8]) throws(UnicodeText.Failure) -> [UInt8] {
        let folded = try UnicodeText.folded(name)
        return Array(Hash.hmacSHA256(key: salt, label + folded).prefix(byteCount))
    }

    /// The same as lower-case base32.
    public static func text(of name: [UInt8], salt: [UInt8]) throws(UnicodeText.Failure) -> String {
        Base32.encode(try bytes(of: name, salt: salt))
    }
}
