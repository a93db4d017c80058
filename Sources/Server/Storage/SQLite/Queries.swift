import ThicketSQLite

/// The frequently run prepared reads of one connection; rare ones are looked up by their text.
struct Queries {
    let entity: Statement
    let state: Statement
    let entities: Statement
    let link: Statement
    let step: Statement
    let replay: Statement
    let stretch: Statement
    let change: Statement
    let changeID: Statement
    let keptBody: Statement
    let clientName: Statement
    let bucket: Statement
    let bucketRow: Statement
    let bucketMarks: Statement
    let oldChangeID: Statement
    let segmentFor: Statement
    let segmentBelow: Statement
    let segmentContent: Statement
    let nodes: NodeQueries

    init(_ database: Database) throws(SQLiteError) {
        entity = try database.prepare("SELECT ver, gid, kf, dead, born FROM ent WHERE b = ?1 AND k = ?2")
        state = try database.prepare(
            """
            SELECT max(ifnull((SELECT max(gid) FROM chg), 0), ifnull((SELECT v FROM meta WHERE k = 'heads'), 0))
            """)
        entities = try database.prepare("SELECT k, ver, gid, dead FROM ent WHERE b = ?1")
        link = try database.prepare("SELECT b, op, sv, ev, pe, pk, pb, ts FROM chg WHERE gid = ?1")
        step = try database.prepare("SELECT b, k, op, ev, pe, pb FROM chg WHERE gid = ?1")
        replay = try database.prepare("SELECT op, sv, pe, diff, snap FROM chg WHERE gid = ?1")
        stretch = try database.prepare(
            "SELECT gid, op, sv, diff, snap FROM chg WHERE gid >= ?1 AND gid <= ?2 ORDER BY gid DESC")
        change = try database.prepare(
            "SELECT b, k, op, sv, ev, pe, pk, pb, client, ccid, ts, diff, snap, aud FROM chg WHERE gid = ?1")
        changeID = try database.prepare("SELECT pb, ccid FROM chg WHERE gid = ?1")
        keptBody = try database.prepare("SELECT body FROM ver WHERE b = ?1 AND k = ?2 AND ver = ?3")
        clientName = try database.prepare("SELECT name FROM client WHERE id = ?1")
        bucket = try database.prepare(
            "SELECT id, head, floor, mode FROM bucket WHERE app = ?1 AND owner = ?2 AND name = ?3")
        bucketRow = try database.prepare("SELECT head, floor FROM bucket WHERE id = ?1")
        bucketMarks = try database.prepare("SELECT head, floor, settled FROM bucket WHERE id = ?1")
        oldChangeID = try database.prepare("SELECT 1 FROM old_ccid WHERE b = ?1 AND h = ?2")
        segmentFor = try database.prepare(
            "SELECT id, high FROM seg WHERE b = ?1 AND high >= ?2 ORDER BY high LIMIT 1")
        segmentBelow = try database.prepare(
            "SELECT high FROM seg WHERE b = ?1 AND high < ?2 ORDER BY high DESC LIMIT 1")
        segmentContent = try database.prepare("SELECT content FROM seg WHERE id = ?1")
        nodes = try NodeQueries(database)
    }
}
