public import ThicketCrypto

/// States that an app's key log is signed with another key from now on. Signed with both keys, so that a device that
/// trusts the old key may trust the new one without another source.
///
/// Bytes: `thicket/log-key-rotation/1` ‖ 0x00 ‖ app ‖ old public key (32) ‖ new public key (32) ‖ time (8) — these are
/// signed — ‖ signature with the old key (64) ‖ signature with the new key (64), each with 16 bits of length.
public struct LogKeyRotation: Sendable, Hashable {
    private static let label: StaticString = "thicket/log-key-rotation/1"
    /// Maximum bytes of a statement.
    public static let bytesMax = 512

    /// The app of the log.
    public let app: String
    /// The key that signed heads before.
    public let old: Ed25519.VerifyingKey
    /// The key that signs heads from now on.
    public let new: Ed25519.VerifyingKey
    /// Milliseconds since 1970, server clock.
    public let time: UInt64
    /// The encoding for storage and transfer.
    public let bytes: [UInt8]
    private let oldSignature: [UInt8]
    private let newSignature: [UInt8]

    /// Signs a statement.
    /// - Throws: `malformed` for an invalid app name or time; `sameKeys`.
    public init(
        app: String, from old: Ed25519.SigningKey, to new: Ed25519.SigningKey, time: UInt64
    ) throws(KeyLogError) {
        let app = try KeyLogFields.app(app)
        let fields = Self.fields(app, old.verifyingKey, new.verifyingKey, time)
        var bytes = LabelledBytes(Self.label)
        for field in fields { bytes.put(field) }
        do throws(CryptoError) {
            bytes.put(try old.signature(for: .logKeyRotation, fields))
            bytes.put(try new.signature(for: .logKeyRotation, fields))
        } catch { throw KeyLogError(.malformed, "a change of the log's key cannot be signed: \(error)") }
        try self.init(bytes.octets)
    }

    /// Parses a statement; `check` verifies its signatures.
    /// - Throws: `malformed`, `tooMany`; `sameKeys` when both keys are the same.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(bytes, label: Self.label, max: Self.bytesMax, what: "a change of the log's key")
        app = try fields.app()
        (old, new) = (try Self.key(&fields), try Self.key(&fields))
        time = try fields.numberField()
        oldSignature = try fields.field(Ed25519.signatureBytes)
        newSignature = try fields.field(Ed25519.signatureBytes)
        try fields.end()
        guard old != new else { throw KeyLogError(.sameKeys, "the change of the log's key changes nothing") }
        self.bytes = bytes
    }

    /// Checks the statement for a device that trusts a key.
    /// - Parameters:
    ///   - app: the app whose log the device reads.
    ///   - trusted: the log's key that the device knows.
    /// - Throws: `otherApp`; `previous` when the statement begins at another key; `signature`.
    public func check(app: String, trusted: Ed25519.VerifyingKey) throws(KeyLogError) {
        guard self.app.utf8.elementsEqual(app.utf8) else {
            throw KeyLogError(.otherApp, "the change of the log's key is for another app")
        }
        guard old == trusted else {
            throw KeyLogError(.previous, "the change of the log's key begins at another key than the known one")
        }
        let signed = Self.fields(self.app, old, new, time)
        guard old.isSignature(oldSignature, for: .logKeyRotation, signed),
            new.isSignature(newSignature, for: .logKeyRotation, signed)
        else { throw KeyLogError(.signature, "the change of the log's key is not signed with both keys") }
    }

    /// Statements are equal if their bytes are.
    public static func == (left: LogKeyRotation, right: LogKeyRotation) -> Bool { left.bytes == right.bytes }

    /// Uses the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    private static func fields(
        _ app: String, _ old: Ed25519.VerifyingKey, _ new: Ed25519.VerifyingKey, _ time: UInt64
    ) -> [[UInt8]] { [Array(app.utf8), old.octets, new.octets, time.octets] }

    private static func key(_ fields: inout KeyLogFields) throws(KeyLogError) -> Ed25519.VerifyingKey {
        let octets = try fields.field(Ed25519.octetsCount)
        do throws(CryptoError) { return try Ed25519.VerifyingKey(octets) } catch {
            throw .malformed("a change of the log's key has an invalid key")
        }
    }
}
