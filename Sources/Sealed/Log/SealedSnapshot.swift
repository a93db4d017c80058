import ThicketCrypto
import ThicketProtocol

/// The clear form of a snapshot: all that a device needs to go on from position n (decision 0042).
///
/// | key | meaning |
/// | --- | --- |
/// | `k` | the app's own key |
/// | `i` | incarnation id, base64url |
/// | `n` | position |
/// | `o` | the object; null when it is deleted |
/// | `h` | head(n), 32 bytes, base64url |
/// | `r` | first 16 bytes of each head of max(0, n − 63) … n, one behind the other, base64url |
/// | `q` | the same of the positions divisible by 64 before those, the newest 64, ascending |
/// | `a` | author → position of its last operation that was not void |
/// | `w` | operations max(1, n − 63) … n: null, or `{"a":author,"x":edit}` with what it replaced and removed as `w` |
public enum SealedSnapshot {
    /// The compact text.
    public static func clearBytes(of log: SealedLog) -> [UInt8] {
        var object: JSONObject = .init(reserving: 9)
        object["k"] = .string(log.appKey)
        object["i"] = .string(Base64.encodeURL(log.incarnation))
        object["n"] = .number(JSONNumber(Int64(log.position)))
        object["o"] = log.object.map { .object($0) } ?? .null
        object["h"] = .string(Base64.encodeURL(log.chain.newest))
        object["r"] = .string(text(of: log.chain.recent))
        object["q"] = .string(text(of: log.chain.old))
        let authors: [AuthorID] = log.lastPositions.keys.sorted()
        object["a"] = .object(
            JSONObject(
                authors.map { (key: $0.text, value: .number(JSONNumber(Int64(log.lastPositions[$0] ?? 0)))) }))
        object["w"] = .array(
            log.window.map { entry in
                guard let entry: SealedLog.Settled else { return .null }
                return ["a": .string(entry.author.text), "x": entry.edit.settledJSON]
            })
        return JSONValue.object(object).serialized()
    }

    private static func text(of heads: [Head]) -> String { Base64.encodeURL(heads.flatMap(\.bytes)) }

    /// Reads a clear text.
    /// - Parameter position: what the server calls it; it must say the same of itself.
    /// - Returns: nil when it is no snapshot of that position. Members that are not in the table are passed over.
    public static func log(clear bytes: [UInt8], place: SealedPlace, position: Int) -> SealedLog? {
        guard let root: JSONValue = try? .init(parsing: bytes, maxDepth: SealedLimits.clearDepthMax),
            let appKey: String = root["k"]?.stringValue,
            let incarnation: [UInt8] = self.bytes(root["i"]), incarnation.count == SealedLog.incarnationBytes,
            root["n"]?.intValue == Int64(position),
            let newest: [UInt8] = self.bytes(root["h"]), let recent: [Head] = heads(root["r"]),
            let old: [Head] = heads(root["q"]),
            let chain: HeadChain = .init(position: position, newest: newest, recent: recent, old: old),
            let authors: [AuthorID: Int] = lastPositions(root["a"], until: position),
            let window: [SealedLog.Settled?] = window(root["w"]),
            window.count == min(position, SealedLimits.windowPositions)
        else { return nil }
        let object: JSONObject?
        switch root["o"] {
        case .object(let value)?: object = value
        case .null?: object = nil
        default: return nil
        }
        return SealedLog(
            place: place, appKey: appKey, incarnation: incarnation, object: object, chain: chain,
            lastPositions: authors, window: window)
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? {
        value?.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }

    private static func heads(_ value: JSONValue?) -> [Head]? {
        guard let bytes: [UInt8] = bytes(value), bytes.count % Head.byteCount == 0 else { return nil }
        return stride(from: 0, to: bytes.count, by: Head.byteCount).compactMap { Head(bytes[$0...]) }
    }

    private static func lastPositions(_ value: JSONValue?, until position: Int) -> [AuthorID: Int]? {
        guard let object: JSONObject = value?.objectValue else { return nil }
        var positions: [AuthorID: Int] = [:]
        for (key, value) in object.pairs {
            guard let author: AuthorID = .init(text: key), let last: Int64 = value.intValue,
                (1...max(1, Int64(position))).contains(last)
            else { return nil }
            positions[author] = Int(last)
        }
        return positions
    }

    private static func window(_ value: JSONValue?) -> [SealedLog.Settled?]? {
        guard let entries: [JSONValue] = value?.arrayValue else { return nil }
        var window: [SealedLog.Settled?] = []
        for entry: JSONValue in entries {
            if entry.isNull {
                window.append(nil)
                continue
            }
            guard let author: AuthorID = entry["a"]?.stringValue.flatMap(AuthorID.init(text:)),
                let edit: Edit = entry["x"].flatMap({ try? Edit(settled: $0) })
            else { return nil }
            window.append(SealedLog.Settled(author: author, edit: edit))
        }
        return window
    }
}
