import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// Between a test that writes the wire of an open bucket by hand and a machine that holds a sealed one.
///
/// What the test has the server say becomes what the server of a sealed bucket says (here); what the machine sends is opened and
/// shown to the test as the open change that it stands for (`shown`). Positions, ccids of the machine, and versions stay as the
/// test wrote them, but for removals (`ServedObject`). What others did is sealed by another device, which is honest: its operations
/// stand on what is there.
///
/// It looks on besides: an acknowledgement must give the object that the test says, a change that is sent again must be the same
/// sealed bytes, an operation must stand on the version that it names, and nothing may be sent in clear.
///
/// One reference type for all machines that a test starts on one store: the server outlives them.
final class SealedScript {
    struct Place: Hashable {
        let name: String
        let version: Version
    }

    let keys: SealedBucketKeys
    /// All others: smaller than the machine's device, so that of two insertions at one place theirs comes first.
    var others: AuthorID = AuthorID(rawValue: 1)
    private var random: SeededRandom
    var served: [String: ServedObject] = [:]
    /// The apps' keys, by the server's.
    var names: [EntityKey: String] = [:]
    /// What the machine has sent, by ccid.
    var sent: [String: SentChange] = [:]
    /// Changes that were told, as the test wrote them and as they were told.
    private var told: [Place: (script: AppliedChange, wire: [AppliedChange])] = [:]
    /// What the server says by itself: the second half of a removal.
    private var answers: [[UInt8]] = []

    init(seed: UInt64) throws {
        keys = try Simulation.keys()
        random = SeededRandom(seed: seed ^ 0x5EA1ED)
    }

    // MARK: - Objects

    func object(_ name: String) -> ServedObject {
        if let known: ServedObject = served[name] { return known }
        do {
            let made: ServedObject = try ServedObject(name, keys)
            (served[name], names[made.key]) = (made, name)
            return made
        } catch { preconditionFailure("\(name) is no key: \(error)") }
    }

    func change<Result>(_ name: String, _ body: (inout ServedObject, inout SeededRandom) throws -> Result) rethrows
        -> Result
    {
        var object: ServedObject = object(name)
        defer { served[name] = object }
        return try body(&object, &random)
    }

    /// The server holds this, and nobody has told the machine.
    func holds(_ name: String, _ version: Version, _ value: JSONObject) throws {
        try change(name) { object, random in
            if let state: ServedObject.State = object.states[version] {
                #expect(state.object == value, "the script tells two things of \(name) at \(version)")
            } else if version > object.newest, object.current?.object != nil {
                try object.lead(to: value, at: version, by: others, &random)
            } else {
                object.make(value, at: version, &random)
            }
        }
    }

    /// The server receives what the machine has sent, and does not answer.
    func receives(_ ccid: String) throws {
        guard let mine: SentChange = sent[ccid] else { throw NotAnObject() }
        try change(mine.name) { object, _ in try object.receive(mine, at: object.newest + 1) }
    }

    // MARK: - What the server says

    /// What the server of a sealed bucket says, where that of an open one says `text`.
    func said(_ text: [UInt8]) -> [UInt8] {
        guard let message: ServerMessage = try? ServerMessage(parsing: text), case .channel(0, let reply) = message
        else { return text }
        do {
            return try said(reply).map { ServerMessage.channel(0, $0).encoded() } ?? text
        } catch {
            Issue.record("this cannot be said in a sealed bucket: \(String(decoding: text, as: UTF8.self)): \(error)")
            return text
        }
    }

    /// - Returns: nil for what is the same in both kinds.
    private func said(_ reply: ServerReply) throws -> ServerReply? {
        switch reply {
        case .index(var page):
            page.entries = try page.entries.map { entry in
                let (key, version, data): (EntityKey, Version, JSONFragment?) = try shown(
                    entry.key.text, entry.version, entry.data)
                return IndexPage.Entry(key: key, version: version, data: data)
            }
            return .index(page)
        case .entity(let reply):
            let (key, version, data): (EntityKey, Version, JSONFragment?) = try shown(
                reply.key, reply.version, reply.data)
            return .entity(EntityReply(key: key.text, version: version, data: data))
        case .changes(let events): return .changes(try events.flatMap(said))
        default: return nil
        }
    }

    /// A state of an object. What is none is left as it is.
    private func shown(
        _ name: String, _ version: Version, _ data: JSONFragment?
    ) throws -> (key: EntityKey, version: Version, data: JSONFragment?) {
        guard let value: JSONObject = data?.object else {
            let object: ServedObject = object(name)
            return (object.key, object.wire(version), data)
        }
        try holds(name, version, value)
        let object: ServedObject = object(name)
        let held: JSONObject? = object.states[version]?.entity?.object
        return (object.key, object.wire(version), held.map { .value(.object($0)) })
    }

    private func said(_ event: ChangeEvent) throws -> [ChangeEvent] {
        switch event {
        case .refused(var refusal):
            refusal.key = object(refusal.key).key.text
            return [.refused(refusal)]
        case .applied(let change):
            let place: Place = Place(name: change.key.text, version: change.ev)
            if let known: (script: AppliedChange, wire: [AppliedChange]) = told[place] {
                #expect(known.script == change, "the script tells two changes of one version")
                return known.wire.map { .applied($0) }
            }
            let wire: [AppliedChange] = try said(change)
            told[place] = (script: change, wire: wire)
            return wire.map { .applied($0) }
        }
    }

    private func said(_ script: AppliedChange) throws -> [AppliedChange] {
        let mine: SentChange? = script.ccids.lazy.compactMap { self.sent[$0] }.first
        let isMachines: Bool = script.ccids.contains { $0.utf8.count == 32 }
        #expect(mine != nil || !isMachines, "the machine has not sent this")
        return try change(script.key.text) { object, random in
            let source: Version = object.newest
            if script.operation == .remove { object.recordRemoval(at: script.ev) }
            var wire: AppliedChange = script
            (wire.key, wire.ev) = (object.key, object.wire(script.ev))
            wire.sv = script.sv.map(object.wire)
            if let mine { return try acknowledged(mine, script, wire, &object, source) }
            let id: [UInt8] = Array(
                (Array((script.ccids.first ?? "").utf8) + Array(repeating: 0, count: 16)).prefix(16))
            wire.ccids = [Hex.encode(id)]
            guard script.operation == .modify else {
                let verdict: SealedLog.Verdict = try object.write(
                    nil, by: others, on: source, at: script.ev, id: id, &random)
                #expect(verdict.isTaken)
                let tombstone: AppliedChange = try Self.tombstone(wire, object, source)
                object.remove(at: script.ev)
                wire.ccids = [Hex.encode(random.bytes(16))]
                return [tombstone, wire]
            }
            let diff: ObjectDiff = try ObjectDiff(script.diff?.value ?? .null)
            guard let base: Version = script.sv else {
                object.make(try JSONDiff.apply(diff, to: JSONObject()), at: script.ev, &random)
                let snapshot: String = object.states[script.ev]?.entity?.snapshots[0] ?? ""
                wire.diff = .value(SealedEntity.creation(snapshot).json)
                return [wire]
            }
            guard let known: JSONObject = object.states[base]?.object,
                let next: JSONObject = try? JSONDiff.apply(diff, to: known)
            else {
                #expect(object.isLost || object.states[base] != nil, "tell the script first what the server holds")
                // What does not fit what there is does not fit what is sealed either.
                let far: [(index: Int, operation: ThicketProtocol.Operation)] = [(index: 1_000_000, operation: .remove)]
                wire.diff = .value(ObjectDiff([(key: "d", operation: .list(ListDiff(far)))]).json)
                object.isLost = true
                return [wire]
            }
            let verdict: SealedLog.Verdict = try object.write(
                diff, by: others, on: base, at: script.ev, id: id, &random)
            #expect(verdict.isTaken && object.states[script.ev]?.object == next, "\(verdict)")
            wire.diff = .value(SealedEntity.insertion(object.states[script.ev]?.entity?.tail.first ?? "").json)
            return [wire]
        }
    }

    /// The tombstone in front of the removal `wire`.
    private static func tombstone(
        _ wire: AppliedChange, _ object: ServedObject, _ source: Version
    ) throws -> AppliedChange {
        var tombstone: AppliedChange = wire
        (tombstone.operation, tombstone.sv, tombstone.ev) = (.modify, object.wire(source), wire.ev - 1)
        tombstone.cv = try ChangeVersion(wire.cv.text + "-tombstone")
        tombstone.diff = .value(SealedEntity.insertion(object.current?.entity?.tail.first ?? "").json)
        return tombstone
    }

    /// The machine's own change. What it gives has to be what the test says of it.
    private func acknowledged(
        _ mine: SentChange, _ script: AppliedChange, _ wire: AppliedChange, _ object: inout ServedObject,
        _ source: Version
    ) throws -> [AppliedChange] {
        let before: JSONObject? = object.states[source]?.object
        #expect(mine.isRemoval == (script.operation == .remove), "the machine has sent another change")
        try object.receive(mine, at: script.ev)
        var wire: AppliedChange = wire
        switch mine.what {
        case .removal: return [wire]
        case .tombstone: return [try Self.tombstone(wire, object, source)]
        case .creation(let text): wire.diff = .value(SealedEntity.creation(text).json)
        case .operation(let sealed):
            wire.diff = .value(SealedEntity.insertion(Base64.encodeURL(sealed)).json)
        }
        let diff: ObjectDiff = try ObjectDiff(script.diff?.value ?? .null)
        let said: JSONObject = try JSONDiff.apply(diff, to: script.sv == nil ? JSONObject() : before ?? JSONObject())
        let given: JSONObject? = object.states[script.ev]?.object
        #expect(given == said, "the operation gives something else")
        return [wire]
    }

    // MARK: - What the server says by itself

    /// Looks at what the machine sends.
    /// - Returns: what the server answers without being told to by the test: the `-` behind a tombstone is taken.
    func answers(to texts: [[UInt8]]) -> [[UInt8]] {
        for text: [UInt8] in texts { _ = shown(text) }
        defer { answers = [] }
        return answers
    }

    /// The machine removes an object behind its tombstone: for the test, both are one removal.
    func finishRemoval(_ name: String, _ ccid: String) {
        change(name) { object, _ in
            let version: Version = object.newest
            guard var removal: AppliedChange = told[Place(name: name, version: version)]?.script else { return }
            object.remove(at: version)
            (removal.key, removal.ev, removal.ccids) = (object.key, object.wire(version), [ccid])
            answers.append(ServerMessage.channel(0, .changes([.applied(removal)])).encoded())
        }
    }
}
