public import ThicketCrypto
import ThicketKeyLog

/// The secret from which the keys of all key logs are derived. In a file of its own (`keylog.key`), apart from the
/// server's key: its public half is what devices trust, and replacing it is announced to them.
public struct LogKey: Sendable {
    private let seed: SecureBytes

    /// - Parameter seed: 32 bytes.
    init(_ seed: [UInt8]) { self.seed = SecureBytes(copying: seed) }

    /// Reads the file; creates it, readable only by its owner, if it does not exist.
    public static func load(_ path: String) throws(ServerKeyError) -> LogKey {
        if let kept = try read(path) { return kept }
        try ServerKey.make(path)
        guard let made = try read(path) else {
            throw ServerKeyError(path, "it was created, and another program has removed it")
        }
        return made
    }

    /// - Returns: nil when the file does not exist.
    static func read(_ path: String) throws(ServerKeyError) -> LogKey? {
        try ServerKey.secret(in: path).map(LogKey.init)
    }

    /// The key of an app's log: an Ed25519 seed from HKDF-SHA-256 over the file's bytes, without salt, with the info
    /// `thicket/log-key/1` ‖ 0 ‖ lp(app).
    public func key(of app: String) -> Ed25519.SigningKey {
        var info = LabelledBytes("thicket/log-key/1")
        do throws(CryptoError) {
            try info.add(app.utf8)
            return try Ed25519.SigningKey(seed: try HKDF.derive(.sha256, secret: seed, info: info.octets))
        } catch { preconditionFailure("an app's id has 64 bytes at most: \(error)") }
    }
}
