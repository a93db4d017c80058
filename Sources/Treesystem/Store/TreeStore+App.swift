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

    /// A page of a collection by order and key, behind a value of it.
    package func appPage(
        _ collection: String, after last: AppValue?, isDescending: Bool, limit: Int
    ) throws(TreeError) -> [AppValue] {
        let (sign, way) = isDescending ? ("<", " DESC") : (">", "")
        let beyond = last == nil ? "" : " AND (sort, key) \(sign) (?3, ?4)"
        let text =
            "SELECT key, value, sort FROM app WHERE collection = ?1\(beyond) ORDER BY sort\(way), key\(way) LIMIT ?2"
        return try sql { (database) throws(SQLiteError) in
            var statement = try database.statement(text).bind(1, collection).bind(2, Int64(max(0, limit)))
            if let last { statement = statement.bind(3, last.order).bind(4, last.key) }
            var values = [AppValue]()
            try statement.forEach {
                values.append(AppValue(key: $0.text(0), value: $0.bytes(1), order: $0.integer(2)))
            }
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
