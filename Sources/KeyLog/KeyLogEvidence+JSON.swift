import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// The file format of evidence: JSON with the members `format` (1), `kind`, `app`, `log_key` (hex), `user`, `found`
/// (milliseconds since 1970), `summary` (for people; verifiers ignore it) and `parts`, an object with base64url values
/// without padding: `fork`, `lookup`, `earlier`, `entry`, `denial`.
extension KeyLogEvidence {
    private static let format: Int64 = 1
    /// Maximum bytes of the file: two answers in base64, and the other parts.
    public static let fileBytesMax: Int = 3 * KeyLogLimits.lookupBytesMax + (64 << 10)

    /// The file's content as a JSON object.
    public var json: JSONObject {
        var parts = JSONObject()
        let all = [
            ("fork", fork?.bytes), ("lookup", lookup), ("earlier", earlier), ("entry", entry?.bytes),
            ("denial", denial),
        ]
        for (name, bytes) in all { if let bytes { parts[name] = .string(Base64.encodeURL(bytes)) } }
        var object: JSONObject = [
            "format": .number(JSONNumber(Self.format)), "kind": .string(kind.rawValue), "app": .string(app),
            "log_key": .string(Hex.encode(logKey.octets)), "found": .number(JSONNumber(Int64(clamping: found))),
            "summary": .string(summary), "parts": .object(parts),
        ]
        if let user { object["user"] = .string(user) }
        return object
    }

    /// One sentence for people.
    public var summary: String {
        switch check() {
        case .proven(let what): what
        case .notProven(let what): "\(title): \(what)"
        }
    }

    private var title: String {
        switch kind {
        case .heads: "two heads of the key log"
        case .badEntry: "an entry of \(user ?? "a user")"
        case .foreignKey: "an entry of \(user ?? "a user") that no device of the account has made"
        case .replaced: "the entries of \(user ?? "a user") were replaced"
        }
    }

    /// Reads a file's content. What it proves is decided by `check`.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ json: JSONObject) throws(KeyLogError) {
        guard json["format"]?.intValue == Self.format else { throw .malformed("evidence in an unknown format") }
        guard let kind = json["kind"]?.stringValue.flatMap(Kind.init(rawValue:)), let app = json["app"]?.stringValue,
            let hex = json["log_key"]?.stringValue.flatMap(Hex.decode), let key: Ed25519.VerifyingKey = try? .init(hex),
            let found = json["found"]?.intValue.flatMap(UInt64.init(exactly:)), found < KeyLogLimits.numberBound,
            let parts = json["parts"]?.objectValue
        else { throw .malformed("evidence lacks a member") }
        let user: String? = json["user"]?.stringValue
        self.init(
            kind: kind, app: try KeyLogFields.app(app), logKey: key, user: user, found: found,
            fork: try Self.part("fork", parts).map { (bytes) throws(KeyLogError) in try KeyLogFork(bytes) },
            lookup: try Self.part("lookup", parts), earlier: try Self.part("earlier", parts),
            entry: try Self.part("entry", parts).map { (bytes) throws(KeyLogError) in try KeyLogEntry(bytes) },
            denial: try Self.part("denial", parts))
    }

    /// Reads a file.
    /// - Throws: `malformed`, `tooMany`.
    public init(file: [UInt8]) throws(KeyLogError) {
        guard file.count <= Self.fileBytesMax else {
            throw KeyLogError(.tooMany, "evidence has at most \(Self.fileBytesMax) bytes")
        }
        guard let object = (try? JSONValue(parsing: file))?.objectValue else {
            throw .malformed("evidence is not a JSON object")
        }
        try self.init(object)
    }

    private static func part(_ name: String, _ parts: JSONObject) throws(KeyLogError) -> [UInt8]? {
        guard let value = parts[name] else { return nil }
        guard let text = value.stringValue, let bytes = Base64.decodeURL(Array(text.utf8)[...]) else {
            throw .malformed("a part of evidence is not base64")
        }
        return bytes
    }
}
