import Glibc
import Testing
@testable import ThicketFaultDisk
import ThicketSQLite

@Suite("SQLite wrapper") struct DatabaseTests {
    @Test("values come back as they were bound")
    func roundTrip() throws {
        let database = try Database(path: ":memory:")
        try database.execute("CREATE TABLE t (a, b BLOB, c TEXT)")
        let insert = try database.prepare("INSERT INTO t VALUES (?1, ?2, ?3)")
        let large = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let rows: [(Int64?, [UInt8]?, String)] = [
            (1, [], ""), (.max, [0, 1, 255], "e\u{301}"), (.min, nil, "\u{0}x"), (nil, large, "🌲"),
        ]
        for (number, bytes, text) in rows { try insert.bind(1, number).bind(2, bytes).bind(3, text).run() }
        var place = 0
        try database.statement("SELECT a, b, c, typeof(b), typeof(c) FROM t ORDER BY rowid").forEach { row in
            #expect(row.optionalInteger(0) == rows[place].0)
            #expect(row.optionalBytes(1) == rows[place].1)
            #expect(row.bytes(2) == Array(rows[place].2.utf8))
            #expect(row.text(3) == (rows[place].1 == nil ? "null" : "blob"))
            #expect(row.text(4) == "text" && row.isText(2))
            place += 1
        }
        #expect(place == 4)
    }

    @Test("bytes bound in place are stored, and read without a copy")
    func inPlace() throws {
        let database = try Database(path: ":memory:")
        try database.execute("CREATE TABLE t (b)")
        let bytes: [UInt8] = Array(repeating: 7, count: 70_000)
        try bytes.withUnsafeBufferPointer { (buffer) throws(SQLiteError) in
            try database.statement("INSERT INTO t VALUES (?1)").bind(1, inPlace: UnsafeRawBufferPointer(buffer)).run()
        }
        let sum = try database.statement("SELECT b FROM t").first { row in
            row.withBytes(0) { $0.reduce(0) { $0 + Int($1) } }
        }
        #expect(sum == 490_000)
    }

    @Test("a statement is prepared once and may outlive its connection")
    func statements() throws {
        var database: Database? = try .init(path: ":memory:")
        let first = try database?.statement("SELECT 41 + ?1")
        #expect(try database?.statement("SELECT 41 + ?1") === first)
        let kept = try database?.prepare("SELECT 2")
        database = nil
        #expect(try first?.bind(1, 1).first { $0.integer(0) } == 42)
        #expect(try kept?.first { $0.integer(0) } == 2)
    }

    @Test("a failed transaction leaves nothing, and the next one works")
    func transaction() throws {
        let database = try Database(path: ":memory:")
        try database.execute("CREATE TABLE t (a UNIQUE)")
        let error = #expect(throws: SQLiteError.self) {
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try database.execute("INSERT INTO t VALUES (1)")
                try database.execute("INSERT INTO t VALUES (1)")
            }
        }
        #expect(error?.isConstraint == true)
        #expect(!database.isInTransaction)
        #expect(try database.integer("SELECT count(*) FROM t") == 0)
        try database.transaction(.immediate) { () throws(SQLiteError) in
            try database.execute("INSERT INTO t VALUES (1)")
        }
        #expect(try database.integer("SELECT count(*) FROM t") == 1)
    }

    @Test("each kind of error is distinguished")
    func errors() throws {
        let folder = Folder()
        let missing = #expect(throws: SQLiteError.self) {
            try Database(path: folder.path("none/x.db"), mode: .readWrite)
        }
        #expect(missing?.isCannotOpen == true)
        let database = try Database(path: folder.path("a.db"))
        try database.execute("PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
        let syntax = #expect(throws: SQLiteError.self) { try database.prepare("SELEC 1") }
        #expect(syntax?.code == 1)
        try database.limitPages(3)
        let full = #expect(throws: SQLiteError.self) {
            try database.statement("INSERT INTO t VALUES (zeroblob(100000))").run()
        }
        #expect(full?.isFull == true)
        try database.limitPages(1_000)
        try database.statement("INSERT INTO t VALUES (zeroblob(100000))").run()
        let other = try Database(path: folder.path("a.db"), busyTimeoutMilliseconds: 10)
        try database.begin(.immediate)
        let busy = #expect(throws: SQLiteError.self) { try other.begin(.immediate) }
        #expect(busy?.isBusy == true)
        try database.commit()
        let reader = try Database(path: folder.path("a.db"), mode: .readOnly)
        let readOnly = #expect(throws: SQLiteError.self) { try reader.execute("DELETE FROM t") }
        #expect(readOnly?.isReadOnly == true)
        let bad = #expect(throws: SQLiteError.self) {
            _ = try database.statement("SELECT 1").bind(5, 1).step()
        }
        #expect(bad?.code == 25)
    }

    @Test("the log's pages are counted, and a checkpoint empties the log")
    func logPages() throws {
        let folder = Folder()
        let database = try Database(path: folder.path("a.db"))
        try database.execute("PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
        database.watchLog()
        try database.execute("INSERT INTO t VALUES (zeroblob(200000))")
        #expect(database.walPages > 48)
        #expect(try database.checkpoint(.truncate).pages == 0)
        try database.execute("INSERT INTO t VALUES (1)")
        #expect(database.walPages < 5)
        #expect(try database.integrityFindings() == [])
    }

    // MARK: The failing disk

    @Test("a failing write or sync is an I/O error, a full disk is full, and the next write succeeds after either")
    func faults() throws {
        for (number, failure) in [FaultRule.Failure.io, .full].enumerated() {
            for operation: FaultRule.Operation in [.write, .sync] {
                let folder = Folder()
                let disk = FaultVFS(name: "faults-\(number)-\(operation)")
                let database = try Database(path: folder.path("a.db"), vfs: disk.name)
                try database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (a)")
                disk.fail(FaultRule(operation, failure, times: 1, suffix: "-wal"))
                let error = #expect(throws: SQLiteError.self) {
                    try database.execute("INSERT INTO t VALUES (1)")
                }
                #expect(error?.isFull == (failure == .full) && error?.isIO == (failure == .io))
                try database.execute("INSERT INTO t VALUES (2)")
                #expect(try database.integer("SELECT sum(a) FROM t") == 2)
            }
        }
    }

    @Test("a crash loses what was not synced and keeps what was")
    func crash() throws {
        let folder = Folder()
        let disk = FaultVFS(name: "crash")
        do {
            let database = try Database(path: folder.path("a.db"), vfs: disk.name)
            try database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (a)")
            try database.execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
            try database.execute("PRAGMA synchronous=OFF; INSERT INTO t VALUES (4)")
            disk.crash()
            #expect(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (8)") }
        }
        disk.restart()
        let database = try Database(path: folder.path("a.db"), vfs: disk.name)
        #expect(try database.integer("SELECT sum(a) FROM t") == 3)
        #expect(try database.integrityFindings() == [])
    }
}

/// A folder that is removed with the test.
private final class Folder {
    let path: String

    init() {
        var template = Array("/tmp/thicket-sqlite-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? ""
        precondition(!path.isEmpty, "no temporary folder could be made")
    }

    func path(_ name: String) -> String { path + "/" + name }

    deinit {
        for name in ["a.db", "a.db-wal", "a.db-shm", "a.db-journal"] { unlink(path(name)) }
        rmdir(path)
    }
}
