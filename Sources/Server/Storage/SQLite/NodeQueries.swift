import ThicketSQLite

/// The prepared reads of the tables `node` and `batch`.
struct NodeQueries {
    let row: Statement
    let atPlace: Statement
    let children: Statement
    let newest: Statement
    let byTag: Statement
    let stats: Statement
    let burning: Statement
    let answer: Statement
    let oldAnswers: Statement
    let blob: Statement
    let usage: Statement
    let inboxCount: Statement
    let policy: Statement
    let listRoots: Statement
    let byMember: Statement

    /// The texts of the reads whose cost must not grow with the tree; a test holds their plans.
    enum Text {
        static let newest = """
            SELECT id, gid, tag FROM node WHERE b = ?1 AND parent = ?2 AND gid < ?3 ORDER BY gid DESC LIMIT ?4
            """
        static let byTag = """
            SELECT id, gid, tag FROM node WHERE b = ?1 AND parent = ?2 AND tag > ?3 ORDER BY tag LIMIT ?4
            """
        static let stats = """
            SELECT kids, (SELECT c.t FROM node AS c WHERE c.b = ?1 AND c.parent = ?2 ORDER BY c.gid DESC LIMIT 1)
            FROM node WHERE b = ?1 AND id = ?2
            """
        static let burning = """
            SELECT n.b, n.id, b.app, b.owner, b.name FROM node AS n CROSS JOIN bucket AS b ON b.id = n.b
            WHERE n.x <= ?1 ORDER BY n.x LIMIT ?2
            """
        static let inboxCount = """
            SELECT (SELECT count(*) FROM (SELECT 1 FROM node WHERE b = ?1 AND sender IS NOT NULL LIMIT ?3)),
                (SELECT count(*) FROM (SELECT 1 FROM node WHERE b = ?1 AND sender = ?2 LIMIT ?3))
            """
        static let listRoots = "SELECT id FROM node WHERE b = ?1 AND shared IS NOT NULL"
        static let byMember = "SELECT id FROM node WHERE b = ?1 AND parent = ?2 AND member = ?3 LIMIT ?4"
        static let oldAnswers = """
            SELECT b, id, length(answer) FROM batch WHERE ts < ?1 ORDER BY ts LIMIT ?2
            """
    }

    init(_ database: Database) throws(SQLiteError) {
        row = try database.prepare(
            "SELECT parent, tag, gid, t, x, blob, bytes, sender, member, shared FROM node WHERE b = ?1 AND id = ?2")
        atPlace = try database.prepare("SELECT id FROM node WHERE b = ?1 AND parent = ?2 AND tag = ?3")
        children = try database.prepare("SELECT id FROM node WHERE b = ?1 AND parent = ?2 ORDER BY tag LIMIT ?3")
        newest = try database.prepare(Text.newest)
        byTag = try database.prepare(Text.byTag)
        stats = try database.prepare(Text.stats)
        burning = try database.prepare(Text.burning)
        answer = try database.prepare("SELECT digest, answer, gid, ts FROM batch WHERE b = ?1 AND id = ?2")
        oldAnswers = try database.prepare(Text.oldAnswers)
        blob = try database.prepare(
            """
            SELECT length FROM blob WHERE id = ?1 AND (app = ?2 AND user = ?3
            OR EXISTS (SELECT 1 FROM node WHERE b = ?4 AND blob = ?1))
            """)
        inboxCount = try database.prepare(Text.inboxCount)
        policy = try database.prepare("SELECT content FROM inbox_policy WHERE app = ?1 AND user = ?2")
        listRoots = try database.prepare(Text.listRoots)
        byMember = try database.prepare(Text.byMember)
        usage = try database.prepare("SELECT nodes, bytes FROM tree_use WHERE b = ?1")
    }
}
