import ThicketSQLite
import ThicketTreeShape

/// The nodes that an eager re-key has left, as a store keeps them.
struct RekeyRows {
    /// Added to the tables of version 3: `rekey` has a row for each node that an eager re-key has left, from the root
    /// of the branch down; `source` is the id of the content from which the one of its waiting operation was made.
    static let schema = """
        CREATE TABLE rekey (
            place INTEGER PRIMARY KEY, node BLOB NOT NULL UNIQUE, root BLOB NOT NULL, source BLOB);
        CREATE INDEX rekey_root ON rekey (root, place);
        """

    let store: TreeStore

    func add(_ node: NodeID, of root: NodeID) throws(TreeError) {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR IGNORE INTO rekey (node, root) VALUES (?1, ?2)")
                .bind(1, node.octets).bind(2, root.octets).run()
        }
    }

    /// The root of the branch whose re-key has left the node.
    func root(_ node: NodeID) throws(TreeError) -> NodeID? {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("SELECT root FROM rekey WHERE node = ?1").bind(1, node.octets)
                .first { NodeID(octets: $0.bytes(0)) } ?? nil
        }
    }

    func source(_ node: NodeID) throws(TreeError) -> DataID? {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("SELECT source FROM rekey WHERE node = ?1").bind(1, node.octets)
                .first { $0.optionalBytes(0).flatMap { DataID(octets: $0) } } ?? nil
        }
    }

    func setSource(_ node: NodeID, _ source: DataID?) throws(TreeError) {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("UPDATE rekey SET source = ?2 WHERE node = ?1")
                .bind(1, node.octets).bind(2, source?.octets).run()
        }
    }

    func end(_ node: NodeID) throws(TreeError) {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM rekey WHERE node = ?1").bind(1, node.octets).run()
        }
    }

    func endAll(of root: NodeID) throws(TreeError) {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM rekey WHERE root = ?1").bind(1, root.octets).run()
        }
    }

    func count(of root: NodeID) throws(TreeError) -> Int {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("SELECT count(*) FROM rekey WHERE root = ?1").bind(1, root.octets)
                .first { Int($0.integer(0)) } ?? 0
        }
    }

    /// The nodes of a branch that are left behind a place, in order.
    func nodes(
        of root: NodeID, after place: Int64, limit: Int
    ) throws(TreeError) -> [(place: Int64, node: NodeID)] {
        try store.sql { (database) throws(SQLiteError) in
            var found = [(place: Int64, node: NodeID)]()
            try database.statement(
                "SELECT place, node FROM rekey WHERE root = ?1 AND place > ?2 ORDER BY place LIMIT ?3"
            ).bind(1, root.octets).bind(2, place).bind(3, Int64(limit)).forEach { row in
                if let node = NodeID(octets: row.bytes(1)) { found.append((row.integer(0), node)) }
            }
            return found
        }
    }
}

extension TreeStore {
    var rekeys: RekeyRows { RekeyRows(store: self) }
}
