import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// Translates between a test that writes the wire of an open bucket by hand and a machine that holds a sealed one.
///
/// The server's messages that the test writes become those of a sealed bucket's server (here); the machine's messages
/// are opened and shown to the test as the open changes that they represent (`shown`). Positions, ccids of the machine,
/// and versions stay as the test wrote them, except for removals (`ServedObject`). Changes of others are sealed by
/// another device, which is honest: its operations are based on the server's state.
///
/// It also checks: an acknowledgement must give the object that the test states, a change that is sent again must have
/// the same sealed bytes, an operation must be based on the version that it names, and nothing may be sent in the
/// clear.
///
/// One reference type for all machines that a test starts on one store: the server outlives them.
final class SealedScript {
    struct Place: Hashable {
        let name: String
        let version: Version
    }

    let keys: SealedBucketKeys
    /// All others: smaller than the machine's device; of two insertions at one place theirs comes first.
    var others = AuthorID(rawValue: 1)
    private var random: SeededRandom
    var served = [String: ServedObject]()
    /// The apps' keys, by the server's.
    var names = [EntityKey: String]()
    /// Changes that the machine has sent, by ccid.
    var sent = [String: SentChange]()
    /// Changes that were delivered, as the test wrote them and as they went over the wire.
    private var reported = [Place: (script: AppliedChange, wire: [AppliedChange])]()
    /// The server's messages on its own: the second half of a removal.
    private var answers = [[UInt8]]()

    init(seed: UInt64) throws {
        keys = try Simulation.keys()
        random = SeededRandom(seed: seed ^ 0x5EA1ED)
    }

    // MARK: - Objects

    func object(_ name: String) -> ServedObject {
        if let known = served[name] { return known }
        do {
            let made = try ServedObject(name, keys)
            (served[name], names[made.key]) = (made, name)
            return made
        } catch { preconditionFailure("\(name) is no key: \(error)") }
    }

    func change<Result>(_ name: String, _ body: (inout ServedObject, inout SeededRandom) throws -> Result) rethrows
        -> Result
    {
        var object = object(name)
        defer { served[name] = object }
        return try body(&object, &random)
    }

    /// The server holds this object, and the machine is not notified.
    func holds(_ name: String, _ version: Version, _ value: JSONObject) throws {
        try change(name) { object, random in
            if let state = object.states[version] {
                #expect(state.object == value, "the script states two values of \(name) at \(version)")
            } else if version > object.newest, object.current?.object != nil {
                try object.lead(to: value, at: version, by: others, &random)
            } else {
                object.make(value, at: version, &random)
            }
        }
    }

    /// The server receives the change that the machine has sent, and does not answer.
    func receives(_ ccid: String) throws {
        guard let mine = sent[ccid] else { throw NotAnObject() }
        try change(mine.name) { object, _ in try object.receive(mine, at: object.newest + 1) }
    }

    // MARK: - Messages of the server

    /// The message of a sealed bucket's server where that of an open one sends `text`.
    func said(_ text: [UInt8]) -> [UInt8] {
        guard let message = try? ServerMessage(parsing: text), case .channel(0, let reply) = message
        else { return text }
        do {
            return try said(reply).map { ServerMessage.channel(0, $0).encoded() } ?? text
        } catch {
            Issue.record("this cannot be said in a sealed bucket: \(String(decoding: text, as: UTF8.self)): \(error)")
            return text
        }
    }

    /// - Returns: nil for a message that is the same in both kinds.
    private func said(_ reply: ServerReply) throws -> ServerReply? {
        switch reply {
        case .index(var page):
            page.entries = try page.entries.map { entry in
                let (key, version, data) = try shown(
                    entry.key.text, entry.version, entry.data)
                return IndexPage.Entry(key: key, version: version, data: data)
            }
            return .index(page)
        case .entity(let reply):
            let (key, version, data) = try shown(
                reply.key, reply.version, reply.data)
            return .entity(EntityReply(key: key.text, version: version, data: data))
        case .changes(let events): return .changes(try events.flatMap(said))
        default: return nil
        }
    }

    /// A state of an object. Data that is not an object is left as it is.
    private func shown(
        _ name: String, _ version: Version, _ data: JSONFragment?
    ) throws -> (key: EntityKey, version: Version, data: JSONFragment?) {
        guard let value = data?.object else {
            let object = object(name)
            return (object.key, object.wire(version), data)
        }
        try holds(name, version, value)
        let object = object(name)
        let held = object.states[version]?.entity?.object
        return (object.key, object.wire(version), held.map { .value(.object($0)) })
    }

    private func said(_ event: ChangeEvent) throws -> [ChangeEvent] {
        switch event {
        case .refused(var refusal):
            refusal.key = object(refusal.key).key.text
            return [.refused(refusal)]
        case .applied(let change):
            let place = Place(name: change.key.text, version: change.ev)
            if let known = reported[place] {
                #expect(known.script == change, "the script states two changes of one version")
                return known.wire.map { .applied($0) }
            }
            let wire = try said(change)
            reported[place] = (script: change, wire: wire)
            return wire.map { .applied($0) }
        }
    }

    private func said(_ script: AppliedChange) throws -> [AppliedChange] {
        let mine = script.ccids.lazy.compactMap { self.sent[$0] }.first
        let isMachines = script.ccids.contains { $0.utf8.count == 32 }
        #expect(mine != nil || !isMachines, "the machine has not sent this")
        return try change(script.key.text) { object, random in
            let source = object.newest
            if script.operation == .remove { object.recordRemoval(at: script.ev) }
            var wire = script
            (wire.key, wire.ev) = (object.key, object.wire(script.ev))
            wire.sv = script.sv.map(object.wire)
            if let mine { return try acknowledged(mine, script, wire, &object, source) }
            let id: [UInt8] = Array(
                (Array((script.ccids.first ?? "").utf8) + Array(repeating: 0, count: 16)).prefix(16))
            wire.ccids = [Hex.encode(id)]
            guard script.operation == .modify else {
                let verdict = try object.write(
                    nil, by: others, on: source, at: script.ev, id: id, &random)
                #expect(verdict.isAppended)
                let tombstone = try Self.tombstone(wire, object, source)
                object.remove(at: script.ev)
                wire.ccids = [Hex.encode(random.bytes(16))]
                return [tombstone, wire]
            }
            let diff = try ObjectDiff(script.diff?.value ?? .null)
            guard let base = script.sv else {
                object.make(try JSONDiff.apply(diff, to: JSONObject()), at: script.ev, &random)
                let snapshot = object.states[script.ev]?.entity?.snapshots[0] ?? ""
                wire.diff = .value(SealedEntity.creation(snapshot).json)
                return [wire]
            }
            guard let known = object.states[base]?.object,
                let next = try? JSONDiff.apply(diff, to: known)
            else {
                #expect(object.isLost || object.states[base] != nil, "state first what the server holds")
                // A diff that does not fit the open state must not fit the sealed one either.
                let far: [(index: Int, operation: ThicketProtocol.Operation)] = [(index: 1_000_000, operation: .remove)]
                wire.diff = .value(ObjectDiff([(key: "d", operation: .list(ListDiff(far)))]).json)
                object.isLost = true
                return [wire]
            }
            let verdict = try object.write(
                diff, by: others, on: base, at: script.ev, id: id, &random)
            #expect(verdict.isAppended && object.states[script.ev]?.object == next, "\(verdict)")
            wire.diff = .value(SealedEntity.insertion(object.states[script.ev]?.entity?.tail.first ?? "").json)
            return [wire]
        }
    }

    /// The tombstone before the removal `wire`.
    private static func tombstone(
        _ wire: AppliedChange, _ object: ServedObject, _ source: Version
    ) throws -> AppliedChange {
        var tombstone = wire
        (tombstone.operation, tombstone.sv, tombstone.ev) = (.modify, object.wire(source), wire.ev - 1)
        tombstone.cv = try ChangeVersion(wire.cv.text + "-tombstone")
        tombstone.diff = .value(SealedEntity.insertion(object.current?.entity?.tail.first ?? "").json)
        return tombstone
    }

    /// The machine's own change. Its result has to be what the test states.
    private func acknowledged(
        _ mine: SentChange, _ script: AppliedChange, _ wire: AppliedChange, _ object: inout ServedObject,
        _ source: Version
    ) throws -> [AppliedChange] {
        let before = object.states[source]?.object
        #expect(mine.isRemoval == (script.operation == .remove), "the machine has sent another change")
        try object.receive(mine, at: script.ev)
        var wire = wire
        switch mine.what {
        case .removal: return [wire]
        case .tombstone: return [try Self.tombstone(wire, object, source)]
        case .creation(let text): wire.diff = .value(SealedEntity.creation(text).json)
        case .operation(let sealed):
            wire.diff = .value(SealedEntity.insertion(Base64.encodeURL(sealed)).json)
        }
        let diff = try ObjectDiff(script.diff?.value ?? .null)
        let said = try JSONDiff.apply(diff, to: script.sv == nil ? JSONObject() : before ?? JSONObject())
        let given = object.states[script.ev]?.object
        #expect(given == said, "the operation gives something else")
        return [wire]
    }

    // MARK: - Messages of the server on its own

    /// Checks the machine's messages.
    /// - Returns: the server's answers that the test does not write: the `-` after a tombstone is accepted.
    func answers(to texts: [[UInt8]]) -> [[UInt8]] {
        for text in texts { _ = shown(text) }
        defer { answers = [] }
        return answers
    }

    /// The machine removes an object after its tombstone: for the test, both are one removal.
    func finishRemoval(_ name: String, _ ccid: String) {
        change(name) { object, _ in
            let version = object.newest
            guard var removal = reported[Place(name: name, version: version)]?.script else { return }
            object.remove(at: version)
            (removal.key, removal.ev, removal.ccids) = (object.key, object.wire(version), [ccid])
            answers.append(ServerMessage.channel(0, .changes([.applied(removal)])).encoded())
        }
    }
}
