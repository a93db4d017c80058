import ThicketSQLite

/// What a server's database stores of trees.
struct TreeHoldings {
    let nodes: Int
    let blobs: Int
    let blobBytes: Int
    /// A few nodes as the server has them.
    let excerpt: [String]

    private static let rows = 3

    /// - Parameter folder: the server's data folder.
    init(_ folder: String) throws {
        let database = try Database(path: folder + "/thicket.db", mode: .readOnly)
        nodes = Int(try database.integer("SELECT count(*) FROM node") ?? 0)
        blobs = Int(try database.integer("SELECT count(*) FROM blob") ?? 0)
        blobBytes = Int(try database.integer("SELECT coalesce(sum(length), 0) FROM blob") ?? 0)
        var lines = [String]()
        try database.statement(
            "SELECT hex(id), hex(parent), hex(tag) FROM node ORDER BY id LIMIT \(Self.rows)"
        ).forEach { (row) throws(SQLiteError) in
            lines.append("node \(row.text(0)), below \(row.text(1)), tag of the name \(row.text(2))")
        }
        excerpt = lines
    }
}
