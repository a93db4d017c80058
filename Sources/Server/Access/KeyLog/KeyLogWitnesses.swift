import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// The witnesses whose confirmations a server accepts, and the newest of each. In memory: a confirmation counts for an
/// hour only, and witnesses confirm every few minutes.
struct KeyLogWitnesses: Sendable {
    /// Most witnesses.
    static let keysMax = 8

    /// Keys of the accepted witnesses.
    let keys: [Ed25519.VerifyingKey]
    /// By app.
    private var newest = [String: [KeyLogWitness]]()

    init(_ keys: [Ed25519.VerifyingKey]) { self.keys = keys }

    /// The keys of a setting: hexadecimal, separated by commas, or `none`.
    ///
    /// - Returns: nil for another text.
    static func keys(_ text: String) -> [Ed25519.VerifyingKey]? {
        if text.isEmpty || text.utf8.elementsEqual("none".utf8) { return [] }
        var keys = [Ed25519.VerifyingKey]()
        for word in text.split(separator: ",") {
            let digits = String(word.filter { $0 != " " })
            guard let octets = Hex.decode(digits), let key: Ed25519.VerifyingKey = try? .init(octets) else {
                return nil
            }
            if !keys.contains(key) { keys.append(key) }
        }
        return keys.count <= keysMax ? keys : nil
    }

    /// Keeps a confirmation that is signed, of this log, not older than an hour, and newer than the one before.
    ///
    /// - Throws: `notSigned` for a witness that is not accepted; as `KeyLogWitness.check`; `olderHead`.
    mutating func add(
        _ confirmation: KeyLogWitness, app: String, logKey: Ed25519.VerifyingKey, now: UInt64
    ) throws(KeyLogError) {
        guard keys.contains(confirmation.key) else {
            throw KeyLogError(.notSigned, "this server accepts no confirmations of that witness")
        }
        try confirmation.check(app: app, logKey: logKey, now: now)
        var kept = newest[app] ?? []
        if let place = kept.firstIndex(where: { $0.key == confirmation.key }) {
            // Everyone can read a confirmation and send it again: an earlier one does not replace a later one.
            let old = kept[place].head
            guard old.size <= confirmation.head.size, old.time <= confirmation.head.time else {
                throw KeyLogError(.olderHead, "the witness has confirmed a newer head")
            }
            kept[place] = confirmation
        } else {
            kept.append(confirmation)
        }
        newest[app] = kept
    }

    /// The confirmations of a log that still count, as devices get them.
    func list(of app: String, logKey: Ed25519.VerifyingKey, now: UInt64) -> JSONValue {
        let counting = (newest[app] ?? []).filter { (try? $0.check(app: app, logKey: logKey, now: now)) != nil }
        return .array(counting.map { .object($0.json) })
    }

    /// Reads the body of a request.
    ///
    /// - Returns: nil for a body of another form.
    static func read(_ body: [UInt8]) -> KeyLogWitness? {
        guard body.count <= bodyBytesMax, let object = (try? JSONValue(parsing: body))?.objectValue else { return nil }
        return KeyLogWitness(json: object)
    }

    /// Most bytes of a body.
    private static let bodyBytesMax = 4_096
}
