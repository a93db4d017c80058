import ThicketProtocol

/// What people did and what of it must be there at the end.
struct Model {
    var markers: MarkerSource
    /// In every string that is no typed text: whose it is.
    let mark: String
    private(set) var texts = [EntityKey: TypedText]()
    /// All increments together; nil: nobody can say any more.
    var sum: Int64? = 0

    /// Characters typed by object, whatever became of them.
    private var lengths = [EntityKey: Int]()
    /// At four bytes a character this stays under `Scenario.shard.documentBytesMax`: a text that is full is refused,
    /// and then what was typed last rightly stays with its author. The object `big` plays that.
    private static let charactersMax = 5_500

    init(account: Int) {
        markers = MarkerSource(account: account)
        mark = MarkerSource.mark(of: account)
    }

    /// Whether everything that was typed into this text and one character more find room in one object.
    func hasRoom(_ key: EntityKey) -> Bool { lengths[key] ?? 0 < Model.charactersMax }

    mutating func typed(_ key: EntityKey, _ scalars: [Unicode.Scalar]) {
        lengths[key, default: 0] += scalars.count
        if !Model.isMixed(key) { texts[key, default: TypedText()].type(scalars) }
    }

    /// The object whose text older clients type into, too. They find their edits by comparing texts that were patched
    /// by search, and may so delete what others typed: what is there at the end is not for us to say.
    static func isMixed(_ key: EntityKey) -> Bool { key.text.utf8.elementsEqual("mixed".utf8) }

    mutating func count(_ step: Int64) { sum = sum.map { $0 + step } }

    mutating func deleted(_ key: EntityKey, _ scalars: ArraySlice<Unicode.Scalar>) {
        texts[key, default: TypedText()].delete(scalars)
    }

    /// Any other object an app may make of this one.
    mutating func scribbled(_ object: JSONObject, _ random: inout SimulationRandom) -> JSONObject {
        var next = object
        switch random.below(9) {
        case 0: next["n"] = .number(JSONNumber(Int64(random.below(5))))
        case 1:
            next["o"] = .object([
                "a": .number(JSONNumber(Int64(random.below(3)))),
                "b\(random.below(3))": .string("\(mark)\(random.below(9))"),
            ])
        case 2: next["l"] = .array((0..<random.below(4)).map { .number(JSONNumber(Int64($0 + random.below(3)))) })
        case 3: next["t"] = nil
        case 4: next["t"] = .string("\(mark)text \(random.below(1_000)) 🙂é")
        case 5:
            let text: [UInt16] = Array((next["t"]?.stringValue ?? "").utf16)
            next["t"] = .string(String(decoding: text.dropLast(random.below(max(1, text.count))), as: UTF16.self))
        case 6: next["n"] = nil
        case 7: next["tags"] = .array((0..<random.below(3)).map { .string("\(mark)tag\($0 + random.below(4))") })
        default:
            let marker = markers.next().map { String(Character($0)) } ?? ""
            next["t"] = .string((next["t"]?.stringValue ?? "") + marker)
        }
        return next
    }

    // MARK: - After a restore

    /// Of a sealed bucket.
    mutating func restoredSealed() {
        for key in texts.keys { texts[key]?.restoredSealed() }
        sum = nil
    }

    /// The server goes on from an older state: `texts` are those of its backup, and `own` what was typed and is not
    /// confirmed yet at the clients that typed it. These must be there at the end; of everything else a client may
    /// bring it back with its own edits or not. Objects in `shown` stand at a client and come back
    /// (docs/decisions/0083).
    mutating func restored(
        to backup: [EntityKey: String], own: [EntityKey: Set<UInt32>], shown: Set<EntityKey>, sum: Int64?
    ) {
        for key in texts.keys.sorted() {
            guard let text = backup[key] else {
                // A client that has the object sends it again, and of two that do the later wins.
                texts[key]?.abandon()
                if shown.contains(key) { texts[key]?.stand() }
                continue
            }
            texts[key]?.restored(to: Set(text.unicodeScalars.map(\.value)).union(own[key] ?? []))
        }
        if self.sum != nil { self.sum = sum }
    }
}
