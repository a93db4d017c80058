import ThicketSQLite
import ThicketTreeShape

/// Reads for the app's calls.
extension TreeStore {
    /// A page of children by folded name.
    ///
    /// - Parameter last: the last row of the page before; nil for the first.
    package func page(of parent: NodeParent, after last: NodeRow?, limit: Int) throws(TreeError) -> [NodeRow] {
        try sql { (database) throws(SQLiteError) in
            var rows = [NodeRow]()
            let condition = last == nil ? "" : "AND (fold, id) > (?3, ?4)"
            let statement = try database.statement(
                """
                SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 AND state = 0 \(condition)
                ORDER BY fold, id LIMIT ?2
                """)
            statement.bind(1, parent.stored).bind(2, Int64(limit))
            if let last { statement.bind(3, last.name?.folded).bind(4, last.id.octets) }
            try statement.forEach { if let row = NodeRow($0) { rows.append(row) } }
            return rows
        }
    }

    /// Whether the newest confirmed state of a node has this content.
    package func hasContent(_ id: DataID) throws(TreeError) -> Bool {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT 1 FROM node WHERE data = ?1 AND version > 0 LIMIT 1").bind(1, id.octets)
                .first { _ in true } ?? false
        }
    }
}
