import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The values that an author of a sealed bucket sends, of the shape that the server accepts. They hold no content: no
/// program here reads them, and the server cannot.
enum SealedText {
    /// Bytes of clear text in each, padded.
    private static let clearBytes = 64

    /// - Parameters:
    ///   - kind: 1 a snapshot, 2 an operation.
    ///   - ccid: 32 hex digits.
    static func value(_ kind: UInt8, _ ccid: String) -> JSONValue {
        let id = Hex.decode(ccid) ?? []
        let sealed = [UInt8](repeating: UInt8(ascii: "x"), count: 12 + clearBytes + 16)
        return .string(Base64.encodeURL([1, kind, 0, 0, 0, 0] + id + sealed))
    }

    /// A key as devices name sealed objects.
    static func key(_ name: String) -> String { Base32.encode(Array(Hash.sha256(Array(name.utf8)).prefix(20))) }

    static func changeID(_ name: String) -> String { Hex.encode(Array(Hash.sha256(Array(name.utf8)).prefix(16))) }
}

/// The state of a sealed object, as its only author knows it: the newest snapshot and the operations behind it.
struct SealedStand {
    var snapshot = 0
    var tail = 0
    /// Number of operations behind a snapshot from which on it is compacted.
    static let tailMax = 5

    init() {}

    /// Reads `text`.
    init?(_ text: String) {
        let parts = text.split(separator: " ").compactMap { Int($0) }
        guard parts.count == 2 else { return nil }
        (snapshot, tail) = (parts[0], parts[1])
    }

    var text: String { "\(snapshot) \(tail)" }

    /// The change that makes a new snapshot, and the state after it.
    func compaction(_ ccid: String) -> (members: JSONObject, stand: SealedStand) {
        var (named, removed): (JSONObject, JSONObject) = ([:], [:])
        named["\(snapshot + tail)"] = ["o": "+", "v": SealedText.value(1, ccid)]
        named["\(snapshot)"] = ["o": "-"]
        for index in 0..<tail { removed["\(index)"] = ["o": "-"] }
        var next: SealedStand = self
        (next.snapshot, next.tail) = (snapshot + tail, 0)
        let diff: JSONObject = [
            "s": ["o": "O", "v": .object(named)], "d": ["o": "L", "v": .object(removed)],
        ]
        return (["o": "M", "v": .object(diff)], next)
    }

    static func creation(_ ccid: String) -> JSONObject {
        let diff: JSONObject = [
            "z": ["o": "+", "v": 1], "s": ["o": "+", "v": ["0": SealedText.value(1, ccid)]],
            "d": ["o": "+", "v": []],
        ]
        return ["o": "M", "v": .object(diff)]
    }

    static func operation(_ ccid: String) -> JSONObject {
        let list: JSONObject = ["0": ["o": "+", "v": SealedText.value(2, ccid)]]
        return ["o": "M", "v": ["d": ["o": "L", "v": .object(list)]]]
    }
}
