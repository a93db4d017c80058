import ThicketProtocol
import ThicketSQLite

/// What the log says of heads that `ent` does not have yet.
extension LateHeads {
    /// Reads them, within one state of the store.
    static func load(_ database: Database, countMax: Int) throws(StoreError) -> LateHeads {
        let mark: GlobalID = try storing("reading meta") { () throws(SQLiteError) in
            try Meta.integer(Meta.heads, database) ?? 0
        }
        var newest: [BucketRow: [EntityKey: EntityRecord]] = [:]
        for row: LogRow in try rows(after: mark, database) {
            var born: Version? = row.madeVersion
            if row.isSealed, row.sourceVersion != nil {
                let before: EntityRecord? = newest[row.bucket]?[row.key]
                born = if let before { before.born } else { try storedBirth(row, database) }
            }
            newest[row.bucket, default: [:]][row.key] = EntityRecord(
                key: row.key, version: row.version, gid: row.gid, keyframe: row.keyframe, isDeleted: row.isRemoval,
                born: row.isSealed ? born : nil)
        }
        let late: LateHeads = .init(mark: mark, countMax: countMax)
        late.publish(newest.flatMap { (bucket, records) in Self.sorted(records.values, bucket) })
        return late
    }

    /// Writes all of them into `ent`, inside of a transaction that writes: where no server does, or may be waiting.
    static func settle(_ database: Database) throws(SQLiteError) {
        let late: LateHeads
        do {
            late = try load(database, countMax: 1)
        } catch {
            throw SQLiteError.refused(error.description)
        }
        try HeadWriter(database).write(late.whole(), database)
    }

    /// A row of the log, as far as it makes a head.
    private struct LogRow {
        let gid: GlobalID
        let bucket: BucketRow
        let key: EntityKey
        let isRemoval: Bool
        let sourceVersion: Version?
        let version: Version
        let keyframe: GlobalID
        let isSealed: Bool

        /// The version that a creation made.
        var madeVersion: Version? { isRemoval ? nil : version }
    }

    private static func rows(after mark: GlobalID, _ database: Database) throws(StoreError) -> [LogRow] {
        typealias Raw = (
            gid: GlobalID, bucket: BucketRow, key: String, isRemoval: Bool, sourceVersion: Version?, version: Version,
            keyframe: GlobalID, isSealed: Bool
        )
        var found: [Raw] = []
        try storing("reading the log's end") { () throws(SQLiteError) in
            // CROSS JOIN keeps the order of the loops: along the log, each row's bucket looked up.
            try database.statement(
                """
                SELECT c.gid, c.b, c.k, c.op, c.sv, c.ev, iif(c.snap IS NULL, c.pk, c.gid), u.mode
                FROM chg AS c CROSS JOIN bucket AS u WHERE c.gid > ?1 AND u.id = c.b ORDER BY c.gid
                """
            ).bind(1, mark).forEach { (row) throws(SQLiteError) in
                found.append(
                    (
                        row.integer(0), row.integer(1), row.text(2), row.integer(3) != 0, row.optionalInteger(4),
                        row.integer(5), row.integer(6), BucketMode(stored: row.integer(7)) == .sealed
                    ))
            }
        }
        var rows: [LogRow] = []
        rows.reserveCapacity(found.count)
        for raw: Raw in found {
            rows.append(
                LogRow(
                    gid: raw.gid, bucket: raw.bucket, key: try .stored(raw.key), isRemoval: raw.isRemoval,
                    sourceVersion: raw.sourceVersion, version: raw.version, keyframe: raw.keyframe,
                    isSealed: raw.isSealed))
        }
        return rows
    }

    /// Since when the object is the same one, as `ent` has it.
    private static func storedBirth(_ row: LogRow, _ database: Database) throws(StoreError) -> Version? {
        try storing("reading an object's head") { () throws(SQLiteError) in
            try database.statement("SELECT born FROM ent WHERE b = ?1 AND k = ?2").bind(1, row.bucket)
                .bind(2, row.key.text).first { $0.optionalInteger(0) } ?? nil
        }
    }
}

/// Writes heads into `ent`.
struct HeadWriter {
    private let head: Statement

    init(_ database: Database) throws(SQLiteError) {
        // Somebody beside the server may have written a later one (`settle`): that stays.
        head = try database.prepare(
            """
            INSERT INTO ent (b, k, ver, gid, kf, dead, born) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (b, k) DO UPDATE SET ver = excluded.ver, gid = excluded.gid, kf = excluded.kf,
                dead = excluded.dead, born = excluded.born WHERE excluded.gid > ent.gid
            """)
    }

    /// Inside of a transaction.
    func write(_ slice: LateHeads.Slice, _ database: Database) throws(SQLiteError) {
        for entity: WriteBatch.EntityWrite in slice.heads { try write(entity) }
        if let mark: GlobalID = slice.mark { try Meta.set(Meta.heads, mark, database) }
    }

    private func write(_ entity: WriteBatch.EntityWrite) throws(SQLiteError) {
        head.bind(1, entity.bucket)
        head.bind(3, entity.record.version)
        head.bind(4, entity.record.gid)
        head.bind(5, entity.record.keyframe)
        head.bind(6, entity.record.isDeleted ? 1 : 0)
        head.bind(7, entity.record.born)
        let failure: SQLiteError? = entity.record.key.text.withBytes { key in
            head.bind(2, textInPlace: key)
            return head.runLent()
        }
        if let failure { throw failure }
    }
}
