import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Several clients edit one bucket at once, each from its own, late copy, over a store that fails and crashes.
@Suite("ShardCore with several clients")
struct ShardModelTests {
    @Test("all copies converge, no insertion is lost, no change is applied twice", arguments: 0..<30)
    func converges(_ seed: Int) throws {
        var world = try ShardWorld(seed: UInt64(seed), faults: .none)
        try world.run(steps: 250)
        try world.check()
    }

    @Test("all copies converge over failed commits and crashed processes", arguments: 0..<40)
    func convergesOverFaults(_ seed: Int) throws {
        var world = try ShardWorld(seed: 1_000 + UInt64(seed), faults: .some)
        try world.run(steps: 250)
        try world.check()
    }

    @Test("all copies converge with nothing kept in memory", arguments: 0..<20)
    func convergesCold(_ seed: Int) throws {
        var world = try ShardWorld(seed: 2_000 + UInt64(seed), faults: .some) {
            $0.entityCacheBytes = 0
            $0.bucketCacheBytes = 0
        }
        try world.run(steps: 150)
        try world.check()
    }

    @Test("all copies converge with little kept in memory and frequent keyframes", arguments: 0..<20)
    func convergesTight(_ seed: Int) throws {
        var world = try ShardWorld(seed: 3_000 + UInt64(seed), faults: .some) {
            $0.recentBytesMax = 200
            $0.recentChangesMax = 5
            if seed % 2 == 0 { $0.entityCacheBytes = 3_000 } else { $0.entityCacheBytesPerUser = 3_000 }
            $0.keyframes.diffsMin = 2
            $0.groupChangesMax = 5
        }
        try world.run(steps: 200)
        try world.check()
    }

    @Test("all copies converge with changes that are deferred while others continue", arguments: 0..<40)
    func convergesElsewhere(_ seed: Int) throws {
        var world = try ShardWorld(seed: 4_000 + UInt64(seed), faults: seed % 2 == 0 ? .none : .some) {
            $0.decidedHereMax = seed % 4 < 2 ? -1 : LateEdit.stepWork
            if seed % 3 == 0 { $0.entityCacheBytes = 3_000 }
            if seed % 5 == 0 { $0.recentBytesMax = 200 }
            $0.keyframes.diffsMin = 2
            $0.groupChangesMax = 5
        }
        try world.run(steps: 250)
        try world.check()
        #expect(world.decidedElsewhere > 0, "seed \(seed)")
    }
}

/// A client's copy of one object.
private struct Copy: Equatable {
    var version: Version
    /// nil when it was removed.
    var value: JSONObject?
}

private struct ModelClient {
    let number: Int
    let library: AuthorLibrary
    var ghosts: [String: Copy] = [:]
    /// Changes of the log it has seen.
    var position = 0
    /// One change in flight per key.
    var inFlight: [String: SubmittedChange] = [:]
    var id: String { "client-\(number)" }
}

private struct ShardWorld {
    enum Faults { case none, some }

    let seed: UInt64
    var random: SeededRandom
    let store: MemoryStore
    let settings: ShardSettings
    let bucket: BucketID
    let calm: FaultSwitch
    var core: ShardCore
    var clients: [ModelClient]
    /// Elements as broadcast, in order.
    var broadcast: [(gid: GlobalID, element: JSONValue)] = []
    var queue: [SubmittedChange] = []
    /// Results of offloaded changes, by client: its later changes wait.
    var elsewhere: [UInt64: DeferredChange.Result] = [:]
    var decidedElsewhere = 0
    /// Characters typed into each shared text; each is typed once.
    var typed: [String: [Character]] = [:]
    var nextCharacter: UInt32 = 0x4E00
    var ccidCount = 0

    init(seed: UInt64, faults: Faults, _ adjust: (inout ShardSettings) -> Void = { _ in }) throws {
        self.seed = seed
        random = SeededRandom(seed: seed)
        let calm = FaultSwitch()
        self.calm = calm
        let plan: FaultPlan = calm.plan
        store = MemoryStore(
            identity: .seeded(seed),
            faults: { point in
                guard faults == .some, plan(point) == .none else { return .none }
                var dice = SeededRandom(seed: seed &* 7_919 &+ UInt64(point.number))
                return switch dice.next() % 100 {
                case 0..<5: .fail(StoreError(.io, "sector"))
                case 5..<8: .fail(StoreError(.constraint, "a bad row"))
                case 8..<10: .crashBefore
                case 10..<12: .crashAfter
                default: .none
                }
            })
        var settings = ShardSettings()
        adjust(&settings)
        self.settings = settings
        bucket = try BucketID(app: AppID("app"), user: UserID("ann"), name: BucketName("notes"))
        core = ShardCore(store: try store.makeWriter(), settings: settings)
        let libraries: [AuthorLibrary] = [.thicket, .other, .nodeSimperium, .thicket]
        clients = libraries.enumerated().map { ModelClient(number: $0, library: $1) }
        for key in ["t1", "t2"] {
            try submit(key, client: 0, v: ["t": ["o": "+", "v": "seed"], "n": ["o": "+", "v": 0]])
            typed[key] = []
        }
        try settleAll()
    }

    // MARK: Running

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            let client: Int = .random(in: clients.indices, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<9: try edit(client)
            case 9..<14: try commit()
            case 14..<18: try read(client, atMost: .random(in: 1...6, using: &random))
            case 18: resend(client)
            default:
                if Int.random(in: 0..<6, using: &random) == 0 { try restart() } else { try commit() }
            }
        }
        try settleAll()
    }

    private mutating func edit(_ client: Int) throws {
        let keys: [String] = ["t1", "t2", "t1", "c1", "r1", "r2"]
        let key: String = keys[Int.random(in: keys.indices, using: &random)]
        guard clients[client].inFlight[key] == nil else { return }
        switch key.utf8.first {
        case UInt8(ascii: "t"): try type(key, client)
        case UInt8(ascii: "c"):
            try submit(key, client: client, v: ["n\(client)": ["o": "+", "v": .string("\(ccidCount)")]])
        default: try makeOrRemove(key, client)
        }
    }

    /// Types one new character somewhere, and counts.
    private mutating func type(_ key: String, _ client: Int) throws {
        guard let copy: Copy = clients[client].ghosts[key], let value: JSONObject = copy.value,
            let text: String = value["t"]?.stringValue
        else { return }
        let character = Character(Unicode.Scalar(nextCharacter) ?? "?")
        nextCharacter += 1
        typed[key, default: []].append(character)
        let place: Int = .random(in: 0...text.utf16.count, using: &random)
        let kept: String = place > 0 ? "=\(place)\t" : ""
        let rest: String = place < text.utf16.count ? "\t=\(text.utf16.count - place)" : ""
        if Int.random(in: 0..<8, using: &random) == 0 {
            var whole: JSONObject = value
            var characters: [Character] = Array(text)
            characters.insert(character, at: place)
            whole["t"] = .string(String(characters))
            try submit(key, client: client, sv: copy.version, d: .object(whole))
        } else {
            try submit(
                key, client: client, sv: copy.version,
                v: ["t": ["o": "d", "v": .string(kept + "+\(character)" + rest)], "n": ["o": "I", "v": 1]])
        }
    }

    private mutating func makeOrRemove(_ key: String, _ client: Int) throws {
        let copy: Copy? = clients[client].ghosts[key]
        if copy?.value != nil, Bool.random(using: &random) {
            try submit(key, client: client, .remove)
        } else if let copy, copy.value != nil {
            try submit(key, client: client, sv: copy.version, v: ["n": ["o": "r", "v": .string("\(ccidCount)")]])
        } else {
            try submit(key, client: client, v: ["n": ["o": "+", "v": .string("\(ccidCount)")]])
        }
    }

    private mutating func submit(
        _ key: String, client: Int, _ operation: ChangeRequest.Operation = .modify, sv: Version? = nil,
        v: JSONValue? = nil, d: JSONValue? = nil
    ) throws {
        ccidCount += 1
        let change = SubmittedChange(
            origin: ChangeOrigin(connection: UInt64(client), channel: 0), bucket: bucket,
            clientID: try ClientID(clients[client].id), library: clients[client].library, canWrite: true,
            request: ChangeRequest(
                key: key, ccid: "ccid-\(ccidCount)", operation: operation, sv: sv, diff: v.map { .value($0) },
                object: d.map { .value($0) }),
            now: Int64(ccidCount))
        clients[client].inFlight[key] = change
        queue.append(change)
    }

    private mutating func resend(_ client: Int) {
        for (_, change) in clients[client].inFlight.sorted(by: { $0.key < $1.key }) { queue.append(change) }
    }

    private mutating func commit() throws {
        while !core.isFull, let request: ShardRequest = nextRequest() {
            guard let long: DeferredChange = core.receive(request) else { continue }
            decidedElsewhere += 1
            let reader: (any StoreReader)? = Int.random(in: 0..<4, using: &random) == 0 ? nil : try store.makeReader()
            elsewhere[long.submitted.origin.connection] = long.decide(reading: reader)
        }
        let outcome: CommitOutcome = core.commit()
        guard !store.isDown else {
            try restart()
            return
        }
        for part in outcome.buckets {
            for event in part.events { try receive(event) }
            if let published: GlobalID = part.published { #expect(published == broadcast.last?.gid) }
        }
    }

    /// A result comes back at some time; until then no later change of its client is received.
    private mutating func nextRequest() -> ShardRequest? {
        let index: Int? = queue.firstIndex { elsewhere[$0.origin.connection] == nil }
        if let client: UInt64 = elsewhere.keys.min(), index == nil || Int.random(in: 0..<4, using: &random) == 0 {
            return elsewhere.removeValue(forKey: client).map { .decided($0) }
        }
        return index.map { .change(queue.remove(at: $0)) }
    }

    private mutating func receive(_ event: ChangeOutcome) throws {
        switch event {
        case .applied(let applied):
            #expect(broadcast.last.map { $0.gid < applied.gid } ?? true, "seed \(seed)")
            broadcast.append((applied.gid, try JSONValue(parsing: applied.element)))
        case .batch: Issue.record("seed \(seed): no batch was sent")
        case .refused(let refused):
            let client = Int(refused.origin.connection)
            guard clients[client].inFlight[refused.key]?.request.ccid == refused.changeIDs.first else { return }
            switch refused.code {
            case .unavailable, .serverError: break
            // Applied: the change itself comes with the log.
            case .duplicateChange: break
            default:
                #expect(refused.key.utf8.first != UInt8(ascii: "t"), "seed \(seed): \(refused.code) \(refused.detail)")
                clients[client].inFlight[refused.key] = nil
            }
        }
    }

    /// The process crashes, or has crashed: changes that were not durable are lost, the others come from the log.
    private mutating func restart() throws {
        store.crash()
        store.restart()
        queue.removeAll()
        elsewhere.removeAll()
        core = ShardCore(store: try store.makeWriter(), settings: settings)
        let codec = ChangeVersionCodec(store.identity)
        let tag: UInt32 = codec.tag(of: bucket)
        let log: [ChangeRecord] = try durableLog()
        #expect(log.count >= broadcast.count, "seed \(seed): announced changes are durable")
        for (row, known) in zip(log, broadcast) { #expect(row.gid == known.gid, "seed \(seed)") }
        broadcast = try log.map {
            let element: [UInt8] = ChangeElement.encode($0, codec, tag: tag)
            return ($0.gid, try JSONValue(parsing: element))
        }
    }

    func durableLog() throws -> [ChangeRecord] {
        let reader: any StoreReader = try store.makeReader()
        guard let record: BucketRecord = try reader.bucket(bucket) else { return [] }
        return try reader.changes(in: record.row, after: 0, upTo: record.head, limit: .max, byteLimit: .max)?.changes
            ?? []
    }

    /// A client reads the next changes of the log.
    private mutating func read(_ client: Int, atMost count: Int) throws {
        for _ in 0..<min(count, broadcast.count - clients[client].position) {
            let element: JSONValue = broadcast[clients[client].position].element
            clients[client].position += 1
            let key: String = element["id"]?.stringValue ?? ""
            let version: Version = element["ev"]?.intValue ?? 0
            if let own: SubmittedChange = clients[client].inFlight[key],
                element["ccids"] == [.string(own.request.ccid)]
            {
                clients[client].inFlight[key] = nil
            }
            let ghost: Copy? = clients[client].ghosts[key]
            #expect(version == (ghost?.version ?? 0) + 1, "seed \(seed): versions have no gap")
            guard element["o"] == "M", let diff: JSONValue = element["v"] else {
                clients[client].ghosts[key] = Copy(version: version, value: nil)
                continue
            }
            #expect(element["sv"]?.intValue == (ghost?.value == nil ? nil : ghost?.version), "seed \(seed)")
            let value: JSONObject = try JSONDiff.apply(ObjectDiff(diff), to: ghost?.value ?? JSONObject())
            clients[client].ghosts[key] = Copy(version: version, value: value)
        }
    }

    /// Faults end, every client resends its unanswered changes and reads the log to its end.
    private mutating func settleAll() throws {
        calm.set(.crashBefore)
        defer { calm.set(.none) }
        for _ in 0..<50 {
            while !queue.isEmpty || !elsewhere.isEmpty { try commit() }
            for client in clients.indices { try read(client, atMost: .max) }
            if clients.allSatisfy(\.inFlight.isEmpty) { return }
            for client in clients.indices { resend(client) }
        }
        Issue.record("seed \(seed): changes stay unanswered")
    }

    // MARK: Checking

    func check() throws {
        let reader: any StoreReader = try store.makeReader()
        let row: BucketRow = try #require(try reader.bucket(bucket)?.row)
        for client in clients {
            for (key, copy) in client.ghosts {
                let head: EntityHead = try #require(try reader.head(of: EntityKey(key), in: row))
                #expect(copy.version == head.record.version, "seed \(seed)")
                #expect(
                    copy.value.map { .object($0) } == (try head.body.map { try JSONValue(parsing: $0) }), "seed \(seed)"
                )
            }
        }
        for (key, characters) in typed {
            let value: JSONObject? = clients[0].ghosts[key]?.value
            let text: Set<Character> = Set(value?["t"]?.stringValue ?? "")
            for character in characters {
                #expect(text.contains(character), "seed \(seed): lost \(character)")
            }
            #expect(value?["t"]?.stringValue?.count == 4 + characters.count, "seed \(seed): a character came twice")
        }
        let log: [ChangeRecord] = try durableLog()
        #expect(Set(log.map(\.changeID)).count == log.count, "seed \(seed): a ccid was applied twice")
        #expect(log.map(\.gid) == log.map(\.gid).sorted(), "seed \(seed)")
        #expect(log.map(\.gid) == broadcast.map(\.gid), "seed \(seed)")
        for (_, rows) in Dictionary(grouping: log, by: \.key) {
            #expect(rows.map(\.endVersion) == (1...Version(rows.count)).map { $0 }, "seed \(seed)")
        }
    }
}
