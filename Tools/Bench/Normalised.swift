import Glibc
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// The store beside the obvious normalised schema: each object with its body in one row, the log in the order of its
/// bucket, and a table each for ccids and versions. Both are filled with all objects first, get the same groups of 100,
/// and move the log into the file at the end of each round, which is timed too.
///
/// Neither reads what it writes, since both sides know it. That favours the other schema, whose bodies are nowhere
/// else.
func schemas() throws -> [Figure] {
    try beside("100,000 objects of 800 bytes", .usual, groups: 60, goal: 2)
        + beside(
            "200 documents of 100 KB", .init(buckets: 200, objects: 1, diffBytes: 180, bodyBytes: 100_000),
            groups: 20, goal: 4)
}

private func beside(_ what: String, _ shape: StoreWork.Shape, groups: Int, goal: Double) throws -> [Figure] {
    let own = try SchemaSide(shape, isNormalised: false)
    let other = try SchemaSide(shape, isNormalised: true)
    progress("schema: \(what): both filled")
    for round: Int in 0..<5 {
        for side in round % 2 == 0 ? [own, other] : [other, own] { try side.round(groups) }
        progress("schema: \(what): round \(round + 1) of 5")
    }
    return [
        Figure(name: "\(what): store", samples: own.rates, unit: "1/s"),
        Figure(name: "\(what): normalised tables", samples: other.rates, unit: "1/s"),
        Figure(
            name: "  \(what): times normalised", samples: zip(own.rates, other.rates).map { $0 / $1 }, unit: "",
            goal: .atLeast(goal)),
    ]
}

/// One of the two sides, with its file.
private final class SchemaSide {
    private static let group = 100

    private let folder: TemporaryFolder
    private let path: String
    private var work: StoreWork
    private let writer: (any StoreWriter)?
    private let normalised: NormalisedLoop?
    private var written: Int
    private(set) var rates: [Double] = []

    init(_ shape: StoreWork.Shape, isNormalised: Bool) throws {
        folder = try .init()
        path = folder.path + "/thicket.db"
        work = try .init(shape, seed: 1)
        written = shape.buckets * shape.objects
        if isNormalised {
            (writer, normalised) = (nil, try NormalisedLoop(path, body: work.body))
        } else {
            let store = try SQLiteStore(path: path, settings: StoreSettings(ServerLimits()))
            (writer, normalised) = (try store.makeWriter(), nil)
        }
        for batch in try work.filling() { try commit(batch) }
        try checkpoint()
    }

    func round(_ groups: Int) throws {
        let batches: [WriteBatch] = try (0..<groups).map { _ in try work.group(Self.group) }
        let start: UInt64 = nanoseconds()
        for batch in batches { try commit(batch) }
        try checkpoint()
        rates.append(Double(groups * Self.group) / (Double(nanoseconds() - start) / 1e9))
        written += groups * Self.group
        try expectChanges(written, in: path, table: normalised == nil ? "chg" : "change")
    }

    private func commit(_ batch: WriteBatch) throws {
        try writer?.commit(batch)
        try normalised?.commit(batch)
    }

    /// Moves the log into the file.
    private func checkpoint() throws {
        let result: (pages: Int, moved: Int) = try Database(path: path, mode: .readWrite).checkpoint(.restart)
        guard result.pages == result.moved else { throw BenchError("the log could not be moved into the file") }
    }
}

/// One connection, one transaction per group, like the store's.
private struct NormalisedLoop {
    private static let tables: String = """
        PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA cache_size=-16384;
        CREATE TABLE bucket (id INTEGER PRIMARY KEY, app TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL,
            head INTEGER NOT NULL, UNIQUE (app, owner, name));
        CREATE TABLE entity (b INTEGER NOT NULL, k TEXT NOT NULL, ver INTEGER NOT NULL, dead INTEGER NOT NULL,
            body BLOB NOT NULL, PRIMARY KEY (b, k)) WITHOUT ROWID;
        CREATE TABLE change (b INTEGER NOT NULL, seq INTEGER NOT NULL, k TEXT NOT NULL, op INTEGER NOT NULL, sv INTEGER,
            ev INTEGER NOT NULL, client INTEGER NOT NULL, ccid BLOB NOT NULL, ts INTEGER NOT NULL, diff BLOB NOT NULL,
            PRIMARY KEY (b, seq)) WITHOUT ROWID;
        CREATE TABLE ccid (b INTEGER NOT NULL, ccid BLOB NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (b, ccid)) WITHOUT ROWID;
        CREATE TABLE version (b INTEGER NOT NULL, k TEXT NOT NULL, ver INTEGER NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (b, k, ver)) WITHOUT ROWID;
        """

    private let database: Database
    private let body: [UInt8]
    private let bucket: Statement
    private let entity: Statement
    private let change: Statement
    private let ccid: Statement
    private let version: Statement

    init(_ path: String, body: [UInt8]) throws {
        database = try Database(path: path)
        try database.execute(Self.tables)
        database.watchLog()
        try database.reserveLog(bytes: ServerLimits().logReservedBytes)
        self.body = body
        bucket = try database.prepare(
            """
            INSERT INTO bucket VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET head = excluded.head
            """)
        entity = try database.prepare("INSERT OR REPLACE INTO entity VALUES (?1, ?2, ?3, 0, ?4)")
        change = try database.prepare("INSERT INTO change VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9)")
        ccid = try database.prepare("INSERT INTO ccid VALUES (?1, ?2, ?3)")
        version = try database.prepare("INSERT INTO version VALUES (?1, ?2, ?3, ?4)")
    }

    func commit(_ batch: WriteBatch) throws {
        try database.begin(.immediate)
        for row in batch.changes {
            // 16 bytes, as the store packs a ccid of 32 hex digits, and as random as those.
            let packed: [UInt8] = withUnsafeBytes(of: UInt64(row.gid) &* 0x9E37_79B9_7F4A_7C15) {
                Array($0) + Array($0)
            }
            try change.bind(1, row.bucket).bind(2, row.gid).bind(3, row.key.text).bind(4, row.kind.rawValue)
                .bind(5, row.sourceVersion).bind(6, row.endVersion).bind(7, packed).bind(8, row.timestamp)
                .bind(9, row.diff).run()
            try ccid.bind(1, row.bucket).bind(2, packed).bind(3, row.gid).run()
            try version.bind(1, row.bucket).bind(2, row.key.text).bind(3, row.endVersion).bind(4, row.gid).run()
        }
        for write in batch.entities {
            try entity.bind(1, write.bucket).bind(2, write.record.key.text).bind(3, write.record.version)
                .bind(4, body).run()
        }
        for write in batch.buckets {
            try bucket.bind(1, write.row).bind(2, write.id.app.text).bind(3, write.id.user.text)
                .bind(4, write.id.name.text).bind(5, write.head).run()
        }
        try database.commit()
    }
}
