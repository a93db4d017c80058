import Glibc
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// What one change costs in the store: the real writer, group by group, beside a bare loop that runs the same SQL.
///
/// 2,000 buckets of 50 objects, a random one each time (the worst case for pages touched), 180 bytes of diff.
struct StoreWork {
    static let buckets: Int = 2_000
    static let objects: Int = 50

    private var random: UInt64
    private var heads: [GlobalID]
    private var versions: [Version]
    private var newest: [GlobalID]
    private var gid: GlobalID = 0
    private let ids: [BucketID]
    private let keys: [EntityKey]
    private let client: ClientID
    private let diff: [UInt8]

    init(seed: UInt64) throws {
        random = seed
        heads = .init(repeating: 0, count: Self.buckets)
        versions = .init(repeating: 0, count: Self.buckets * Self.objects)
        newest = .init(repeating: 0, count: Self.buckets * Self.objects)
        let app: AppID = try AppID("bench")
        let name: BucketName = try BucketName("notes")
        ids = try (0..<Self.buckets).map { BucketID(app: app, user: try UserID("user\($0)@example.com"), name: name) }
        keys = try (0..<Self.objects).map { try EntityKey("object-number-\($0)") }
        client = try ClientID("bench-client-0000000000000000001")
        diff = Array("{\"text\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 150))\"}}".utf8)
    }

    /// The next `count` changes as one group.
    mutating func group(_ count: Int) throws -> WriteBatch {
        var batch: WriteBatch = .init()
        for _ in 0..<count { try add(to: &batch) }
        return batch
    }

    private mutating func add(to batch: inout WriteBatch) throws {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let bucket: Int = Int(random >> 33) % Self.buckets
        let object: Int = Int(random >> 20) % Self.objects
        let place: Int = bucket * Self.objects + object
        gid += 1
        let digits: String = String(gid, radix: 16)
        let changeID: ChangeID = try ChangeID(String(repeating: "0", count: 32 - digits.count) + digits)
        let row: ChangeRecord = .init(
            gid: gid, bucket: BucketRow(bucket + 1), key: keys[object], kind: .modify,
            sourceVersion: versions[place] == 0 ? nil : versions[place], endVersion: versions[place] + 1,
            previousOfEntity: newest[place], previousKeyframe: 0, previousOfBucket: heads[bucket], clientID: client,
            changeID: changeID, timestamp: 1_700_000_000_000, diff: diff)
        let isNew: Bool = heads[bucket] == 0
        (heads[bucket], newest[place]) = (gid, gid)
        versions[place] += 1
        batch.append(
            row,
            entity: EntityRecord(
                key: keys[object], version: versions[place], gid: gid, keyframe: 0, isDeleted: false),
            bucket: BucketRecord(row: BucketRow(bucket + 1), id: ids[bucket], head: gid), isNewBucket: isNew)
    }
}

/// The statements of the writer without anything around them: one connection, one transaction a group.
private struct BareLoop {
    private let database: Database
    private let change: Statement
    private let entity: Statement
    private let bucket: Statement
    private let head: Statement

    init(_ path: String) throws {
        database = try Database(path: path, mode: .readWrite)
        try database.execute(
            "PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY")
        database.watchLog()
        change = try database.prepare(
            """
            INSERT INTO chg (gid, b, k, op, sv, ev, pe, pk, pb, client, ccid, ts, diff, snap)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            """)
        entity = try database.prepare(
            "INSERT OR REPLACE INTO ent (b, k, ver, gid, kf, dead) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        bucket = try database.prepare(
            "INSERT INTO bucket (id, app, owner, name, head, floor, fresh) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        head = try database.prepare("UPDATE bucket SET head = ?1, fresh = fresh + ?2 WHERE id = ?3")
        try database.execute("INSERT OR IGNORE INTO client VALUES (1, 'bench')")
    }

    func commit(_ batch: WriteBatch) throws {
        try database.begin(.immediate)
        for row: ChangeRecord in batch.changes {
            try change.bind(1, row.gid).bind(2, row.bucket).bind(3, row.key.text).bind(4, row.kind.rawValue)
                .bind(5, row.sourceVersion).bind(6, row.endVersion).bind(7, row.previousOfEntity)
                .bind(8, row.previousKeyframe).bind(9, row.previousOfBucket).bind(10, 1).bind(11, Self.changeID)
                .bind(12, row.timestamp).bind(13, row.diff).bind(14, nil as Int64?).run()
        }
        for write: WriteBatch.EntityWrite in batch.entities {
            try entity.bind(1, write.bucket).bind(2, write.record.key.text).bind(3, write.record.version)
                .bind(4, write.record.gid).bind(5, write.record.keyframe).bind(6, 0).run()
        }
        for write: BucketRecord in batch.buckets {
            if batch.newBuckets.contains(write.row) {
                try bucket.bind(1, write.row).bind(2, write.id.app.text).bind(3, write.id.user.text)
                    .bind(4, write.id.name.text).bind(5, write.head).bind(6, 0).bind(7, 180).run()
            } else {
                try head.bind(1, write.head).bind(2, 180).bind(3, write.row).run()
            }
        }
        try database.commit()
    }

    private static let changeID: [UInt8] = .init(repeating: 7, count: 16)
}

/// Changes a second of writer and bare loop at several group sizes, turn and turn about, each on a fresh file.
func storeRates() throws -> [Figure] {
    var figures: [Figure] = []
    for (group, groups): (Int, Int) in [(1, 1_000), (10, 400), (100, 150), (1_000, 30)] {
        var rates: [[Double]] = [[], []]
        for round: Int in 0..<5 {
            for isBare: Bool in round % 2 == 0 ? [true, false] : [false, true] {
                rates[isBare ? 1 : 0].append(
                    try storeRate(group: group, groups: groups, seed: UInt64(round), isBare: isBare))
            }
        }
        let ratios: [Double] = zip(rates[0], rates[1]).map { $0 / $1 }
        figures.append(Figure(name: "groups of \(group): store", samples: rates[0], unit: "1/s"))
        figures.append(Figure(name: "groups of \(group): floor, the bare loop", samples: rates[1], unit: "1/s"))
        figures.append(
            Figure(name: "groups of \(group): ratio to the floor", samples: ratios, unit: "", goal: .atLeast(0.8)))
    }
    return figures
}

func storeRate(group: Int, groups: Int, seed: UInt64, isBare: Bool) throws -> Double {
    let folder: TemporaryFolder = try .init()
    let store: SQLiteStore = try .init(path: folder.path + "/thicket.db")
    var work: StoreWork = try .init(seed: seed)
    let batches: [WriteBatch] = try (0..<groups).map { _ in try work.group(group) }
    let bare: BareLoop? = isBare ? try BareLoop(store.path) : nil
    let writer: (any StoreWriter)? = isBare ? nil : try store.makeWriter()
    let start: UInt64 = nanoseconds()
    for batch: WriteBatch in batches {
        try bare?.commit(batch)
        try writer?.commit(batch)
    }
    return Double(group * groups) / (Double(nanoseconds() - start) / 1e9)
}

/// A folder that goes with its last owner.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template: [CChar] = Array("/tmp/thicket-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder in /tmp: errno \(errno)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name: String in ["thicket.db", "thicket.db-wal", "thicket.db-shm"] { unlink(path + "/" + name) }
        rmdir(path)
    }
}
