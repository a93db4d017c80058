import ThicketCrypto
import ThicketPlatform

/// The second user of the key log under which an account's login name has its keys (decision 0067).
///
/// A device that knows only a name looks up the handle, which the device computes itself: a server cannot answer with
/// the keys of another account. The log has only this hash, so its entries reveal no names.
public enum KeyLogHandle {
    /// The start of every handle. A handle has 69 bytes.
    public static let prefix = "name:"

    /// The form in which the server compares names: case does not distinguish e-mail addresses.
    public static func folded(_ name: String) -> String { name.lowercased() }

    /// The handle: `name:` ‖ hex(SHA-256(`thicket/name/1` ‖ 0 ‖ lp(app) ‖ lp(folded name))).
    /// - Parameters:
    ///   - folded: `folded` of the account's name.
    ///   - app: the app's id, in lower case.
    /// - Throws: `malformed` for a name or an app of more than 65,535 bytes.
    public static func name(_ folded: String, app: String) throws(KeyLogError) -> String {
        var bytes = LabelledBytes("thicket/name/1")
        do throws(CryptoError) {
            try bytes.add(app.utf8)
            try bytes.add(folded.utf8)
        } catch { throw .malformed("a name is too long") }
        return prefix + Hex.encode(Digest256.of(bytes.octets).bytes)
    }
}
