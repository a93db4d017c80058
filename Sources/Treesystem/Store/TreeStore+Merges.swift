import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// What a waiting change of a content was made from.
struct MergeBase {
    /// The version of the content.
    var data: DataID
    /// The content; nil for one in a blob, while it was not read.
    var content: NodeContent?
    /// What opens a content in a blob.
    var plan: ContentSpool?
    /// Whether the server has another version since, with which the waiting one must be merged.
    var isBehind = false

    /// What counts for `MergeLimits.basesBytesMax`.
    var bytes: Int64 { Int64(clamping: (plan?.map.sizes ?? (try? content?.sizes))?.length ?? 0) }
}

/// What the store keeps of contents that may have to be merged.
extension TreeStore {
    /// Added to the tables of version 3: `base`, a row for each node with a waiting change of its content
    /// (`MergeBase`); `content` in the form of `HeldContent`.
    static let mergeSchema = """
        CREATE TABLE base (
            node BLOB PRIMARY KEY, data BLOB NOT NULL, content BLOB, plan BLOB, bytes INTEGER NOT NULL,
            behind INTEGER NOT NULL);
        """

    func base(of id: NodeID) throws(TreeError) -> MergeBase? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT data, content, plan, behind FROM base WHERE node = ?1").bind(1, id.octets)
                .first { row in
                    DataID(octets: row.bytes(0)).map { data in
                        MergeBase(
                            data: data, content: row.optionalBytes(1).flatMap(HeldContent.content),
                            plan: row.optionalBytes(2).flatMap { ContentSpool(octets: $0) },
                            isBehind: row.integer(3) != 0)
                    }
                } ?? nil
        }
    }

    func setBase(_ base: MergeBase?, of id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            guard let base else {
                return try database.statement("DELETE FROM base WHERE node = ?1").bind(1, id.octets).run()
            }
            try database.statement(
                """
                INSERT OR REPLACE INTO base (node, data, content, plan, bytes, behind)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                """
            )
            .bind(1, id.octets).bind(2, base.data.octets).bind(3, base.content.map(HeldContent.octets))
            .bind(4, base.plan?.octets).bind(5, base.bytes).bind(6, base.isBehind ? 1 : 0).run()
        }
    }

    /// All nodes with a base, its bytes, and whether it is behind.
    func bases() throws(TreeError) -> [(node: NodeID, bytes: Int64, isBehind: Bool)] {
        try sql { (database) throws(SQLiteError) in
            var found = [(node: NodeID, bytes: Int64, isBehind: Bool)]()
            try database.statement("SELECT node, bytes, behind FROM base").forEach { row in
                guard let id = NodeID(octets: row.bytes(0)) else { return }
                found.append((id, row.integer(1), row.integer(2) != 0))
            }
            return found
        }
    }
}
