import Testing
@testable import ThicketFaultDisk
import ThicketTestSupport

@testable import ThicketSQLite

/// A transaction in which reads fail, and which is rolled back. SQLite 3.40 may keep pages of it, and write them with a
/// later transaction of the same connection: the seeds give such cases, found among 700, with and without gathered
/// writes.
@Suite("Reads that fail in a transaction that is rolled back") struct FailingReadTests {
    private typealias Rows = [Int64: String]

    private func content(_ database: Database) throws -> Rows {
        var rows: Rows = [:]
        try database.prepare("SELECT k, v || ':' || length(p) FROM t").forEach { rows[$0.integer(0)] = $0.text(1) }
        return rows
    }

    /// One step of a transaction; `rows` becomes its result.
    private func change(
        _ database: Database, _ rows: inout Rows, _ saved: inout [Rows], _ unique: inout Int64,
        _ random: inout SeededRandom
    ) throws {
        let (first, count): (Int64, Int64) = (.random(in: 0..<150, using: &random), .random(in: 1...40, using: &random))
        let bytes = Int.random(in: 0...5_000, using: &random)
        let keys = first..<first + count
        switch Int.random(in: 0..<10, using: &random) {
        case 0...3:
            let base = unique
            unique += 1_000
            try database.execute(
                """
                WITH RECURSIVE c(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM c WHERE i < \(first + count - 1))
                INSERT OR REPLACE INTO t SELECT i, i + \(base), zeroblob(\(bytes)) FROM c
                """)
            for key in keys { rows[key] = "\(base + key):\(bytes)" }
        case 4, 5:
            try database.execute(
                "UPDATE t SET p = zeroblob(length(p) + 1) WHERE k >= \(first) AND k < \(first + count)")
            for key in keys {
                guard let parts: [Substring] = rows[key]?.split(separator: ":"), let length = Int(parts[1]) else {
                    continue
                }
                rows[key] = "\(parts[0]):\(length + 1)"
            }
        case 6:
            try database.execute("DELETE FROM t WHERE k >= \(first) AND k < \(first + count)")
            for key in keys { rows[key] = nil }
        case 7:
            try database.execute("SAVEPOINT s")
            saved.append(rows)
        case 8:
            guard let before = saved.last else { return }
            try database.execute("ROLLBACK TO s")
            rows = before
        default: #expect(try content(database) == rows)
        }
    }

    @Test("nothing of the transaction is left behind", arguments: [UInt64(69), 189, 657], [true, false])
    func nothingIsLeft(_ seed: UInt64, _ gathers: Bool) throws {
        var random = SeededRandom(seed: seed)
        let bench = try LogBench()
        let plain = try bench.connect(gathers: false)
        try plain.execute(
            "DROP TABLE t; CREATE TABLE t (k INTEGER PRIMARY KEY, v INT NOT NULL UNIQUE, p BLOB NOT NULL)")
        let writer = try bench.connect(gathers: gathers)
        try writer.execute("PRAGMA cache_size=\(Int.random(in: 5...40, using: &random))")
        let reader: Database = try bench.connect(gathers: false)
        if Bool.random(using: &random) {
            try writer.reserveLog(bytes: Int.random(in: 1...1_500_000, using: &random))
        }
        var (model, unique): (Rows, Int64) = ([:], 0)
        for step: Int in 0..<60 {
            let database: Database = Int.random(in: 0..<4, using: &random) != 0 ? writer : plain
            var (rows, saved): (Rows, [Rows]) = (model, [])
            try database.begin(.immediate)
            let isFailing = Int.random(in: 0..<2, using: &random) == 0
            let failing = Int.random(in: 0..<6, using: &random)
            do {
                for number in 0..<Int.random(in: 1...7, using: &random) {
                    if isFailing, number == failing { fail(bench.disk, &random) }
                    try change(database, &rows, &saved, &unique, &random)
                }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    database.rollback()
                } else {
                    try database.commit()
                    model = rows
                }
            } catch {
                database.rollback()
            }
            bench.disk.heal()
            try #require(try content(reader) == model, "seed \(seed), step \(step)")
            switch [0, 3, 13, 13, 13].randomElement(using: &random) ?? 0 {
            case 0: try writer.checkpoint(.passive)
            case 3: try writer.checkpoint(.restart)
            default: break
            }
        }
        #expect(try reader.integrityFindings() == [])
    }

    private func fail(_ disk: FaultVFS, _ random: inout SeededRandom) {
        _ = [0, 0].randomElement(using: &random)
        let skipping = Int.random(in: 0..<(Bool.random(using: &random) ? 1 : 6), using: &random)
        let times = Int.random(in: 1...2, using: &random)
        disk.fail(
            FaultRule(.read, .io, skipping: skipping, times: times, suffix: Bool.random(using: &random) ? "-wal" : nil))
    }
}
