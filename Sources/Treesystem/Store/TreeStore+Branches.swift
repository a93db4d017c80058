import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// What the store keeps of shared branches.
extension TreeStore {
    /// Added to the tables of version 2:
    ///
    /// - `branch`: the believed list of each shared branch, by its root, as JSON; `since` is the number of the reading
    ///   in which it was believed first.
    /// - `branch_waiting`: nodes whose newest record, which is in `quarantine`, waits for keys.
    /// - `branch_accepted`: nodes that were shown and wait for their parent, with the versions that were judged.
    /// - `share_change`: what an operation changes in a list.
    static let branchSchema = """
        CREATE TABLE branch (root BLOB PRIMARY KEY, list BLOB NOT NULL, since INTEGER) WITHOUT ROWID;
        CREATE TABLE branch_waiting (node BLOB PRIMARY KEY, user TEXT NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE branch_accepted (node BLOB PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE share_change (operation INTEGER PRIMARY KEY, change BLOB NOT NULL);
        """

    // MARK: - Lists

    func branches() throws(TreeError) -> [(root: NodeID, list: ShareList, since: Int64?)] {
        try sql { (database) throws(SQLiteError) in
            var found = [(root: NodeID, list: ShareList, since: Int64?)]()
            try database.statement("SELECT root, list, since FROM branch").forEach { row in
                guard let root = NodeID(octets: row.bytes(0)), let json = try? JSONValue(parsing: row.bytes(1)),
                    let list = try? ShareList(json)
                else { return }
                found.append((root, list, row.optionalInteger(2)))
            }
            return found
        }
    }

    func setBranch(_ root: NodeID, _ list: ShareList, since: Int64?) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO branch (root, list, since) VALUES (?1, ?2, ?3)")
                .bind(1, root.octets).bind(2, list.json.serialized()).bind(3, since).run()
        }
    }

    func removeBranch(_ root: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM branch WHERE root = ?1").bind(1, root.octets).run()
        }
    }

    // MARK: - Records that wait for keys

    func branchWaiting() throws(TreeError) -> [(node: NodeID, question: KeyQuestion)] {
        try sql { (database) throws(SQLiteError) in
            var found = [(node: NodeID, question: KeyQuestion)]()
            try database.statement("SELECT node, user, key FROM branch_waiting").forEach { row in
                guard let id = NodeID(octets: row.bytes(0)), let user = try? UserID(row.text(1)) else { return }
                found.append((id, KeyQuestion(user, keyID: row.text(2))))
            }
            return found
        }
    }

    func setBranchWaiting(_ id: NodeID, _ question: KeyQuestion) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO branch_waiting (node, user, key) VALUES (?1, ?2, ?3)")
                .bind(1, id.octets).bind(2, question.user.text).bind(3, question.keyID ?? "").run()
        }
    }

    func endBranchWaiting(_ id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM branch_waiting WHERE node = ?1").bind(1, id.octets).run()
        }
    }

    func branchAccepted() throws(TreeError) -> [NodeID: Version] {
        try sql { (database) throws(SQLiteError) in
            var found = [NodeID: Version]()
            try database.statement("SELECT node, version FROM branch_accepted").forEach { row in
                if let id = NodeID(octets: row.bytes(0)) { found[id] = row.integer(1) }
            }
            return found
        }
    }

    func setBranchAccepted(_ id: NodeID, _ version: Version?) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            guard let version else {
                return try database.statement("DELETE FROM branch_accepted WHERE node = ?1").bind(1, id.octets).run()
            }
            try database.statement("INSERT OR REPLACE INTO branch_accepted (node, version) VALUES (?1, ?2)")
                .bind(1, id.octets).bind(2, version).run()
        }
    }

    // MARK: - Changes of lists

    func shareChange(_ id: OperationID) throws(TreeError) -> ShareChange? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT change FROM share_change WHERE operation = ?1").bind(1, id.number)
                .first { ShareChange(stored: $0.bytes(0)) } ?? nil
        }
    }

    func setShareChange(_ id: OperationID, _ change: ShareChange?) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            guard let change else {
                return try database.statement("DELETE FROM share_change WHERE operation = ?1").bind(1, id.number).run()
            }
            try database.statement("INSERT OR REPLACE INTO share_change (operation, change) VALUES (?1, ?2)")
                .bind(1, id.number).bind(2, change.stored).run()
        }
    }
}

extension ShareChange {
    /// `{"members":{user:letters},"end":bool,"renew":bool}`; a member that goes has no letters.
    fileprivate var stored: [UInt8] {
        var users = JSONObject()
        for (user, letters) in members.sorted(by: { $0.key.text < $1.key.text }) {
            users[user.text] = .string(letters.text)
        }
        return JSONValue.object(["members": .object(users), "end": .bool(isEnd), "renew": .bool(renews)]).serialized()
    }

    fileprivate init?(stored: [UInt8]) {
        guard case .object(let object)? = try? JSONValue(parsing: stored),
            case .object(let users)? = object["members"]
        else { return nil }
        var members = [UserID: SharePermissions]()
        for (name, letters) in users.pairs {
            guard let user = try? UserID(name), let text = letters.stringValue else { return nil }
            members[user] = SharePermissions(text: text) ?? []
        }
        self.init(members, isEnd: object["end"] == .bool(true), renews: object["renew"] == .bool(true))
    }
}
