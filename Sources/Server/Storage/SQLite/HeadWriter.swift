import ThicketProtocol
import ThicketSQLite

/// Writes heads into `ent`.
struct HeadWriter {
    private let head: Statement

    init(_ database: Database) throws(SQLiteError) {
        // A process beside the server may have written a later head (`WriteBehindHeads.writeAll`); the condition on
        // `gid` keeps that one. If a start could not read the birth version of an edited object
        // (`WriteBehindHeads.load`), the value in the table is still right: an edit does not change the birth version.
        head = try database.prepare(
            """
            INSERT INTO ent (b, k, ver, gid, kf, dead, born) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (b, k) DO UPDATE SET ver = excluded.ver, gid = excluded.gid, kf = excluded.kf,
                dead = excluded.dead, born = iif(excluded.dead, NULL, coalesce(excluded.born, ent.born)) WHERE excluded.gid > ent.gid
            """)
    }

    /// Must be called inside a transaction.
    func write(_ slice: WriteBehindHeads.Slice, _ database: Database) throws(SQLiteError) {
        for entity in slice.heads { try write(entity) }
        if let mark = slice.mark { try Meta.set(Meta.heads, mark, database) }
    }

    private func write(_ entity: WriteBatch.EntityWrite) throws(SQLiteError) {
        head.bind(1, entity.bucket)
        head.bind(3, entity.record.version)
        head.bind(4, entity.record.gid)
        head.bind(5, entity.record.keyframe)
        head.bind(6, entity.record.isDeleted ? 1 : 0)
        head.bind(7, entity.record.born)
        let failure = entity.record.key.text.withBytes { key in
            head.bind(2, textInPlace: key)
            return head.runLent()
        }
        if let failure { throw failure }
    }
}
