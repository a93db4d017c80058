import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// Several machines and one model server over a network that loses connections, with crashes of the clients.
struct Simulation {
    struct Client {
        var machine: SyncMachine
        let store: MemoryLocalStore
        /// A reader follows the events; otherwise events of objects are not made.
        let hasReader: Bool
        /// nil: not connected.
        var connection: Int?
        var isConnecting = false
        var up = [[UInt8]]()
        var down = [[UInt8]]()
        /// The objects as a reader that only follows the events shows them, by key.
        var shown = [String: JSONObject]()
    }

    var server = ModelServer()
    var clients = [Client]()
    var random: SeededRandom
    var now: Int64 = 0
    var connections = 0
    /// Messages of dead connections that the server will still receive.
    var late = [(connection: Int, text: [UInt8])]()
    let bucket: BucketName
    /// Every typed text: each must be in its object exactly once at the end, if nothing is ever deleted.
    var typed = [String: [String]]()
    private var typedCount = 0
    var problems = [String]()
    /// Of a sealed bucket.
    let keys: SealedBucketKeys?
    /// The server may lose its log: not in a sealed bucket where objects are removed, whose devices then cannot tell an
    /// honest removal from a hidden object.
    var mayForget = true
    /// Alarms of sealed objects; an honest server causes none.
    var alarms = [IntegrityReport]()
    /// Conflicts, as they were reported.
    var conflicts = [ConflictReport]()
    /// No event is delivered, as if each program ended before it.
    var isDeaf = false

    init(clients count: Int, seed: UInt64, isSealed: Bool = false) throws {
        random = SeededRandom(seed: seed)
        keys = isSealed ? try Self.keys() : nil
        if isSealed { server.sealedBuckets = ["notes"] }
        server.partChanges = seed % 2 == 0 ? .max : 2
        bucket = try BucketName("notes")
        for index in 0..<count { try addClient(seed: seed &* 31 &+ UInt64(index), hasReader: index % 2 == 0) }
    }

    private mutating func addClient(seed: UInt64, hasReader: Bool) throws {
        let store = MemoryLocalStore(replaysSteps: true)
        let machine = try Self.machine(store, seed, hasReader: hasReader)
        clients.append(Client(machine: machine, store: store, hasReader: hasReader))
        _ = try clients[clients.count - 1].machine.open(bucket, keys: keys, now: now)
    }

    /// A device with an empty store.
    /// - Returns: its index.
    mutating func addClient(hasReader: Bool) throws -> Int {
        try addClient(seed: random.next(), hasReader: hasReader)
        return clients.count - 1
    }

    mutating func goOnline(_ index: Int) { perform(index, clients[index].machine.goOnline(now: now)) }

    /// Of the bucket `notes`.
    static func keys() throws -> SealedBucketKeys {
        let secret = SecureBytes(copying: Array(repeating: 7, count: 32))
        return try SealedBucketKeys(owner: "user@example.com", app: "app", bucket: "notes", secrets: [0: secret])
    }

    func hasOnServer(_ key: String) -> Bool {
        server.buckets[bucket.text]?.entities[keys?.serverKey(of: key) ?? key]?.object != nil
    }

    /// The server's objects as apps know them, with their versions.
    func truth() throws -> [String: (object: JSONObject, version: Version)] {
        var truth = [String: (object: JSONObject, version: Version)]()
        for (key, entity) in server.buckets[bucket.text]?.entities ?? [:] {
            guard let object = entity.object else { continue }
            guard let keys else {
                truth[key] = (object, entity.version)
                continue
            }
            let (sealed, events) = try SealedObject.open(
                try SealedEntity(object), author: AuthorID(rawValue: 0), place: keys.place(serverKey: key),
                with: try keys.sealer(serverKey: key))
            for case .integrity(let wrong) in events where wrong.needsChoice { throw wrong }
            let isOurs = sealed.log.appKey != SealedHeads.appKey
            if let clear = sealed.log.object, isOurs { truth[sealed.log.appKey] = (clear, entity.version) }
        }
        return truth
    }

    private static func machine(
        _ store: MemoryLocalStore, _ seed: UInt64, hasReader: Bool
    ) throws -> SyncMachine {
        let options = SyncOptions(app: try AppID("app"), token: "token")
        var machine = try SyncMachine(
            options: options, store: store, random: SeededRandom(seed: seed))
        machine.bucketsWithReaders = hasReader ? nil : []
        return machine
    }

    mutating func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    // MARK: - Network

    mutating func perform(_ index: Int, _ actions: [SyncAction]) {
        for action in actions {
            switch action {
            case .connect:
                drop(index)
                clients[index].isConnecting = true
            case .disconnect: drop(index)
            case .send(let text): clients[index].up.append(text)
            case .event(_, let event): if !isDeaf { follow(index, event) }
            case .status, .fetched, .removals, .tokenEnded, .tokenGood: break
            }
        }
    }

    /// A reader applies the differences of events, and must get the objects that the machine holds.
    private mutating func follow(_ index: Int, _ event: BucketEvent) {
        switch event {
        case .changed(let change):
            let before = clients[index].shown[change.key] ?? JSONObject()
            let after = try? JSONDiff.apply(change.diff, to: before)
            if after != change.object {
                problems.append("client \(index): the told difference does not lead to the object")
            }
            clients[index].shown[change.key] = change.object
        case .removed(let removal): clients[index].shown[removal.key] = nil
        case .integrity(let report): alarms.append(report)
        case .conflict(let report): conflicts.append(report)
        case .refused, .unavailable, .caughtUp, .overrun: break
        }
    }

    /// The connection ends: messages in flight down are lost, those in flight up may still arrive.
    private mutating func drop(_ index: Int) {
        if let connection = clients[index].connection {
            for text in clients[index].up where chance(50) {
                late.append((connection, text))
            }
            if late.isEmpty || chance(50) { server.disconnect(connection) }
        }
        clients[index].connection = nil
        clients[index].isConnecting = false
        clients[index].up = []
        clients[index].down = []
    }

    mutating func cut(_ index: Int) {
        guard clients[index].connection != nil || clients[index].isConnecting else { return }
        drop(index)
        perform(index, clients[index].machine.closed(LinkClosure(detail: "cut"), now: now))
    }

    private mutating func accept(_ index: Int) {
        connections += 1
        clients[index].connection = connections
        clients[index].isConnecting = false
        perform(index, clients[index].machine.opened(now: now))
    }

    private mutating func carryUp(_ index: Int) {
        guard let connection = clients[index].connection, !clients[index].up.isEmpty else { return }
        serve(connection, clients[index].up.removeFirst())
    }

    /// The server reads a message, sent now or long ago.
    mutating func serve(_ connection: Int, _ text: [UInt8]) {
        for (target, answer) in server.receive(text, from: connection) {
            guard let receiver = clients.firstIndex(where: { $0.connection == target }) else { continue }
            clients[receiver].down.append(answer)
        }
    }

    private mutating func carryDown(_ index: Int) {
        guard !clients[index].down.isEmpty else { return }
        let count = 1 + below(min(3, clients[index].down.count))
        let texts = Array(clients[index].down.prefix(count))
        clients[index].down.removeFirst(texts.count)
        let batch = ServerBatch(texts)
        if chance(80) { perform(index, clients[index].machine.ahead(of: batch, now: now)) }
        perform(index, clients[index].machine.received(batch, now: now))
    }

    // MARK: - Steps

    /// One random event.
    mutating func step(edits: (inout Simulation, Int) throws -> Void) throws {
        now += Int64(below(200))
        let index = below(clients.count)
        switch below(100) {
        case 0..<25: carryUp(index)
        case 25..<55: carryDown(index)
        case 55..<75: try edits(&self, index)
        case 75..<85: perform(index, clients[index].machine.tick(now: now))
        case 85..<92: if clients[index].isConnecting { accept(index) }
        case 92..<94: cut(index)
        case 94: try crash(index)
        case 95: clients[index].store.failsNextCommit = true
        case 96:
            if !late.isEmpty {
                let one = late.remove(at: below(late.count))
                serve(one.connection, one.text)
            }
        case 97: if chance(20), mayForget { server.forgetLog(bucket.text) }
        case 98: server.refusal = chance(30) ? [500, 503].randomElement(using: &random) : nil
        default: perform(index, clients[index].machine.goOnline(now: now))
        }
    }

    /// The program crashes and starts again with its store.
    mutating func crash(_ index: Int) throws {
        drop(index)
        clients[index].store.failsNextCommit = false
        clients[index].machine = try Self.machine(
            clients[index].store, random.next(), hasReader: clients[index].hasReader)
        if let keys { _ = try clients[index].machine.open(bucket, keys: keys, now: now) }
        resync(index)
    }

    private mutating func resync(_ index: Int) {
        clients[index].shown = [:]
        for key in (try? clients[index].machine.keys(bucket, after: nil, limit: 1_000)) ?? [] {
            clients[index].shown[key.text] = try? clients[index].machine.object(bucket, key)
        }
    }

    /// All faults end and all clients settle. False: a client does not.
    ///
    /// - Parameter only: the only client that moves or is waited for.
    mutating func settle(rounds: Int = 20_000, only: Int? = nil) -> Bool {
        let moving: [Int] = only.map { [$0] } ?? Array(clients.indices)
        server.refusal = nil
        for one in late { serve(one.connection, one.text) }
        late = []
        for index in clients.indices { clients[index].store.failsNextCommit = false }
        for _ in 0..<rounds {
            now += 50
            for index in moving {
                if clients[index].isConnecting { accept(index) }
                while clients[index].connection != nil, !clients[index].up.isEmpty { carryUp(index) }
                while !clients[index].down.isEmpty { carryDown(index) }
                perform(index, clients[index].machine.tick(now: now))
            }
            let isQuiet = moving.allSatisfy { index in
                let client = clients[index]
                return client.machine.isSynced(bucket) && client.up.isEmpty && client.down.isEmpty
            }
            if isQuiet { return true }
        }
        return false
    }

    /// A message is damaged in transit: one byte is changed, or the end is missing.
    mutating func damage(_ index: Int) {
        guard !clients[index].down.isEmpty else { return }
        let which = below(clients[index].down.count)
        var text = clients[index].down[which]
        guard !text.isEmpty else { return }
        if chance(20) { text.removeLast(below(text.count)) } else { text[below(text.count)] = UInt8(below(256)) }
        clients[index].down[which] = text
    }

    /// The open work of every client, for the search for a fault.
    var picture: String {
        var lines = [String]()
        for (index, client) in clients.enumerated() where !client.machine.isSynced(bucket) {
            let record = client.store.buckets().first
            lines.append("client \(index): \(client.machine.status), \(record.map { "\($0)" } ?? "")")
            for key in client.store.edited(bucket).map(\.key) {
                let kept = client.store.entity(EntityAddress(bucket: bucket, key: key))
                lines.append("  \(key): ghost \(kept?.ghost.version ?? -1), there: \(kept?.ghost.object != nil)")
                if let edits = kept?.edits {
                    lines.append(
                        "    pending \(edits.pending.map { "\($0.edit as Any) sv \($0.source as Any)" } ?? "-")")
                    lines.append(
                        "    later \(edits.later as Any) held \(edits.held as Any) wanted \(edits.wanted as Any)")
                    lines.append("    sealed \(edits.sealed)")
                    lines.append("    refusal \(edits.refusal as Any) attempts \(edits.attempts) \(edits.sendsWhole)")
                }
            }
        }
        return "\n" + lines.joined(separator: "\n") + "\nserver answered \(server.refusals)"
    }

    // MARK: - Edits

    /// A call of the app; a failing store leaves the retry to the app, and changes nothing.
    mutating func act(_ index: Int, _ body: (inout SyncMachine) throws(ClientError) -> [SyncAction]) throws -> Bool {
        do {
            perform(index, try body(&clients[index].machine))
            return true
        } catch {
            guard error.code == .store else { throw error }
            perform(index, clients[index].machine.tick(now: now))
            resync(index)
            return false
        }
    }

    mutating func insertSomething(_ index: Int, _ key: String) throws {
        typedCount += 1
        // One character that occurs once: no insertion can split it.
        let word = String(UnicodeScalar(UInt16(0x4E00 + typedCount)).map(Character.init) ?? "?")
        let name = try EntityKey(key)
        let (bucket, now) = (bucket, now)
        let text = try clients[index].machine.object(bucket, name)?["t"]?.stringValue
        let units: [UInt16] = Array((text ?? "").utf16)
        let length = units.count
        var place = below(length + 1)
        if place < length, (0xDC00...0xDFFF).contains(units[place]) { place -= 1 }
        let isDone = try act(index) { (machine) throws(ClientError) in
            guard text != nil else { return try machine.set(bucket, name, to: ["t": .string(word)], now: now) }
            var delta = TextDelta()
            delta.retain(place)
            delta.insert(Array(word.utf16))
            delta.retain(length - place)
            return try machine.edit(bucket, name, by: ObjectDiff([(key: "t", operation: .text(delta))]), now: now)
        }
        if isDone { typed[key, default: []].append(word) }
    }

    /// Any edit that an app may make.
    mutating func editAnything(_ index: Int, _ key: String) throws {
        let name = try EntityKey(key)
        let (bucket, now) = (bucket, now)
        var object = try clients[index].machine.object(bucket, name) ?? JSONObject()
        switch below(12) {
        case 0:
            _ = try act(index) { (machine) throws(ClientError) in try machine.remove(bucket, name, now: now) }
            return
        case 1...5: return try insertSomething(index, key)
        case 6: object["n"] = .number(JSONNumber(Int64(below(5))))
        case 7:
            object["o"] = .object(["a": .number(JSONNumber(Int64(below(3)))), "b\(below(3))": .string("\(below(9))")])
        case 8: object["l"] = .array((0..<below(4)).map { .number(JSONNumber(Int64($0 + below(3)))) })
        case 9: object["t"] = below(2) == 0 ? nil : .string("text \(below(1_000)) 🙂é")
        case 10:
            let text: [UInt16] = Array((object["t"]?.stringValue ?? "").utf16)
            object["t"] = .string(String(decoding: text.dropLast(below(max(1, text.count))), as: UTF16.self))
        default: object["n"] = nil
        }
        _ = try act(index) { [object] (machine) throws(ClientError) in
            try machine.set(bucket, name, to: object, now: now)
        }
    }
}
