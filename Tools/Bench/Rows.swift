import Glibc
import ThicketProtocol
import ThicketServer

/// The cost of a change's rows, in the bare loop of `store`: all rows in each group, and the log's alone, with the
/// heads of objects and buckets written once for many groups; and in the store itself, which has write-behind heads
/// (0008).
///
/// The second could not be opened again as a store: it is the most that write-behind heads could gain (0008).
func rowCosts() throws -> [Figure] {
    var figures: [Figure] = []
    for load in RowLoad.all {
        for group: Int in [64, 256, 800] {
            let name = "\(load.name), groups of \(group)"
            var costs: [RowLoad.Heads: [RowLoad.Cost]] = [:]
            for round: Int in 0..<5 {
                for heads in round % 2 == 0 ? RowLoad.Heads.allCases : RowLoad.Heads.allCases.reversed() {
                    costs[heads, default: []].append(try load.cost(group: group, heads, seed: UInt64(round)))
                }
            }
            for heads in RowLoad.Heads.allCases {
                let all: [RowLoad.Cost] = costs[heads] ?? []
                figures.append(
                    Figure(name: "\(name), \(heads.rawValue): CPU a change", samples: all.map(\.processor), unit: "µs"))
                figures.append(Figure(name: "  changes", samples: all.map(\.rate), unit: "1/s"))
            }
        }
    }
    return figures
}

/// Typical changes of users, written by the bare loop.
private struct RowLoad {
    enum Heads: String, CaseIterable {
        case current = "all rows"
        case late = "heads each 8,192 changes"
        case ours = "the store"
    }

    struct Cost {
        /// Microseconds of the thread, the kernel's part included.
        let processor: Double
        /// Changes per second.
        let rate: Double
    }

    let name: String
    let shape: StoreWork.Shape

    private static let changes = 40_960
    private static let changesOfLate = 8_192

    static var all: [RowLoad] {
        [
            RowLoad(name: "64 objects", shape: .init(buckets: 64, objects: 1, diffBytes: 60, bodyBytes: 240)),
            RowLoad(
                name: "100 buckets of 2,000", shape: .init(buckets: 100, objects: 2_000, diffBytes: 200, bodyBytes: 240)
            ),
            RowLoad(name: "2,000 buckets of 50", shape: .usual),
        ]
    }

    /// Writes all changes into a fresh file.
    func cost(group: Int, _ heads: Heads, seed: UInt64) throws -> Cost {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.path + "/thicket.db", settings: StoreSettings(ServerLimits()))
        var work = try StoreWork(shape, seed: seed)
        let groups: Int = Self.changes / group
        let batches: [WriteBatch] = try (0..<groups).map { _ in try work.group(group) }
        let loop = try BareLoop(store)
        let writer: any StoreWriter = try store.makeWriter()
        var waiting = WriteBehindHeads()
        let (start, processor): (UInt64, Double) = (nanoseconds(), ownCPU())
        for batch in batches {
            switch heads {
            case .current: try loop.commit(batch)
            case .ours: try writer.commit(batch)
            case .late:
                try loop.commitLog(batch)
                waiting.add(batch)
                if waiting.changes >= Self.changesOfLate { try loop.commitHeads(waiting.take()) }
            }
        }
        if waiting.changes > 0 { try loop.commitHeads(waiting.take()) }
        if heads == .ours { try writeWriteBehindHeads(of: store, writer) }
        let (seconds, used): (Double, Double) = (Double(nanoseconds() - start) / 1e9, ownCPU() - processor)
        try expectChanges(groups * group, in: store.path)
        let count = Double(groups * group)
        return Cost(processor: used / count * 1e6, rate: count / seconds)
    }
}

/// The newest heads of groups whose log rows are already written.
struct WriteBehindHeads {
    private(set) var changes = 0
    private var entities: [Place: WriteBatch.EntityWrite] = [:]
    private var buckets: [BucketRow: BucketRecord] = [:]
    private var isNew: Set<BucketRow> = []

    private struct Place: Hashable {
        let bucket: BucketRow
        let key: EntityKey
    }

    mutating func add(_ batch: WriteBatch) {
        changes += batch.count
        for write in batch.entities {
            entities[Place(bucket: write.bucket, key: write.record.key)] = write
        }
        for bucket in batch.buckets { buckets[bucket.row] = bucket }
        isNew.formUnion(batch.newBuckets)
    }

    /// Removes and returns all heads, in the order of their tables.
    mutating func take() -> (entities: [WriteBatch.EntityWrite], buckets: [BucketRecord], isNew: Set<BucketRow>) {
        defer { self = .init() }
        return (
            entities.values.sorted {
                ($0.bucket, $0.record.key.text) < ($1.bucket, $1.record.key.text)
            },
            buckets.values.sorted { $0.row < $1.row }, isNew
        )
    }
}
