import Glibc
import ThicketProtocol
import ThicketServer

/// Fills the folder of a server that is not running, through the shard's own code and the real writer, and runs the
/// maintenance that would have happened by then. The server finds what it would have written itself, many times sooner
/// than over sockets.
final class OfflineFill {
    private static let groupChanges = 1_000

    private let store: SQLiteStore
    private let core: ShardCore
    private let client: ClientID
    private var waiting = 0
    private var count = 0

    init(_ server: BenchServer) throws {
        store = try SQLiteStore(path: server.process.folder + "/thicket.db")
        core = ShardCore(store: try store.makeWriter())
        client = try ClientID("bench-fill")
    }

    /// The bucket `name` of the user with the token `number` of a `BenchServer`.
    static func bucket(_ name: String, user number: Int) throws -> BucketID {
        BucketID(
            app: try AppID(BenchServer.app), user: try UserID("user\(number)@example.com"), name: try BucketName(name))
    }

    /// Makes the change of `change(of:ccid:number:version:)`, without a socket.
    func add(_ key: String, version: Int, to bucket: BucketID) throws {
        let request = ChangeRequest(
            key: key, ccid: "fill-\(count)", operation: .modify, sv: version == 0 ? nil : Version(version),
            diff: .bytes(Array(diffText(number: count, version: version).utf8)))
        _ = core.receive(
            .change(
                SubmittedChange(
                    origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: client,
                    library: .other, canWrite: true, request: request, now: Self.now())))
        count += 1
        waiting += 1
        if waiting == Self.groupChanges { try commit() }
    }

    /// Writes the rest and does the background work.
    func finish() throws {
        try commit()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: Self.now()) { _ = try core.apply(batch) }
    }

    /// Milliseconds since 1970: the filling must not look older to retention than it is.
    private static func now() -> Int64 { Int64(time(nil)) * 1_000 }

    private func commit() throws {
        let outcome: CommitOutcome = core.commit()
        guard outcome.appliedCount == waiting, outcome.failure == nil else {
            throw BenchError("the filling was refused: \(outcome.appliedCount) of \(waiting) changes applied")
        }
        waiting = 0
    }
}
