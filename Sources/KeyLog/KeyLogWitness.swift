public import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// A witness's confirmation of a head: a second service has seen this head, and it was consistent with all heads which
/// that service had seen before (spec 4.12).
///
/// The signature is over `thicket/witness/1` ‖ 0 ‖ app ‖ key of the log ‖ head, each with 16 bits of length.
public struct KeyLogWitness: Sendable, Hashable {
    /// The witness's key.
    public let key: Ed25519.VerifyingKey
    /// The confirmed head.
    public let head: KeyLogHead
    /// The witness's signature, 64 bytes.
    public let signature: [UInt8]

    /// A confirmation as received; `check` verifies it.
    public init(key: Ed25519.VerifyingKey, head: KeyLogHead, signature: [UInt8]) {
        (self.key, self.head, self.signature) = (key, head, signature)
    }

    /// Confirms a head.
    /// - Throws: `malformed` when the statement cannot be signed.
    public init(
        confirming head: KeyLogHead, app: String, logKey: Ed25519.VerifyingKey, key: Ed25519.SigningKey
    ) throws(KeyLogError) {
        do throws(CryptoError) {
            let signature = try key.signature(for: .witness, Self.fields(app, logKey, head))
            self.init(key: key.verifyingKey, head: head, signature: signature)
        } catch { throw .malformed("a confirmation cannot be signed: \(error)") }
    }

    /// Verifies the witness's signature, the head's, and the head's age.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `notSigned`; `staleHead` for a head older than an hour, `futureHead`.
    public func check(app: String, logKey: Ed25519.VerifyingKey, now: UInt64) throws(KeyLogError) {
        guard key.isSignature(signature, for: .witness, Self.fields(app, logKey, head)) else {
            throw KeyLogError(.notSigned, "the confirmation of a head is not signed by the witness")
        }
        try head.check(logKey)
        guard !KeyLogReader.isStale(head.time, now) else {
            throw KeyLogError(.staleHead, "the witness confirmed a head that is older than an hour")
        }
        guard !KeyLogReader.isFuture(head.time, now) else { throw KeyLogReader.future }
    }

    private static func fields(
        _ app: String, _ logKey: Ed25519.VerifyingKey, _ head: KeyLogHead
    ) -> [[UInt8]] { [Array(app.utf8), logKey.octets, head.bytes] }
}

extension KeyLogWitness {
    /// A confirmation from the members `key`, `head` and `signature` of a JSON object, base64url without padding;
    /// `check` verifies it.
    ///
    /// - Returns: nil when a member is missing or has another form.
    public init?(json object: JSONObject) {
        guard let key = Self.octets(object["key"]), let head = Self.octets(object["head"]),
            let signature = Self.octets(object["signature"]), signature.count == Ed25519.signatureBytes,
            let verifying: Ed25519.VerifyingKey = try? .init(key), let parsed = try? KeyLogHead(head)
        else { return nil }
        self.init(key: verifying, head: parsed, signature: signature)
    }

    /// What `init(json:)` reads.
    public var json: JSONObject {
        [
            "key": .string(Base64.encodeURL(key.octets)), "head": .string(Base64.encodeURL(head.bytes)),
            "signature": .string(Base64.encodeURL(signature)),
        ]
    }

    private static func octets(_ value: JSONValue?) -> [UInt8]? {
        value?.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }
}
