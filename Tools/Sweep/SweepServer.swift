import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// A server without sockets: the shard, its maintenance and a reader over one store, in one thread.
final class SweepServer {
    let store: SQLiteStore
    let core: ShardCore
    private let maintenance: any StoreMaintenance
    private let reader: any StoreReader

    /// The answers to a group.
    struct Answer: Equatable {
        var applied = Set<String>()
        /// ccids refused with 409: they were stored before.
        var known = Set<String>()
        /// All other refusals by ccid.
        var refused = [String: Int]()
    }

    init(_ path: String, disk: FaultVFS?) throws {
        store = try SQLiteStore(path: path, settings: SweepWorkload.storeSettings(disk))
        var settings = ShardSettings()
        settings.keyframes.diffsMin = 5
        // Little memory, so that most decisions read their objects from the store.
        (settings.entityCacheBytes, settings.bucketCacheBytes) = (4_000, 20_000)
        core = ShardCore(store: try store.makeWriter(), settings: settings)
        maintenance = try store.makeMaintenance(SweepWorkload.retention)
        reader = try store.makeReader()
    }

    /// Whether the mode of the sealed bucket is durable.
    private var isSealed = false

    /// As the loop does with the first `init` of a sealed bucket: no change is written before the mode is durable.
    private func seal() throws(IdentifierError) {
        let id = try SweepWorkload.bucket(SweepWorkload.sealedBucket)
        _ = core.receive(.chooseMode(ModeRequest(.sealed, of: id, tenant: 0)))
        isSealed = core.commit().buckets.contains { $0.bucket == id && $0.mode == .mode(.sealed) }
    }

    func send(_ group: some Sequence<SweepChange>, now: Int64) throws(IdentifierError) -> Answer {
        var answer = Answer()
        if !isSealed, group.contains(where: { $0.sealed != nil }) { try seal() }
        for change in group {
            if change.sealed != nil, !isSealed {
                answer.refused[change.ccid] = ErrorCode.unavailable.rawValue
                continue
            }
            _ = core.receive(.change(try change.submitted(now: now)))
        }
        let outcome = core.commit()
        for event in outcome.buckets.flatMap(\.events) {
            switch event {
            case .applied(let applied): answer.applied.formUnion(Self.changeIDs(of: applied.element))
            // The sweep sends none.
            case .batch: break
            case .refused(let refused):
                for ccid in refused.changeIDs {
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
            guard let batch = try maintenance.nextBatch(now: now) else { return }
            _ = try core.apply(batch)
        }
    }

    /// The state that clients can see.
    func state() throws -> SweepState {
        var state = SweepState(buckets: .init(repeating: [:], count: SweepWorkload.bucketCount))
        for number in 0..<SweepWorkload.bucketCount {
            guard let bucket = try reader.bucket(try SweepWorkload.bucket(number)) else { continue }
            let query = IndexQuery(bucket: bucket.row, current: bucket.head, limit: 10_000, withData: true)
            let isSealed = number == SweepWorkload.sealedBucket
            guard (bucket.mode == .sealed) == isSealed else { throw SweepError("bucket \(number) is \(bucket.mode)") }
            for entry in try reader.indexPage(query)?.entries ?? [] {
                if isSealed {
                    state.buckets[number][entry.key.text] = .init(
                        version: entry.version,
                        members: try entry.body.map { try SweepSealing.read($0, entry.key.text) })
                    continue
                }
                let body = try entry.body.flatMap { try JSONValue(parsing: $0).objectValue }
                state.buckets[number][entry.key.text] = .init(
                    version: entry.version, members: body.map { Set($0.keys) })
            }
        }
        return state
    }

    /// Adds the deleted objects of `wanted`, which no index shows.
    func state(like wanted: SweepState) throws -> SweepState {
        var state = try state()
        for (number, objects) in wanted.buckets.enumerated() {
            guard let bucket = try reader.bucket(try SweepWorkload.bucket(number)) else { continue }
            for key in objects.keys where state.buckets[number][key] == nil {
                guard let head = try reader.entity(try EntityKey(key), in: bucket.row) else { continue }
                state.buckets[number][key] = .init(version: head.version, members: nil)
            }
        }
        return state
    }
}
