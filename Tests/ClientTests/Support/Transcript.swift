import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// One machine with a memory store, driven by hand: texts in, texts out.
struct Transcript {
    var machine: SyncMachine
    let store: MemoryLocalStore
    var now: Int64 = 1_000
    let notes: BucketName

    /// A machine with the bucket `notes` on channel 0, not yet connected.
    init(
        store: MemoryLocalStore = MemoryLocalStore(replaysSteps: true), seed: UInt64 = 1, renewsToken: Bool = false
    ) throws {
        var options: SyncOptions = SyncOptions(app: try AppID("app"), token: "token")
        if renewsToken { (options.renewsToken, options.tokenNumber) = (true, 1) }
        notes = try BucketName("notes")
        self.store = store
        machine = try SyncMachine(options: options, store: store, random: SeededRandom(seed: seed))
        _ = try machine.open(notes, now: now)
    }

    /// Connects; returns what was sent.
    mutating func connect() -> [String] {
        let tried: [SyncAction] = machine.goOnline(now: now)
        return sent(tried) + sent(machine.opened(now: now))
    }

    /// Connects, and gets the bucket to the live state with these objects.
    mutating func live(_ objects: [(key: String, version: Int, json: String)] = []) -> [String] {
        _ = connect()
        let list: String = objects.map { #"{"id":"\#($0.key)","v":\#($0.version),"d":\#($0.json)}"# }.joined(
            separator: ",")
        let first: [String] = hear("0:auth:user@example.com", #"0:i:{"current":"cv1","index":[\#(list)]}"#)
        return first + hear("0:c:[]")
    }

    mutating func hear(_ texts: String...) -> [String] { sent(actions(texts)) }
    mutating func actions(_ texts: [String]) -> [SyncAction] {
        let batch: ServerBatch = ServerBatch(texts.map { Array($0.utf8) })
        return machine.ahead(of: batch, now: now) + machine.received(batch, now: now)
    }
    /// Events of the bucket that the texts lead to.
    mutating func events(_ texts: String...) -> [BucketEvent] {
        actions(texts).compactMap { if case .event(_, let event) = $0, event != .caughtUp { event } else { nil } }
    }

    mutating func set(_ key: String, _ json: String) throws -> [String] {
        let object: JSONObject = try object(json)
        return sent(try machine.set(notes, try EntityKey(key), to: object, now: now))
    }
    mutating func remove(_ key: String) throws -> [String] {
        sent(try machine.remove(notes, try EntityKey(key), now: now))
    }
    mutating func type(_ key: String, at place: Int, _ text: String, deleting count: Int = 0) throws -> [String] {
        let key: EntityKey = try EntityKey(key)
        let length: Int = try machine.object(notes, key)?["t"]?.stringValue?.utf16.count ?? 0
        var delta: TextDelta = TextDelta()
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
        let ghost: Ghost = try machine.ghost(notes, try EntityKey(key))
        return (ghost.version, ghost.object.map { JSONValue.object($0).serializedText })
    }

    func sent(_ actions: [SyncAction]) -> [String] {
        actions.compactMap { if case .send(let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { nil } }
    }
}

struct NotAnObject: Error {}

/// The object a test wrote down.
func object(_ json: String) throws -> JSONObject {
    guard let object: JSONObject = try JSONValue(parsing: json).objectValue else { throw NotAnObject() }
    return object
}

/// The ccid in a sent change.
func ccid(_ text: String?) -> String {
    guard let text, let start: String.Index = text.range(of: "\"ccid\":\"") else { return "" }
    return String(text[start...].prefix { $0 != "\"" })
}

extension String {
    /// Where the text behind the first `needle` begins.
    func range(of needle: String) -> String.Index? {
        var place: String.Index = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(needle) { return index(place, offsetBy: needle.count) }
            place = index(after: place)
        }
        return nil
    }
}
