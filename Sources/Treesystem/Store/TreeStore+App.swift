import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// What the app keeps beside the tree, and marks of nodes whose content it wants.
extension TreeStore {
    package func appValue(_ collection: String, _ key: String) throws(TreeError) -> [UInt8]? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT value FROM app WHERE collection = ?1 AND key = ?2")
                .bind(1, collection).bind(2, key).first { $0.bytes(0) }
        }
    }

    package func setAppValue(
        _ value: [UInt8]?, _ collection: String, _ key: String, order: Int64
    ) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            guard let value else {
                return try database.statement("DELETE FROM app WHERE collection = ?1 AND key = ?2")
                    .bind(1, collection).bind(2, key).run()
            }
            try database.statement(
                "INSERT OR REPLACE INTO app (collection, key, value, sort) VALUES (?1, ?2, ?3, ?4)"
            ).bind(1, collection).bind(2, key).bind(3, value).bind(4, order).run()
        }
    }

    /// The values of a collection, ascending by their order and key.
    package func appValues(_ collection: String, limit: Int) throws(TreeError) -> [(key: String, value: [UInt8])] {
        try sql { (database) throws(SQLiteError) in
            var values = [(key: String, value: [UInt8])]()
            try database.statement("SELECT key, value FROM app WHERE collection = ?1 ORDER BY sort, key LIMIT ?2")
                .bind(1, collection).bind(2, Int64(limit)).forEach { values.append(($0.text(0), $0.bytes(1))) }
            return values
        }
    }

    /// Marks sections of a node, in the version that this device knows, as to be downloaded.
    package func mark(_ id: NodeID, _ components: ContentComponents = .all) throws(TreeError) {
        guard let row = try row(id) else { return }
        var marks = StoredMarks(store: self)
        try DownloadMarks.mark(id, components, version: row.version, in: &marks)
    }
}
