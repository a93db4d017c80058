import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// A compact JWS (RFC 7515, 7.1) with only its form checked: neither header nor payload has been parsed.
public struct SignedToken: Sendable {
    /// Header and payload with the dot between them, as received: the signed bytes.
    public let signed: ArraySlice<UInt8>
    /// The header's JSON, not yet trusted.
    let header: [UInt8]
    /// The payload's JSON, not yet trusted.
    let payload: [UInt8]
    /// The signature, not yet checked: 64 bytes.
    public let signature: [UInt8]

    /// Bytes of an HMAC-SHA-512.
    static let signatureBytes = 64
    /// Characters of a signature in base64url.
    private static let signatureCharacters = 86

    /// Whether a text looks like such a token: three parts, the last as long as a signature. Cheap; does not check
    /// whether the token is good.
    public static func hasForm(_ text: String) -> Bool {
        guard text.utf8.count <= TokenRules.tokenBytesMax, text.utf8.count > signatureCharacters else { return false }
        let dot = UInt8(ascii: ".")
        let signature = text.utf8.suffix(signatureCharacters)
        return text.utf8.dropLast(signatureCharacters).last == dot && !signature.contains(dot)
            && text.utf8.count { $0 == dot } == 2
    }

    /// - Parameter text: the token alone.
    /// - Throws: `denied(.structure)` unless it is three parts of strict base64url, the last of 64 bytes.
    public init(_ text: ArraySlice<UInt8>) throws(TokenRefusal) {
        let dot = UInt8(ascii: ".")
        guard text.count <= TokenRules.tokenBytesMax, let first = text.firstIndex(of: dot),
            let second = text[(first + 1)...].firstIndex(of: dot),
            let header = Base64.decodeURL(text[..<first]),
            let payload = Base64.decodeURL(text[(first + 1)..<second]),
            let signature = Base64.decodeURL(text[(second + 1)...]),
            signature.count == Self.signatureBytes
        else { throw .denied(.structure) }
        signed = text[..<second]
        (self.header, self.payload, self.signature) = (header, payload, signature)
    }

    /// A new token as text.
    /// - Parameter key: the bytes of a partner's auth key.
    static func sign(header: JSONObject, payload: JSONObject, key: [UInt8]) -> String {
        let parts = [header, payload].map { Base64.encodeURL(JSONValue.object($0).serialized()) }
        let signed = parts.joined(separator: ".")
        return signed + "." + Base64.encodeURL(Hash.hmacSHA512(key: key, Array(signed.utf8)[...]))
    }

    /// Whether one of the keys has signed it. Every key is tried, even after a match.
    /// - Parameter keys: the partner's live auth keys.
    func isSigned(by keys: [MessageKey512]) -> Bool {
        var isGood = false
        for key in keys {
            if key.isCode(signature, of: signed) { isGood = true }
        }
        return isGood
    }
}
