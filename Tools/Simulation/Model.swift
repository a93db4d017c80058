import ThicketProtocol

/// What people did, and what of it must exist at the end.
struct Model {
    var markers: MarkerSource
    /// Contained in every string that is not a typed text: marks the account.
    let mark: String
    private(set) var texts = [EntityKey: TypedText]()
    /// The sum of all increments; nil: not known any more.
    var sum: Int64? = 0

    /// Characters typed per object, whatever happened to them later.
    private var lengths = [EntityKey: Int]()
    /// At four bytes a character this stays under `Scenario.shard.documentBytesMax`: edits of a full text are refused,
    /// and the last typed characters then correctly stay with their author. The object `big` covers that case.
    private static let charactersMax = 5_500

    init(account: Int) {
        markers = MarkerSource(account: account)
        mark = MarkerSource.mark(of: account)
    }

    /// Whether one object can hold everything that was typed into this text and one character more.
    func hasRoom(_ key: EntityKey) -> Bool { lengths[key] ?? 0 < Model.charactersMax }

    mutating func typed(_ key: EntityKey, _ scalars: [Unicode.Scalar]) {
        lengths[key, default: 0] += scalars.count
        if !Model.isMixed(key) { texts[key, default: TypedText()].type(scalars) }
    }

    /// The object into whose text older clients type, too. They find their edits by comparing texts that were patched
    /// by search, and may so delete what others typed: its final content is not checked.
    static func isMixed(_ key: EntityKey) -> Bool { key.text.utf8.elementsEqual("mixed".utf8) }

    mutating func count(_ step: Int64) { sum = sum.map { $0 + step } }

    mutating func deleted(_ key: EntityKey, _ scalars: ArraySlice<Unicode.Scalar>) {
        texts[key, default: TypedText()].delete(scalars)
    }

    /// A random other object that an app may make of this one.
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

    /// For a sealed bucket.
    mutating func restoredSealed() {
        for key in texts.keys { texts[key]?.restoredSealed() }
        sum = nil
    }

    /// The server continues from an older state: `texts` are those of its backup, and `own` the typed characters that
    /// are not acknowledged yet at the clients that typed them. These must exist at the end; of everything else a
    /// client may or may not bring it back with its own edits. Objects in `shown` exist at a client and come back
    /// (docs/decisions/0083).
    mutating func restored(
        to backup: [EntityKey: String], own: [EntityKey: Set<UInt32>], shown: Set<EntityKey>, sum: Int64?
    ) {
        for key in texts.keys.sorted() {
            guard let text = backup[key] else {
                // A client that has the object sends it again; of two such clients the later one wins.
                texts[key]?.abandon()
                if shown.contains(key) { texts[key]?.stand() }
                continue
            }
            texts[key]?.restored(to: Set(text.unicodeScalars.map(\.value)).union(own[key] ?? []))
        }
        if self.sum != nil { self.sum = sum }
    }
}
