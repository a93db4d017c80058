import ThicketSQLite
import ThicketTreeShape

/// The needs-download marks in the store of nodes.
struct StoredMarks: DownloadMarkStore {
    let store: TreeStore

    func mark(of node: NodeID) throws(TreeError) -> DownloadMark? {
        try store.sql { (database) throws(SQLiteError) in
            try database.statement("SELECT node, version, components, sort FROM mark WHERE node = ?1")
                .bind(1, node.octets).first { Self.mark($0) } ?? nil
        }
    }

    mutating func setMark(_ mark: DownloadMark?, of node: NodeID) throws(TreeError) {
        try store.sql { (database) throws(SQLiteError) in
            guard let mark else {
                return try database.statement("DELETE FROM mark WHERE node = ?1").bind(1, node.octets).run()
            }
            try database.statement(
                "INSERT OR REPLACE INTO mark (node, version, components, sort) VALUES (?1, ?2, ?3, ?4)"
            ).bind(1, node.octets).bind(2, mark.version).bind(3, Int64(mark.components.rawValue))
                .bind(4, mark.order).run()
        }
    }

    func marks() throws(TreeError) -> [DownloadMark] {
        try store.sql { (database) throws(SQLiteError) in
            var marks = [DownloadMark]()
            try database.statement("SELECT node, version, components, sort FROM mark ORDER BY node").forEach { row in
                if let mark = Self.mark(row) { marks.append(mark) }
            }
            return marks
        }
    }

    mutating func nextOrder() throws(TreeError) -> Int64 {
        try store.sql { (database) throws(SQLiteError) in
            (try database.integer("SELECT max(sort) FROM mark") ?? 0) + 1
        }
    }

    /// Moves the marks to the versions that this device has: an older content cannot be downloaded any more.
    ///
    /// - Returns: all marks, what was marked last first.
    mutating func moved() throws(TreeError) -> [DownloadMark] {
        for mark in try marks() {
            guard let row = try store.row(mark.node), row.version > mark.version else { continue }
            try DownloadMarks.mark(mark.node, mark.components, version: row.version, in: &self)
        }
        return try DownloadMarks.pending(in: self) { _ throws(TreeError) in true }
    }

    private static func mark(_ row: Statement) -> DownloadMark? {
        guard let node = NodeID(octets: row.bytes(0)) else { return nil }
        return DownloadMark(
            node: node, version: row.integer(1),
            components: ContentComponents(rawValue: UInt8(truncatingIfNeeded: row.integer(2))), order: row.integer(3))
    }
}
