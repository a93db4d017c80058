import Testing
import ThicketAuth
import ThicketCrypto
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// A hub with a shard and a reader over a store in memory, all on the test's own thread: text in, text out.
///
/// By default every event is followed to its end; with `holdsReads` or `holdsCommits` the test decides when readers and
/// the shard continue, which produces races.
final class HubHarness {
    let store: MemoryStore
    let hub: Hub
    let metrics = Metrics()
    private let core: ShardCore
    private let executor: ReadExecutor
    private let codec: ChangeVersionCodec

    var holdsReads = false
    var holdsCommits = false
    private(set) var reads: [ReadRequest] = []
    private(set) var requests: [ShardRequest] = []
    private(set) var sent: [ConnectionID: [String]] = [:]
    private(set) var closed: [ConnectionID: WebSocketCloseCode] = [:]
    private(set) var paused: Set<ConnectionID> = []
    private(set) var reported: [RemoteReply] = []
    private(set) var admissions: [AdmissionRequest] = []
    var responses: [ConnectionID: [HTTPResponse]] = [:]
    var now = HubInstant(monotonic: 1_000_000_000, unix: 1_700_000_000_000)
    private var serial: UInt32 = 0

    init(
        limits: ServerLimits = .init(), shard: ShardSettings = .init(), faults: FaultPlan? = nil
    ) throws {
        store = MemoryStore(identity: .seeded(7), faults: faults)
        codec = ChangeVersionCodec(store.identity)
        hub = Hub(limits: limits, codec: codec, metrics: metrics)
        core = ShardCore(store: try store.makeWriter(), settings: shard)
        executor = ReadExecutor(reader: try store.makeReader(), codec: codec, limits: limits)
        try grant("ann-token", user: "ann@example.com")
        try grant("bob-token", user: "bob@example.com")
        try grant("read-token", user: "ann@example.com", isReadOnly: true)
    }

    func grant(_ token: String, app: String = "app", user: String, isReadOnly: Bool = false) throws {
        let app = try AppID(app)
        store.addApp(app)
        store.addGrant(
            TokenGrant(app: app, user: try UserID(user), isReadOnly: isReadOnly),
            tokenHash: Hash.sha256(Array(token.utf8)))
    }

    /// The cv of a position in ann's (or another user's) bucket.
    func cv(_ gid: GlobalID, bucket: String = "notes", user: String = "ann@example.com") throws -> String {
        let id = BucketID(app: try AppID("app"), user: try UserID(user), name: try BucketName(bucket))
        return codec.text(gid, tag: codec.tag(of: id))
    }

    // MARK: Clients

    /// A new connection.
    func connect(app: String = "app") -> Peer {
        serial += 1
        let id = ConnectionID(slot: Int32(serial), serial: serial)
        hub.opened(id, app: app)
        settle()
        return Peer(id: id, harness: self)
    }

    /// A new connection with channel 0 on a bucket, its `auth` already read.
    func client(
        _ name: String, token: String = "ann-token", bucket: String = "notes", library: String = "test"
    ) -> Peer {
        let peer: Peer = connect()
        peer.send(
            "0:init:{\"clientid\":\"\(name)\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"app\","
                + "\"name\":\"\(bucket)\",\"library\":\"\(library)\"}")
        _ = peer.take()
        return peer
    }

    func receive(_ id: ConnectionID, _ text: String) {
        hub.received(id, Array(text.utf8), now: now)
        settle()
    }

    func close(_ id: ConnectionID) {
        hub.closed(id)
        settle()
    }

    func take(_ id: ConnectionID) -> [String] { sent.removeValue(forKey: id) ?? [] }

    // MARK: Time and the other threads

    func pass(seconds: Double) {
        now.monotonic += Int64(seconds * 1e9)
        now.unix += Int64(seconds * 1e3)
        hub.tick(now)
        settle()
    }

    /// Lets a reader look at the store for the oldest read; its answer comes when the result is called.
    func look() -> (() -> Void)? {
        guard !reads.isEmpty else { return nil }
        let request = reads.removeFirst()
        let answer = executor.answer(request)
        return { [self] in
            hub.answered(request, answer, now: now)
            settle()
        }
    }

    /// Lets the readers answer the oldest read (or the one at `index`).
    func answerRead(at index: Int = 0) {
        guard index < reads.count else { return }
        let request: ReadRequest = reads.remove(at: index)
        hub.answered(request, executor.answer(request), now: now)
        settle()
    }

    /// Answers the oldest request to admit a partner's token.
    func admit(_ answer: AdmissionAnswer) {
        guard !admissions.isEmpty else { return }
        hub.admitted(admissions.removeFirst(), answer, now: now)
        settle()
    }

    func revoke(_ revocation: Revocation) -> [DeniedToken] {
        defer { settle() }
        return hub.revoke(revocation, now: now)
    }

    /// Answers the oldest read with a failure of the store.
    func failRead() {
        guard !reads.isEmpty else { return }
        hub.answered(reads.removeFirst(), .failed(StoreError(.io, "a test")), now: now)
        settle()
    }

    /// Lets the shard decide all that is queued (or the first `count`) as one group; the outcome waits for `publish`.
    func decide(_ count: Int = .max) -> (outcome: CommitOutcome, requests: Int) {
        let taken: [ShardRequest] = Array(requests.prefix(count))
        requests.removeFirst(taken.count)
        for request in taken { _ = core.receive(request) }
        return (core.commit(), taken.count)
    }

    func publish(_ group: (outcome: CommitOutcome, requests: Int)) {
        hub.committed(group.outcome, now: now)
        settle()
    }

    /// Commits all that is queued as one group and publishes it.
    func commit() { publish(decide()) }

    /// Cuts the log down to the newest `count` changes of each bucket, whatever their age.
    func cutLog(to count: Int) throws {
        var settings = RetentionSettings()
        settings.logAgeMin = 0
        settings.logChangesMin = count
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: now.unix + 1_000) {
            _ = try core.apply(batch)
        }
    }

    func ask(_ question: RemoteQuestion) {
        hub.ask(1, question, now: now)
        settle()
    }

    func takeReports() -> [RemoteReply] {
        defer { reported = [] }
        return reported
    }

    func settle() {
        while true {
            let actions: [HubAction] = hub.takeActions()
            for action in actions { perform(action) }
            if !holdsReads && !reads.isEmpty {
                answerRead()
            } else if !holdsCommits && (!requests.isEmpty || core.hasBacklog) {
                commit()
            } else if actions.isEmpty {
                return
            }
        }
    }

    private func perform(_ action: HubAction) {
        switch action {
        case .send(let id, let frame): sent[id, default: []].append(Self.text(of: frame))
        case .close(let id, let code, _): closed[id] = code
        case .pause(let id): paused.insert(id)
        case .resume(let id): paused.remove(id)
        case .submit(let request): requests.append(request)
        case .read(let request), .readWhenDrained(let request): reads.append(request)
        case .report(_, let reply): reported.append(reply)
        case .admit(let request): admissions.append(request)
        case .blob: break
        case .respond(let id, let response, _): responses[id, default: []].append(response)
        }
    }

    /// The payload of a server's text frame.
    private static func text(of frame: SharedFrame) -> String {
        let bytes: [UInt8] = frame.bytes
        let head: Int = bytes[1] == 127 ? 10 : bytes[1] == 126 ? 4 : 2
        return String(decoding: bytes[head...], as: UTF8.self)
    }
}

/// One connection of a harness.
struct Peer {
    let id: ConnectionID
    let harness: HubHarness

    func send(_ texts: String...) {
        for text in texts { harness.receive(id, text) }
    }

    /// Messages received since the last call.
    func take() -> [String] { harness.take(id) }

    /// Sends one message and returns the answers.
    func ask(_ text: String) -> [String] {
        send(text)
        return take()
    }

    func close() { harness.close(id) }
}

/// A change that creates or edits a text field, as clients send it.
func edit(_ key: String, _ ccid: String, sv: Int? = nil, field: String = "t", to value: String) -> String {
    let source: String = sv.map { ",\"sv\":\($0)" } ?? ""
    let operation: String = sv == nil ? "+" : "r"
    return "0:c:{\"id\":\"\(key)\",\"o\":\"M\",\"ccid\":\"\(ccid)\"\(source),"
        + "\"v\":{\"\(field)\":{\"o\":\"\(operation)\",\"v\":\"\(value)\"}}}"
}

/// A removal, as clients send it.
func removal(_ key: String, _ ccid: String) -> String {
    "0:c:{\"id\":\"\(key)\",\"o\":\"-\",\"ccid\":\"\(ccid)\"}"
}
