import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// A server without sockets: the shard, its keeper and a reader over one store, in one thread.
final class SweepServer {
    let store: SQLiteStore
    let core: ShardCore
    private let maintenance: any StoreMaintenance
    private let reader: any StoreReader

    /// What became of a group.
    struct Answer: Equatable {
        var applied: Set<String> = []
        /// Refused with 409: it was in before.
        var known: Set<String> = []
        /// All other refusals by ccid.
        var refused: [String: Int] = [:]
    }

    init(_ path: String, disk: FaultVFS?) throws {
        store = try SQLiteStore(path: path, settings: SweepWorkload.storeSettings(disk))
        var settings: ShardSettings = .init()
        settings.keyframes.diffsMin = 5
        // Little memory: most of what is decided was read back.
        (settings.entityCacheBytes, settings.bucketCacheBytes) = (4_000, 20_000)
        core = ShardCore(store: try store.makeWriter(), settings: settings)
        maintenance = try store.makeMaintenance(SweepWorkload.retention)
        reader = try store.makeReader()
    }

    /// The sealed bucket is known to be one.
    private var isSealed: Bool = false

    /// As the loop does with the first `init` of a sealed bucket: nobody writes before the mode is durable.
    private func seal() throws(IdentifierError) {
        let id: BucketID = try SweepWorkload.bucket(SweepWorkload.sealedBucket)
        _ = core.receive(.seal(SealRequest(bucket: id, tenant: 0)))
        isSealed = core.commit().buckets.contains { $0.bucket == id && $0.mode == .mode(.sealed) }
    }

    func send(_ group: some Sequence<SweepChange>, now: Int64) throws(IdentifierError) -> Answer {
        var answer: Answer = .init()
        if !isSealed, group.contains(where: { $0.sealed != nil }) { try seal() }
        for change: SweepChange in group {
            if change.sealed != nil, !isSealed {
                answer.refused[change.ccid] = ErrorCode.unavailable.rawValue
                continue
            }
            _ = core.receive(.change(try change.submitted(now: now)))
        }
        let outcome: CommitOutcome = core.commit()
        for event: ChangeOutcome in outcome.buckets.flatMap(\.events) {
            switch event {
            case .applied(let applied): answer.applied.formUnion(Self.changeIDs(of: applied.element))
            case .refused(let refused):
                for ccid: String in refused.changeIDs {
                    if refused.code == .duplicateChange {
                        answer.known.insert(ccid)
                    } else {
                        answer.refused[ccid] = refused.code.rawValue
                    }
                }
            }
        }
        return answer
    }

    private static func changeIDs(of element: [UInt8]) -> [String] {
        (try? JSONValue(parsing: element))?["ccids"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }

    /// Background work that is due, at most `batches` pieces.
    func keep(now: Int64, batches: Int) throws {
        for _ in 0..<batches {
            guard let batch: MaintenanceBatch = try maintenance.nextBatch(now: now) else { return }
            _ = try core.apply(batch)
        }
    }

    /// All that clients can see.
    func state() throws -> SweepState {
        var state: SweepState = .init(buckets: .init(repeating: [:], count: SweepWorkload.bucketCount))
        for number: Int in 0..<SweepWorkload.bucketCount {
            guard let bucket: BucketRecord = try reader.bucket(try SweepWorkload.bucket(number)) else { continue }
            let query: IndexQuery = .init(bucket: bucket.row, current: bucket.head, limit: 10_000, withData: true)
            let isSealed: Bool = number == SweepWorkload.sealedBucket
            guard (bucket.mode == .sealed) == isSealed else { throw SweepError("bucket \(number) is \(bucket.mode)") }
            for entry: IndexEntry in try reader.indexPage(query)?.entries ?? [] {
                if isSealed {
                    state.buckets[number][entry.key.text] = .init(
                        version: entry.version,
                        members: try entry.body.map { try SweepSealing.read($0, entry.key.text) })
                    continue
                }
                let body: JSONObject? = try entry.body.flatMap { try JSONValue(parsing: $0).objectValue }
                state.buckets[number][entry.key.text] = .init(
                    version: entry.version, members: body.map { Set($0.keys) })
            }
        }
        return state
    }

    /// Adds the deleted ones of `wanted`, which no index shows.
    func state(like wanted: SweepState) throws -> SweepState {
        var state: SweepState = try state()
        for (number, objects) in wanted.buckets.enumerated() {
            guard let bucket: BucketRecord = try reader.bucket(try SweepWorkload.bucket(number)) else { continue }
            for key: String in objects.keys where state.buckets[number][key] == nil {
                guard let head: EntityRecord = try reader.entity(try EntityKey(key), in: bucket.row) else { continue }
                state.buckets[number][key] = .init(version: head.version, members: nil)
            }
        }
        return state
    }
}
