import ThicketCrypto
import ThicketFaultDisk
import ThicketProtocol
import ThicketPlatform
import ThicketServer
import ThicketTestSupport
import ThicketTreeShape

/// A server with trees and blobs and without sockets, in one thread: the shard, its maintenance, a reader, the blob
/// workers' code and their sweep.
final class TreeSweepServer {
    private let store: SQLiteStore
    private let core: ShardCore
    private let maintenance: any StoreMaintenance
    private let reader: any StoreReader
    private let blobs: FolderBlobStore
    private let direct: DirectBlobs
    private let sweep: BlobSweep
    private let bucket: BucketID
    private var isTree = false

    /// The answer to an action.
    struct Answer: Equatable {
        /// 200, or the HTTP status or error code of a refusal.
        var code = 200
        var bytes = [UInt8]()
        /// The upload or blob that was begun or made.
        var id: BlobID?
    }

    /// - Parameters:
    ///   - folder: the data folder.
    ///   - seed: of the ids that the server makes: another one for each start, since ids never repeat.
    init(_ folder: String, _ settings: StoreSettings, seed: UInt64) throws {
        store = try SQLiteStore(path: folder + "/" + SQLiteStore.fileName, settings: settings)
        var shard = ShardSettings()
        shard.keyframes.diffsMin = 5
        // Little memory, so that most decisions read their nodes from the store.
        (shard.entityCacheBytes, shard.bucketCacheBytes) = (4_000, 20_000)
        core = ShardCore(store: try store.makeWriter(), settings: shard)
        maintenance = try store.makeMaintenance(SweepWorkload.retention)
        reader = try store.makeReader()
        blobs = FolderBlobStore(folder: folder, settings: settings)
        let ids = Ids(seed)
        direct = DirectBlobs(ledger: try store.makeBlobLedger(), blobs: blobs, random: ids.bytes)
        sweep = BlobSweep(ledger: try store.makeBlobLedger(), store: blobs)
        bucket = BucketID(app: try AppID("sweep"), user: try Self.owner(), name: try BucketName("tree"))
    }

    static func owner() throws(IdentifierError) -> UserID { try UserID("ann@example.com") }

    private final class Ids {
        private var random: SeededRandom
        init(_ seed: UInt64) { random = SeededRandom(seed: seed) }
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
    }

    // MARK: - Actions

    /// - Parameter bodies: the batches of earlier actions, by their numbers.
    func perform(
        _ action: TreeSweepAuthor.Action, _ state: TreeSweepState, _ bodies: [Int: [UInt8]], now: Int64
    ) throws -> Answer {
        switch action {
        case .batch(_, let body, _): return try batch(body, now: now)
        case .again(let number): return try batch(bodies[number] ?? [], now: now)
        case .small(let content): return try post("", content: content.bytes, now: now)
        case .begin(let content):
            return try post(
                "", "{\"length\":\(content.length),\"part\":\(TreeSweepAuthor.partBytes)}", id: "upload", now: now)
        case .part(let upload, let number):
            guard let content = state.uploads[upload]?.content else { throw SweepError("no upload") }
            return try request("PUT", "/\(upload)/\(number)", content: content.part(number), now: now)
        case .complete(let upload):
            guard let content = state.uploads[upload]?.content else { throw SweepError("no upload") }
            let hashes = (1...content.parts).flatMap { Hash.sha256(content.part($0)) }
            return try post("/\(upload)/complete", "{\"sha256\":\"\(Hex.encode(Hash.sha256(hashes)))\"}", now: now)
        case .abort(let upload): return try request("DELETE", "/\(upload)", now: now)
        case .collect:
            _ = try sweep.run(now: now)
            try burn(now: now)
            return Answer()
        case .restart: return Answer()
        }
    }

    private func batch(_ body: [UInt8], now: Int64) throws -> Answer {
        if !isTree { try makeTree() }
        guard isTree else { return Answer(code: ErrorCode.unavailable.rawValue) }
        var request = try TreeBatchRequest(parsing: body)
        request.copies = .signed(Set(try TreeSweepState.receivers.map { try UserID($0) }))
        let id = request.batch.id.text
        _ = core.receive(
            .change(
                SubmittedChange(
                    origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: try ClientID("sweep"),
                    library: .other, canWrite: true, request: ChangeRequest(key: id, ccid: id, operation: .modify),
                    now: now, batch: request)))
        for event in core.commit().buckets.flatMap(\.events) {
            switch event {
            case .batch(let outcome): return Answer(bytes: outcome.answer)
            case .refused(let refused): return Answer(code: refused.code.rawValue)
            case .applied: continue
            }
        }
        throw SweepError("a batch has no answer")
    }

    /// As the loop does before the first batch.
    private func makeTree() throws {
        _ = core.receive(.chooseMode(ModeRequest(.tree, of: bucket, tenant: 0)))
        isTree = core.commit().buckets.contains { $0.bucket == bucket && $0.mode == .mode(.tree) }
    }

    private func burn(now: Int64) throws {
        for _ in 0..<8 {
            let hasMore = core.burn(now: now)
            if core.commit().failure != nil { throw StoreError(.unavailable, "burning nodes were not written") }
            if !hasMore { return }
        }
    }

    /// Background work that is due, at most `batches` pieces.
    func keep(now: Int64, batches: Int) throws {
        for _ in 0..<batches {
            guard let batch = try maintenance.nextBatch(now: now) else { return }
            _ = try core.apply(batch)
        }
    }

    /// What the server does with blobs at its start.
    func removeUnknown() throws { _ = try sweep.removeUnknown() }

    // MARK: - Requests about blobs

    private func post(
        _ path: String, _ json: String = "", content: [UInt8]? = nil, id: String = "blob", now: Int64
    ) throws -> Answer { try request("POST", path, json, content: content, id: id, now: now) }

    private func request(
        _ method: String, _ path: String, _ json: String = "", content: [UInt8]? = nil, id: String = "blob", now: Int64
    ) throws -> Answer {
        let body = content ?? Array(json.utf8)
        var text = "\(method) /1/sweep/blob\(path) HTTP/1.1\r\nhost: a\r\nx-simperium-token: t\r\n"
        if !body.isEmpty { text += "content-length: \(body.count)\r\n" }
        if content != nil { text += "x-part-sha256: \(Hex.encode(Hash.sha256(body)))\r\n" }
        guard let request = WholeRequest(parsing: Array((text + "\r\n").utf8) + body),
            let order = DirectBlobs.order(request, of: bucket.app, bucket.user)
        else { throw SweepError("\(method) \(path) is not a request about blobs") }
        let answer = direct.answer(order, body: request.content ?? [], now: now)
        let object = try? JSONValue(parsing: answer.response.body)
        return Answer(
            code: answer.response.status, bytes: answer.response.body + answer.content,
            id: object?[id]?.stringValue.flatMap(BlobID.init(text:)))
    }

    // MARK: - What clients can see

    func nodes() throws -> [NodeID: TreeSweepState.Node] {
        var nodes = [NodeID: TreeSweepState.Node]()
        guard let found = try reader.bucket(bucket) else { return nodes }
        guard found.mode == .tree else { throw SweepError("the bucket is \(found.mode)") }
        let query = IndexQuery(bucket: found.row, current: found.head, limit: 10_000, withData: true)
        for entry in try reader.indexPage(query)?.entries ?? [] {
            guard let body = entry.body, let id = NodeID(text: entry.key.text) else { throw SweepError("no node") }
            let record = try NodeRecord(parsing: body, from: .server)
            var blob: BlobID?
            if case .blob(_, _, let id)? = record.data { blob = id }
            nodes[id] = TreeSweepState.Node(
                parent: record.parent, tag: record.tag, version: entry.version, blob: blob, burnTime: record.burnTime)
        }
        return nodes
    }

    /// The nodes of a receiver.
    func delivered(to name: String) throws -> Set<NodeID> {
        let id = BucketID(app: bucket.app, user: try UserID(name), name: bucket.name)
        guard let row = try reader.bucket(id)?.row else { return [] }
        return Set(try reader.children(of: .trunk(.inbox), in: row, limit: 10_000))
    }

    /// Whether the blob is complete and belongs to the user.
    func has(_ blob: BlobID) throws -> Bool {
        try reader.length(of: blob, by: bucket, in: try reader.bucket(bucket)?.row) != nil
    }

    func bytes(of blob: BlobID) throws -> [UInt8]? {
        try blobs.open(blob).map { (blob) throws(StoreError) in try blob.read(at: 0, count: Int(blob.length)) }
    }

    /// A blob as its node gives it.
    func read(_ blob: BlobID, at node: NodeID, now: Int64) throws -> [UInt8]? {
        let answer = try request("GET", "/\(blob)?node=\(bucket.user.text)/\(node)", now: now)
        return answer.code == 200 ? answer.bytes : nil
    }

    /// Numbers of the received parts of an upload; nil: it does not exist. Empty for a complete one.
    func parts(of upload: BlobID, now: Int64) throws -> Set<Int>? {
        let answer = try request("GET", "/\(upload)", now: now)
        guard answer.code == 200 else { return nil }
        let list = try JSONValue(parsing: answer.bytes)["received"]?.arrayValue ?? []
        return Set(list.compactMap { $0["n"]?.intValue.map(Int.init) })
    }

    /// All files of blobs, and folders of uploads.
    func files() throws -> (blobs: Set<BlobID>, uploads: Int) {
        var found = Set<BlobID>()
        try blobs.list { (blob) throws(StoreError) in found.insert(blob.id) }
        return (found, try blobs.uploads().count)
    }
}
