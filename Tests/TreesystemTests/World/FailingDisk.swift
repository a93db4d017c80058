import ThicketSQLite

@testable import ThicketTreesystem

/// A disk on which one statement of a turn fails, or all from one on.
final class FailingDisk {
    private let first: Int
    private let failsUntilTheEnd: Bool
    private var count = 0
    private(set) var hasFailed = false

    /// - Parameter first: the statement that fails, from 1.
    init(at first: Int, untilTheEnd: Bool = false) { (self.first, failsUntilTheEnd) = (first, untilTheEnd) }

    func statement() throws(TreeError) {
        count += 1
        guard failsUntilTheEnd ? count >= first : count == first else { return }
        hasFailed = true
        throw TreeError(.store, "the disk fails")
    }
}

extension TreeStore {
    /// All rows, as text.
    func dump() throws(TreeError) -> [String] {
        let tables = [
            (
                "node",
                "id parent name fold state version record changed modified burn tags data blob stored scan origin"
            ),
            (
                "operation",
                "id node is_delete fields from_parent from_name to_parent to_name group_id depends priority content "
                    + "state reason attempts waits_for held spool known options receiver"
            ),
            ("sent", "place request operation body"), ("kept", "id secret"), ("note", "name value"),
            ("quarantine", "id version record kind"), ("listed", "parent"),
            ("app", "collection key value sort"), ("mark", "node components version sort"),
            ("awaiting", "node user key baseline"), ("chain", "name state"),
            ("chain_gap", "name counter first node"), ("fork", "name counter known other"),
            ("own_chain", "conversation counter hash next_counter next_hash"), ("delivery", "node receiver time"),
        ]
        return try sql { (database) throws(SQLiteError) in
            var lines = [String]()
            for (table, columns) in tables {
                let values = columns.split(separator: " ").map { "quote(\($0))" }.joined(separator: " || ' ' || ")
                try database.statement("SELECT \(values) FROM \(table) ORDER BY 1").forEach {
                    lines.append("\(table) \($0.text(0))")
                }
            }
            return lines
        }
    }
}
