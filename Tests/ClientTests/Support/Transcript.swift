import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// One machine with a memory store, driven by hand: texts in, texts out. The texts are those of an open bucket; in a
/// sealed one `script` translates between them and the machine.
struct Transcript {
    var machine: SyncMachine
    let kind: BucketKind
    let store: MemoryLocalStore
    /// nil: the bucket is an open one.
    let script: SealedScript?
    var now: Int64 = 1_000
    let notes: BucketName
    /// Alarms of the machine about a server that lies are expected.
    var mayAlarm = false

    /// A machine with the bucket `notes` on channel 0, not yet connected.
    ///
    /// - Parameters:
    ///   - disk: the machine's store in place of `store`, which it wraps.
    ///   - script: of another machine with the same server.
    init(
        _ kind: BucketKind = .open, store: MemoryLocalStore = MemoryLocalStore(replaysSteps: true),
        disk: (any LocalStore)? = nil, script: SealedScript? = nil, seed: UInt64 = 1, renewsToken: Bool = false
    ) throws {
        var options = SyncOptions(app: try AppID("app"), token: "token")
        if renewsToken { (options.renewsToken, options.tokenNumber) = (true, 1) }
        notes = try BucketName("notes")
        (self.kind, self.store) = (kind, store)
        self.script = kind == .open ? nil : try script ?? SealedScript(seed: seed)
        machine = try SyncMachine(options: options, store: disk ?? store, random: SeededRandom(seed: seed))
        _ = try machine.open(notes, keys: kind.keys, now: now)
    }

    /// The program ends, and another one starts with its store.
    func restarted(seed: UInt64 = 2) throws -> Transcript {
        try Transcript(kind, store: store, script: script, seed: seed)
    }

    /// Connects; returns the messages sent.
    mutating func connect() -> [String] {
        let tried = machine.goOnline(now: now)
        return sent(tried) + sent(machine.opened(now: now))
    }

    /// Connects, and gets the bucket to the live state with these objects.
    mutating func live(_ objects: [(key: String, version: Int, json: String)] = []) -> [String] {
        _ = connect()
        let list = objects.map { #"{"id":"\#($0.key)","v":\#($0.version),"d":\#($0.json)}"# }.joined(
            separator: ",")
        let first = hear("0:auth:user@example.com", #"0:i:{"current":"cv1","index":[\#(list)]}"#)
        return first + hear("0:c:[]")
    }

    mutating func hear(_ texts: String...) -> [String] { sent(actions(texts)) }
    mutating func actions(_ texts: [String]) -> [SyncAction] {
        var newest = receive(batch(texts))
        var all = newest
        while let script {
            let answers = script.answers(to: raw(newest))
            guard !answers.isEmpty else { break }
            newest = receive(ServerBatch(answers))
            all += newest
        }
        return all
    }
    mutating func receive(_ batch: ServerBatch) -> [SyncAction] {
        let actions = machine.ahead(of: batch, now: now) + machine.received(batch, now: now)
        guard !mayAlarm else { return actions }
        for case .event(_, .integrity(let report)) in actions { Issue.record("a false alarm: \(report)") }
        return actions
    }
    /// The messages as the machine receives them.
    func batch(_ texts: [String]) -> ServerBatch {
        ServerBatch(texts.map { text in script?.said(Array(text.utf8)) ?? Array(text.utf8) })
    }
    /// Events of the bucket that the texts lead to.
    mutating func events(_ texts: String...) -> [BucketEvent] {
        actions(texts).compactMap { if case .event(_, let event) = $0, event != .caughtUp { event } else { nil } }
    }

    mutating func set(_ key: String, _ json: String) throws -> [String] {
        let object = try object(json)
        return sent(try machine.set(notes, try EntityKey(key), to: object, now: now))
    }
    mutating func remove(_ key: String) throws -> [String] {
        sent(try machine.remove(notes, try EntityKey(key), now: now))
    }
    mutating func type(_ key: String, at place: Int, _ text: String, deleting count: Int = 0) throws -> [String] {
        let key = try EntityKey(key)
        let length = try machine.object(notes, key)?["t"]?.stringValue?.utf16.count ?? 0
        var delta = TextDelta()
        delta.retain(place)
        delta.delete(count)
        delta.insert(Array(text.utf16))
        delta.retain(length - place - count)
        return sent(try machine.edit(notes, key, by: ObjectDiff([(key: "t", operation: .text(delta))]), now: now))
    }

    mutating func local(_ key: String) throws -> String? {
        try machine.object(notes, try EntityKey(key)).map { JSONValue.object($0).serializedText }
    }
    mutating func ghost(_ key: String) throws -> (version: Int64, json: String?) {
        let ghost = try machine.ghost(notes, try EntityKey(key))
        let version: Int64 = script?.object(key).script(ghost.version) ?? ghost.version
        return (version, ghost.object.map { JSONValue.object($0).serializedText })
    }
    /// The object's address in the store.
    func address(_ key: String) throws -> EntityAddress {
        EntityAddress(bucket: notes, key: try machine.wireKey(notes, EntityKey(key)))
    }

    // MARK: - Events at the server of which the machine is not notified

    /// The server holds the object in this version. An open bucket's server sends only the difference; that of a sealed
    /// one needs the whole object to send anything.
    func serverHolds(_ key: String, _ version: Version, _ json: String) throws {
        try script?.holds(key, version, try object(json))
    }
    /// The server has accepted a change that was sent: a sealed bucket's objects contain it from then on.
    func serverTakes(_ change: String) throws { try script?.receives(ccid(change)) }

    // MARK: - Messages sent

    func sent(_ actions: [SyncAction]) -> [String] {
        raw(actions).compactMap { bytes in
            guard let script else { return String(decoding: bytes, as: UTF8.self) }
            return script.shown(bytes)
        }
    }
    private func raw(_ actions: [SyncAction]) -> [[UInt8]] {
        actions.compactMap { if case .send(let bytes) = $0 { bytes } else { nil } }
    }
    /// The change when it is sent again: in an open bucket the same bytes; in a sealed one the same sealed bytes, on
    /// the version that is known now.
    func again(_ change: String, on version: Int) -> String {
        guard kind == .sealed, let place = change.range(of: "\"sv\":") else { return change }
        return "\(change[..<place])\(version)\(change[place...].drop { $0.isNumber })"
    }
}

struct NotAnObject: Error {}

/// Parses the object that a test wrote.
func object(_ json: String) throws -> JSONObject {
    guard let object = try JSONValue(parsing: json).objectValue else { throw NotAnObject() }
    return object
}

/// The answer of a server that does not apply a change of the object `a`.
func refusal(_ code: Int, _ id: String) -> String {
    #"0:c:[{"clientid":"me","id":"a","error":\#(code),"ccids":["\#(id)"]}]"#
}

/// The ccid in a sent change.
func ccid(_ text: String?) -> String {
    guard let text, let start = text.range(of: "\"ccid\":\"") else { return "" }
    return String(text[start...].prefix { $0 != "\"" })
}

extension String {
    /// The index after the first `needle`.
    func range(of needle: String) -> String.Index? {
        var place = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(needle) { return index(place, offsetBy: needle.count) }
            place = index(after: place)
        }
        return nil
    }
}
