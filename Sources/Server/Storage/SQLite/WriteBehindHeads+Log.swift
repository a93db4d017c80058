import ThicketProtocol
import ThicketSQLite

/// Finds in the log the heads that are missing in `ent`.
extension WriteBehindHeads {
    /// Reads these heads. Requires one state of the store, or that no process is writing.
    static func load(_ database: Database, changesMax: Int) throws(StoreError) -> WriteBehindHeads {
        let mark: GlobalID = try storing("reading meta") { () throws(SQLiteError) in
            try Meta.integer(Meta.heads, database) ?? 0
        }
        var newest = Newest()
        try forEachRow(after: mark, database) { (row) throws(StoreError) in
            let born =
                row.recordsBirth && row.sourceVersion != nil ? try birth(of: row, newest, database) : row.made
            newest.changes += 1
            newest.heads[row.bucket, default: [:]][row.key] = EntityRecord(
                key: row.key, version: row.version, gid: row.gid, keyframe: row.keyframe, isDeleted: row.isRemoval,
                born: row.recordsBirth ? born : nil)
        }
        let late = WriteBehindHeads(mark: mark, changesMax: changesMax)
        late.publish(newest.heads.flatMap { (bucket, records) in sorted(records.values, bucket) }, newest.changes)
        return late
    }

    /// Writes all of them into `ent`, inside a write transaction; for processes other than the server.
    static func writeAll(_ database: Database) throws(SQLiteError) {
        let late: WriteBehindHeads
        do {
            late = try load(database, changesMax: 1)
        } catch {
            throw SQLiteError.refused(error.description)
        }
        try HeadWriter(database).write(late.whole(), database)
    }

    /// The result of the rows read so far.
    private struct Newest {
        var heads = [BucketRow: [EntityKey: EntityRecord]]()
        var changes = 0
    }

    /// The columns of a log row that determine a head.
    private struct LogRow {
        let gid: GlobalID
        let bucket: BucketRow
        let key: EntityKey
        let isRemoval: Bool
        let sourceVersion: Version?
        let version: Version
        let keyframe: GlobalID
        let recordsBirth: Bool

        /// The version that a creation made; nil for a removal.
        var made: Version? { isRemoval ? nil : version }

        init(_ row: Statement) throws(StoreError) {
            gid = row.integer(0)
            bucket = row.integer(1)
            do {
                key = try .stored(row.text(2))
            } catch {
                throw StoreError(
                    .corrupt, "change \(row.integer(0)), which determines its object's head: \(error.detail)")
            }
            isRemoval = row.integer(3) != 0
            sourceVersion = row.optionalInteger(4)
            version = row.integer(5)
            keyframe = row.integer(6)
            recordsBirth = BucketMode(stored: row.integer(7)).recordsBirth
        }
    }

    private static func forEachRow(
        after mark: GlobalID, _ database: Database, _ body: (LogRow) throws(StoreError) -> Void
    ) throws(StoreError) {
        // CROSS JOIN fixes the order of the loops: along the log, with a look-up of each row's bucket.
        let rows = try storing("reading the log's end") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT c.gid, c.b, c.k, c.op, c.sv, c.ev, iif(c.snap IS NULL, c.pk, c.gid), u.mode
                FROM chg AS c CROSS JOIN bucket AS u WHERE c.gid > ?1 AND u.id = c.b ORDER BY c.gid
                """
            ).bind(1, mark)
        }
        defer { rows.reset() }
        while try storing("reading the log's end", { () throws(SQLiteError) in try rows.step() }) {
            try body(try LogRow(rows))
        }
    }

    /// The version at which an edited object was created.
    private static func birth(
        of row: LogRow, _ newest: Newest, _ database: Database
    ) throws(StoreError) -> Version? {
        if let before = newest.heads[row.bucket]?[row.key] { return before.born }
        do {
            return try storedBirth(of: row, database)
        } catch {
            // A page that cannot be read affects only this object: until the next start, the server takes only edits of
            // its newest version. If the page is sound, nothing is lost (`HeadWriter`); if not, `check` reports it.
            if error.isCorrupt || error.isIO { return nil }
            throw StoreError(error, "reading an object's head")
        }
    }

    /// Retries once after an I/O error, which may be temporary: a value missed here is missing until the next start.
    private static func storedBirth(of row: LogRow, _ database: Database) throws(SQLiteError) -> Version? {
        func read() throws(SQLiteError) -> Version? {
            try database.statement("SELECT born FROM ent WHERE b = ?1 AND k = ?2").bind(1, row.bucket)
                .bind(2, row.key.text).first { $0.optionalInteger(0) } ?? nil
        }
        do throws(SQLiteError) { return try read() } catch {
            guard error.isIO else { throw error }
            return try read()
        }
    }
}
