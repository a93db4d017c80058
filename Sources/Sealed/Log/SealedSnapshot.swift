import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The clear form of a snapshot: all that a device needs to continue from position n (decision 0042).
///
/// | key | meaning |
/// | --- | --- |
/// | `k` | the app's own key |
/// | `i` | incarnation id, base64url |
/// | `n` | position |
/// | `o` | the object; null when it is deleted |
/// | `h` | head(n), 32 bytes, base64url |
/// | `r` | first 16 bytes of each head of max(0, n − 63) … n, concatenated, base64url |
/// | `q` | the same of earlier positions divisible by 64, the newest 64, ascending |
/// | `l` | newest version of a list of readers that an operation names; absent where accounts do not share the bucket |
/// | `a` | author → position of its last operation that was not void |
/// | `w` | operations max(1, n − 63) … n: null, or `{"a":author,"x":edit}` with replaced and removed values as `w` |
public enum SealedSnapshot {
    /// The compact text.
    public static func clearBytes(of log: SealedLog) -> [UInt8] {
        var object = JSONObject(reserving: 10)
        object["k"] = .string(log.appKey)
        object["i"] = .string(Base64.encodeURL(log.incarnation))
        object["n"] = .number(JSONNumber(Int64(log.position)))
        object["o"] = log.object.map { .object($0) } ?? .null
        object["h"] = .string(Base64.encodeURL(log.chain.newest))
        object["r"] = .string(text(of: log.chain.recent))
        object["q"] = .string(text(of: log.chain.old))
        if log.list > 0 { object["l"] = .number(JSONNumber(Int64(log.list))) }
        let authors: [AuthorID] = log.lastPositions.keys.sorted()
        object["a"] = .object(
            JSONObject(
                authors.map { (key: $0.text, value: .number(JSONNumber(Int64(log.lastPositions[$0] ?? 0)))) }))
        object["w"] = .array(
            log.window.map { entry in
                guard let entry else { return .null }
                return ["a": .string(entry.author.text), "x": entry.edit.storedJSON]
            })
        return JSONValue.object(object).serialized()
    }

    private static func text(of heads: [Head]) -> String { Base64.encodeURL(heads.flatMap(\.bytes)) }

    /// The content of a snapshot whose object was not parsed yet.
    struct Content {
        let appKey: String
        let incarnation: [UInt8]
        /// nil: the object is deleted.
        let object: JSONNode?
        let chain: HeadChain
        let lastPositions: [AuthorID: Int]
        let window: [SealedLog.Entry?]
        let list: Int
    }

    /// Reads a clear text.
    /// - Parameter position: the position under which the server holds it; the text must name the same one.
    /// - Returns: nil when it is not a snapshot of that position. Unknown members are ignored.
    public static func log(clear bytes: [UInt8], place: SealedPlace, position: Int) -> SealedLog? {
        guard let content = content(clear: bytes[...], position: position) else { return nil }
        return SealedLog(
            place: place, appKey: content.appKey, incarnation: content.incarnation, object: content.object?.object,
            chain: content.chain, lastPositions: content.lastPositions, window: content.window, list: content.list)
    }

    /// The same, without parsing the object into a tree.
    static func content(clear bytes: ArraySlice<UInt8>, position: Int) -> Content? {
        guard let root = try? JSONDocument(parsing: bytes, maxDepth: SealedLimits.clearDepthMax).root,
            let appKey = root["k"]?.string,
            let incarnation = self.bytes(root["i"]), incarnation.count == SealedLog.incarnationBytes,
            root["n"]?.int64 == Int64(position), let object = root["o"],
            object.kind == .object || object.isNull,
            let newest = self.bytes(root["h"]), let recent = heads(root["r"]),
            let old = heads(root["q"]),
            let chain = HeadChain(position: position, newest: newest, recent: recent, old: old),
            let authors = lastPositions(root["a"], until: position),
            let window = window(root["w"]),
            window.count == min(position, SealedLimits.windowPositions),
            let list = SealedOperation.list(root["l"])
        else { return nil }
        return Content(
            appKey: appKey, incarnation: incarnation, object: object.isNull ? nil : object, chain: chain,
            lastPositions: authors, window: window, list: list)
    }

    /// The list version that a snapshot's clear text names; nil when it is not a snapshot.
    public static func list(clear bytes: [UInt8]) -> Int? { SealedOperation.list(clear: bytes) }

    /// The app's key that a snapshot's clear text names; nil when it is not a snapshot.
    public static func appKey(clear bytes: [UInt8]) -> String? {
        (try? JSONDocument(parsing: bytes, maxDepth: SealedLimits.clearDepthMax))?.root["k"]?.string
    }

    private static func bytes(_ node: JSONNode?) -> [UInt8]? {
        var bytes: [UInt8]?
        _ = node?.withText { bytes = Base64.decodeURL($0) }
        return bytes
    }

    private static func heads(_ node: JSONNode?) -> [Head]? {
        guard let bytes = bytes(node), bytes.count % Head.byteCount == 0 else { return nil }
        return stride(from: 0, to: bytes.count, by: Head.byteCount).compactMap { Head(bytes[$0...]) }
    }

    private static func lastPositions(_ node: JSONNode?, until position: Int) -> [AuthorID: Int]? {
        guard let node, node.kind == .object else { return nil }
        var positions = [AuthorID: Int]()
        for (key, value) in node.pairs {
            guard let author = AuthorID(text: key), let last = value.int64,
                (1...max(1, Int64(position))).contains(last)
            else { return nil }
            positions[author] = Int(last)
        }
        return positions
    }

    private static func window(_ node: JSONNode?) -> [SealedLog.Entry?]? {
        guard let node, node.kind == .array else { return nil }
        var window = [SealedLog.Entry?]()
        for entry in node.elements {
            if entry.isNull {
                window.append(nil)
                continue
            }
            guard let author = entry["a"]?.string.flatMap(AuthorID.init(text:)),
                let edit = entry["x"].flatMap({ try? Edit(stored: $0.value) })
            else { return nil }
            window.append(SealedLog.Entry(author: author, edit: edit))
        }
        return window
    }
}
