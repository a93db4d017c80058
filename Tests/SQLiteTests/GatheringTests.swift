import Glibc
import Synchronization
import Testing
@testable import ThicketFaultDisk
import ThicketTestSupport

@testable import ThicketSQLite

/// Writes of the log that are gathered (decision 0008): fewer calls, and no other visible difference.
@Suite("Gathered writes of the log") struct GatheringTests {
    private func put(_ keys: some Sequence<Int>, _ byte: UInt8, _ database: Database, bytes: Int = 3_000) throws {
        for key in keys {
            try database.statement("INSERT OR REPLACE INTO t VALUES (?1, ?2)").bind(1, Int64(key))
                .bind(2, [UInt8](repeating: byte, count: bytes)).run()
        }
    }

    private func content(_ database: Database) throws -> [Int64: UInt8] {
        var rows = [Int64: UInt8]()
        try database.statement("SELECT k, v FROM t").forEach { rows[$0.integer(0)] = $0.bytes(1).first ?? 0 }
        return rows
    }

    @Test("a commit of many pages is few writes, and other connections see all of it when it is over")
    func fewer() throws {
        let bench = try LogBench()
        let plain = try bench.writes {
            let database: Database = try bench.connect(gathers: false)
            try database.transaction(.immediate) { () throws(SQLiteError) in
                for key: Int64 in 0..<50 {
                    try database.statement("INSERT INTO t VALUES (?1, zeroblob(3000))").bind(1, key).run()
                }
            }
        }
        let (writer, reader) = try bench.pair()
        let gathered = try bench.writes {
            try writer.begin(.immediate)
            try put(50..<100, 7, writer)
            #expect(try content(reader).count == 50)
            try writer.commit()
        }
        #expect(try content(reader).count == 100)
        #expect(plain > 100)
        // 50 pages and some inner ones, 30 to a write.
        #expect(gathered <= 3)
        #expect(try reader.integrityFindings() == [])
    }

    @Test("a lone commit is one write")
    func lone() throws {
        let bench = try LogBench()
        let writer = try bench.connect(gathers: true)
        try put([1], 1, writer)
        #expect(try bench.writes { try put([2], 2, writer, bytes: 10) } == 1)
    }

    @Test("a transaction larger than its cache reads what it has written, and leaves nothing when it is rolled back")
    func spilling() throws {
        let bench = try LogBench()
        let (writer, reader) = try bench.pair()
        try writer.execute("PRAGMA cache_size=10")
        try put(0..<40, 1, writer)
        try writer.begin(.immediate)
        try put(0..<200, 2, writer)
        #expect(try content(writer).values.allSatisfy { $0 == 2 })
        try put(0..<200, 3, writer)
        #expect(try content(writer).count == 200)
        #expect(try content(reader) == Dictionary(uniqueKeysWithValues: (0..<40).map { (Int64($0), 1) }))
        writer.rollback()
        #expect(try content(writer) == content(reader))
        try writer.transaction(.immediate) { () throws(SQLiteError) in
            try writer.execute("UPDATE t SET v = x'09'")
        }
        #expect(try content(reader).values.allSatisfy { $0 == 9 })
        #expect(try reader.integrityFindings() == [])
    }

    @Test(
        "a write or sync that fails makes the commit fail; nothing of it is seen, and the next commit is whole",
        arguments: [FaultRule.Operation.write, .sync], [FaultRule.Failure.io, .full, .short])
    func failing(_ operation: FaultRule.Operation, _ failure: FaultRule.Failure) throws {
        let bench = try LogBench()
        let (writer, reader) = try bench.pair()
        try put(0..<10, 1, writer)
        // The first write of a transaction, or a later one.
        for skipping in 0..<2 {
            bench.disk.fail(FaultRule(operation, failure, skipping: skipping, times: 1, suffix: "-wal"))
            try writer.begin(.immediate)
            var isRefused = false
            do {
                try put(0..<60, 2, writer)
                try writer.commit()
            } catch {
                isRefused = true
                writer.rollback()
            }
            bench.disk.heal()
            #expect(isRefused == (operation == .write || skipping == 0))
            if isRefused { #expect(try content(reader).values.allSatisfy { $0 == 1 }) }
            #expect(try content(writer) == content(reader))
            try writer.execute("DELETE FROM t WHERE k >= 10; UPDATE t SET v = x'01'")
            #expect(try content(reader).count == 10)
        }
        #expect(try reader.integrityFindings() == [])
    }

    @Test("a full disk that undoes one statement only leaves the earlier statements of the transaction as they are")
    func goingOn() throws {
        let bench = try LogBench()
        let (writer, reader) = try bench.pair()
        try writer.execute(
            """
            CREATE TABLE u (k INTEGER PRIMARY KEY, v BLOB NOT NULL, n NOT NULL UNIQUE);
            WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
            INSERT INTO u SELECT i, zeroblob(3000), i FROM c;
            PRAGMA cache_size=10
            """)
        try writer.begin(.immediate)
        // More than the cache holds, and less than is gathered at most.
        try writer.execute("UPDATE u SET v = CAST(printf('%3000d', k) AS BLOB) WHERE k <= 25")
        bench.disk.fail(FaultRule(.write, .full, times: 1, suffix: "-wal"))
        // The statement has several rows and a constraint, so that SQLite can undo it alone; it reads a page that is in
        // the log by now.
        #expect(throws: SQLiteError.self) { try writer.execute("UPDATE u SET v = v || 'x' WHERE k <= 25") }
        bench.disk.heal()
        #expect(writer.isInTransaction)
        try writer.commit()
        #expect(try reader.integer("SELECT count(*) FROM u WHERE v <> zeroblob(3000)") == 25)
        #expect(try reader.integrityFindings() == [])
    }

    @Test("a commit without a sync fails when it cannot be written", arguments: ["NORMAL", "OFF"])
    func unsynced(_ mode: String) throws {
        let bench = try LogBench()
        let (writer, reader): (Database, Database) = try bench.pair()
        try writer.execute("PRAGMA synchronous=\(mode)")
        try put(0..<10, 1, writer)
        bench.disk.fail(FaultRule(.write, .full, times: 1, suffix: "-wal"))
        #expect(throws: SQLiteError.self) {
            try writer.transaction(.immediate) { () throws(SQLiteError) in
                try writer.execute("UPDATE t SET v = x'02'")
            }
        }
        bench.disk.heal()
        #expect(try content(reader).values.allSatisfy { $0 == 1 })
        try put(10..<20, 3, writer)
        #expect(try content(reader).count == 20)
        #expect(try reader.integrityFindings() == [])
    }

    @Test("a reservation of log space that the disk does not have leaves the log as large as it was")
    func reserving() throws {
        let bench = try LogBench()
        let writer: Database = try bench.connect(gathers: true)
        try put([1], 1, writer)
        for skipping in 0..<4 {
            bench.disk.fail(FaultRule(.write, .full, skipping: skipping, times: 1, suffix: "-wal"))
            let before = try bench.logBytes()
            #expect(throws: SQLiteError.self) { try writer.reserveLog(bytes: 400_000) }
            #expect(try bench.logBytes() == before)
            bench.disk.heal()
        }
        try writer.reserveLog(bytes: 400_000)
        #expect(try bench.logBytes() == 400_000)
        #expect(try content(writer) == [1: 1])
    }

    @Test("a connection opened after a process was killed in a transaction finds what was committed")
    func unfinished() throws {
        let bench = try LogBench()
        var writer: Database? = try bench.connect(gathers: true)
        let keeper = try bench.connect(gathers: false)
        try writer?.execute("PRAGMA cache_size=10")
        try put(0..<30, 1, try #require(writer))
        try writer?.begin(.immediate)
        try put(0..<200, 2, try #require(writer))
        bench.disk.crash()
        writer = nil
        withExtendedLifetime(keeper) {}
        bench.disk.restart()
        let again = try bench.connect(gathers: true)
        #expect(try content(again) == Dictionary(uniqueKeysWithValues: (0..<30).map { (Int64($0), 1) }))
        #expect(try again.integrityFindings() == [])
    }

    @Test("whatever transactions, savepoints, checkpoints and other writers do, both kinds of connection see the same")
    func model() throws {
        var random = SeededRandom(seed: 77)
        for round in 0..<12 {
            let bench = try LogBench()
            let writers = [try bench.connect(gathers: true), try bench.connect(gathers: round % 2 == 0)]
            let reader = try bench.connect(gathers: false)
            var model = [Int64: UInt8]()
            for database in writers {
                try database.execute("PRAGMA cache_size=\(Int.random(in: 10...60, using: &random))")
            }
            for step in 0..<60 {
                let writer = writers[Int.random(in: 0..<2, using: &random)]
                var after = model
                try writer.begin(.immediate)
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let before = after
                    try writer.execute("SAVEPOINT s")
                    let first = Int.random(in: 0..<100, using: &random)
                    let keys = first..<(first + Int.random(in: 1...60, using: &random))
                    let byte = UInt8.random(in: 1...255, using: &random)
                    try put(keys, byte, writer, bytes: Int.random(in: 1...6_000, using: &random))
                    for key in keys { after[Int64(key)] = byte }
                    if Bool.random(using: &random) { #expect(try content(writer) == after) }
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        try writer.execute("ROLLBACK TO s")
                        after = before
                    }
                    try writer.execute("RELEASE s")
                }
                #expect(try content(reader) == model, "round \(round), step \(step)")
                if Int.random(in: 0..<4, using: &random) == 0 {
                    writer.rollback()
                } else {
                    try writer.commit()
                    model = after
                }
                #expect(try content(reader) == model, "round \(round), step \(step)")
                switch Int.random(in: 0..<12, using: &random) {
                case 0: try writers[Int.random(in: 0..<2, using: &random)].checkpoint(.passive)
                case 1: try writers[Int.random(in: 0..<2, using: &random)].checkpoint(.restart)
                case 2: try writers[Int.random(in: 0..<2, using: &random)].checkpoint(.truncate)
                case 3: try writer.reserveLog(bytes: 600_000)
                default: break
                }
            }
            #expect(try reader.integrityFindings() == [])
        }
    }

    @Test(
        "in a file system without shared memory there is no log, and the database works with a journal",
        arguments: ["unix-dotfile", "unix-none"])
    func withoutSharedMemory(inner: String) throws {
        let bench = try LogBench()
        let path = bench.path + "-plain"
        defer { for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) } }
        let name = try #require(GatheringFileSystem.name(over: inner))
        #expect(name != inner)
        do {
            let database = try Database(path: path, vfs: name)
            // SQLite keeps its journal where it can have no log: it says so, and throws nothing.
            try database.execute("PRAGMA journal_mode=WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
            try put(0..<50, 3, database)
            try database.begin(.immediate)
            try put(0..<50, 4, database)
            database.rollback()
        }
        let again = try Database(path: path, vfs: name)
        #expect(try content(again) == Dictionary(uniqueKeysWithValues: (0..<50).map { (Int64($0), 3) }))
        #expect(try again.integrityFindings() == [])
        #expect(access(path + "-wal", F_OK) != 0)
    }

    @Test("a crash may cut a write of many pages between any two of them")
    func pieces() throws {
        let history = DiskHistory()
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
        bytes.withUnsafeBytes { history.recordWrite($0, at: 4_000, "f") }
        var whole = [UInt8]()
        for step in history.steps {
            guard case .write(let offset, let part) = step.action else { continue }
            #expect(offset == 4_000 + whole.count)
            #expect(offset / 4_096 == (offset + part.count - 1) / 4_096)
            whole += part
        }
        #expect(whole == bytes)
        #expect(history.steps.count == 4)
    }
}
