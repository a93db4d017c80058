import Glibc
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// The writer's statements alone: one connection, one transaction per group.
struct BareLoop {
    private let database: Database
    private let change: Statement
    private let entity: Statement
    private let bucket: Statement
    private let head: Statement

    /// - Parameter store: has created the file, and gives its settings.
    init(_ store: SQLiteStore) throws {
        database = try Database(path: store.path, mode: .readWrite)
        try database.execute(
            """
            PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA cache_size=-\(store.settings.cacheKiB);
            PRAGMA temp_store=MEMORY
            """)
        database.watchLog()
        try database.reserveLog(bytes: store.settings.logReservedBytes)
        change = try database.prepare(
            """
            INSERT INTO chg (gid, b, k, op, sv, ev, pe, pk, pb, client, ccid, ts, diff, snap)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            """)
        entity = try database.prepare(
            "INSERT OR REPLACE INTO ent (b, k, ver, gid, kf, dead) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        bucket = try database.prepare(
            """
            INSERT INTO bucket (id, app, owner, name, head, floor, fresh, loose)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            """)
        head = try database.prepare(
            "UPDATE bucket SET head = ?1, fresh = fresh + ?2, loose = loose + ?3 WHERE id = ?4")
        try database.execute("INSERT OR IGNORE INTO client VALUES (1, 'bench-client-0000000000000000001')")
    }

    func commit(_ batch: WriteBatch) throws {
        try database.begin(.immediate)
        try write(batch.changes)
        try write(batch.entities)
        try write(batch.buckets, new: batch.newBuckets)
        try database.commit()
    }

    /// Commits only the log rows of a group.
    func commitLog(_ batch: WriteBatch) throws {
        try database.begin(.immediate)
        try write(batch.changes)
        try database.commit()
    }

    /// Commits the heads that result from the logs of several groups.
    func commitHeads(_ heads: (entities: [WriteBatch.EntityWrite], buckets: [BucketRecord], isNew: Set<BucketRow>))
        throws
    {
        try database.begin(.immediate)
        try write(heads.entities)
        try write(heads.buckets, new: heads.isNew)
        try database.commit()
    }

    private func write(_ changes: [ChangeRecord]) throws {
        for row in changes {
            try change.bind(1, row.gid).bind(2, row.bucket).bind(3, row.key.text).bind(4, row.kind.rawValue)
                .bind(5, row.sourceVersion).bind(6, row.endVersion).bind(7, row.previousOfEntity)
                .bind(8, row.previousKeyframe).bind(9, row.previousOfBucket).bind(10, 1).bind(11, Self.changeID)
                .bind(12, row.timestamp).bind(13, row.diff).bind(14, row.keyframe).run()
        }
    }

    private func write(_ entities: [WriteBatch.EntityWrite]) throws {
        for write in entities {
            try entity.bind(1, write.bucket).bind(2, write.record.key.text).bind(3, write.record.version)
                .bind(4, write.record.gid).bind(5, write.record.keyframe).bind(6, 0).run()
        }
    }

    private func write(_ buckets: [BucketRecord], new: Set<BucketRow>) throws {
        for write in buckets {
            if new.contains(write.row) {
                try bucket.bind(1, write.row).bind(2, write.id.app.text).bind(3, write.id.user.text)
                    .bind(4, write.id.name.text).bind(5, write.head).bind(6, 0).bind(7, 180).bind(8, 1).run()
            } else {
                try head.bind(1, write.head).bind(2, 180).bind(3, 1).bind(4, write.row).run()
            }
        }
    }

    /// As many bytes as a ccid of 32 hex digits takes.
    private static let changeID = [UInt8](repeating: 7, count: 16)
}

/// Changes per second of writer and bare loop at several group sizes, alternating, each on a fresh file.
func storeRates() throws -> [Figure] {
    var figures: [Figure] = []
    for (group, groups): (Int, Int) in [(1, 1_000), (10, 400), (100, 150), (1_000, 30)] {
        var rates: [[Double]] = [[], []]
        for round: Int in 0..<5 {
            for isBare in round % 2 == 0 ? [true, false] : [false, true] {
                rates[isBare ? 1 : 0].append(
                    try storeRate(group: group, groups: groups, seed: UInt64(round), isBare: isBare))
            }
        }
        let ratios: [Double] = zip(rates[0], rates[1]).map { $0 / $1 }
        figures.append(Figure(name: "groups of \(group): store", samples: rates[0], unit: "1/s"))
        figures.append(Figure(name: "groups of \(group): floor, the bare loop", samples: rates[1], unit: "1/s"))
        figures.append(
            Figure(
                name: "  groups of \(group): ratio to the floor", samples: ratios, unit: "", goal: .atLeast(0.8)))
    }
    return figures
}

/// Changes per second into a fresh file, with the settings of a server.
func storeRate(
    _ shape: StoreWork.Shape = .usual, group: Int, groups: Int, seed: UInt64, isBare: Bool
) throws -> Double {
    let folder = try TemporaryFolder()
    let store = try SQLiteStore(path: folder.path + "/thicket.db", settings: StoreSettings(ServerLimits()))
    var work = try StoreWork(shape, seed: seed)
    let batches: [WriteBatch] = try (0..<groups).map { _ in try work.group(group) }
    let bare: BareLoop? = isBare ? try BareLoop(store) : nil
    let writer: (any StoreWriter)? = isBare ? nil : try store.makeWriter()
    let start: UInt64 = nanoseconds()
    for batch in batches {
        try bare?.commit(batch)
        try writer?.commit(batch)
    }
    // The write-behind heads of the store (0008) count, too: the floor has written them with each group.
    if let writer { try writeWriteBehindHeads(of: store, writer) }
    let seconds: Double = Double(nanoseconds() - start) / 1e9
    try expectChanges(group * groups, in: store.path)
    return Double(group * groups) / seconds
}

/// Writes the heads that are not in their table yet, as the background does when nothing changes.
func writeWriteBehindHeads(of store: SQLiteStore, _ writer: any StoreWriter) throws {
    var rest = MaintenanceBatch()
    rest.headsMax = 8_192
    while store.writeBehindHeadCount > 0 { _ = try writer.apply(rest) }
}

/// Checks that the timed changes are in the file.
func expectChanges(_ count: Int, in path: String, table: String = "chg") throws {
    let found: Int64 = try Database(path: path, mode: .readOnly).integer("SELECT count(*) FROM \(table)") ?? 0
    guard found == Int64(count) else { throw BenchError("the file has \(found) changes of \(count)") }
}

/// A folder in `/tmp` that is removed, with its files, when its last owner is released.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template: [CChar] = Array("/tmp/thicket-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder in /tmp: errno \(errno)") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        // A failure cannot be reported here.
        _ = try? shell("rm -rf '\(path)'")
    }
}
