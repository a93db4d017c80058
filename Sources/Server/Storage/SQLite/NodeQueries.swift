import ThicketSQLite

/// The prepared reads of the table `node`.
struct NodeQueries {
    let place: Statement
    let atPlace: Statement
    let children: Statement

    init(_ database: Database) throws(SQLiteError) {
        place = try database.prepare("SELECT parent, tag FROM node WHERE b = ?1 AND id = ?2")
        atPlace = try database.prepare("SELECT id FROM node WHERE b = ?1 AND parent = ?2 AND tag = ?3")
        children = try database.prepare("SELECT id FROM node WHERE b = ?1 AND parent = ?2 ORDER BY tag LIMIT ?3")
    }
}
