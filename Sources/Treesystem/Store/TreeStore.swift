package import ThicketClient
import ThicketSQLite
import ThicketTreeShape

/// A device's copy of one tree in SQLite: nodes, waiting operations, the position in the server's log, and what the app
/// keeps beside them.
///
/// Used by one thread. Everything that a turn of the machine decides is one transaction (`begin`, `commit`), in which
/// the delegate of the app writes too.
package final class TreeStore {
    let database: Database
    /// Keeps the file locked; nil for a store in memory.
    private let file: StoreFile?
    private let durability: StoreDurability
    /// Of rows that were written or asked for; forgotten with a transaction that is undone.
    var links = NodeLinks()
    /// Whether there may be rows that are not shown. Most trees have none, and each new node asks for those below it.
    private(set) var mayHaveHidden = true
    /// Called before each statement; a test counts them with it, or lets one of them fail.
    var beforeStatement: (() throws(TreeError) -> Void)?

    /// Pages in memory: the indexes of some 200,000 nodes. A page that is not in memory is read and opened again.
    private static let cacheKibibytes = 16 << 10

    /// The version of the schema. A newer one is refused.
    private static let formatVersion: Int64 = 4

    /// A store in memory.
    ///
    /// - Throws: `store`.
    package convenience init() throws(TreeError) {
        let database = try Self.guarded { () throws(SQLiteError) in try Database(path: ":memory:") }
        try self.init(database, file: nil, durability: .program)
    }

    /// - Throws: `store`, also for a file of a newer version.
    package convenience init(_ file: StoreFile, durability: StoreDurability = .program) throws(TreeError) {
        try self.init(file.database, file: file, durability: durability)
    }

    private init(_ database: Database, file: StoreFile?, durability: StoreDurability) throws(TreeError) {
        (self.database, self.file, self.durability) = (database, file, durability)
        try Self.guarded { () throws(SQLiteError) in
            try database.execute("PRAGMA cache_size=-\(Self.cacheKibibytes)")
        }
        let version = try Self.guarded { () throws(SQLiteError) in try database.integer("PRAGMA user_version") ?? 0 }
        guard version <= Self.formatVersion else {
            throw TreeError(.store, "the local tree was made by a newer version (format \(version))")
        }
        guard version < Self.formatVersion else { return }
        try Self.guarded { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                if version == 0 { try database.execute(Self.schema) }
                if version < 2 { try database.execute(Self.messageSchema) }
                if version < 3 { try database.execute(Self.branchSchema) }
                try database.execute(RekeyRows.schema)
                try database.execute(Self.mergeSchema)
                try database.execute("PRAGMA user_version=\(Self.formatVersion)")
            }
        }
    }

    /// Tables:
    ///
    /// - `note`: named values (`cv`, `owner`, `app`, …).
    /// - `node`: a row for each node, in the order in which they became known: ids are random, and rows in their order
    ///   would be written all over the file. `parent` is 16 bytes, or the one letter of a trunk; `fold` the folded
    ///   name; `state` a `NodeRow.State`; `version` and `record` what the server has (0 and NULL: nothing); the other
    ///   columns are the node as this device sees it.
    /// - `operation`: a row for each waiting operation (`PendingOperation`); `reason` why it failed, or its `trouble`;
    ///   `held` its content, `spool` the state of its upload.
    /// - `sent`: the operations of the request that is in flight, as they were sent.
    /// - `kept`: nodes that were removed elsewhere and are created again, with what `KeptNode` keeps of them; empty for
    ///   one whose record did not open.
    /// - `quarantine`: the newest record of a node that did not open, as the server sent it.
    /// - `listed`: directories whose children this device has, in a lazy skeleton.
    /// - `app`: what the app keeps in the same transactions (`TreeTransaction`).
    /// - `mark`: nodes whose content is to be downloaded; `sort` grows with each mark.
    private static let schema = """
        CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE node (
            place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, parent BLOB NOT NULL, name TEXT, fold BLOB,
            state INTEGER NOT NULL, version INTEGER NOT NULL, record BLOB, changed INTEGER, modified INTEGER,
            burn INTEGER, tags BLOB, data BLOB, blob BLOB, metadata_size INTEGER, thumbnail_size INTEGER,
            data_size INTEGER, stored INTEGER, scan INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX node_name ON node (parent, fold, id);
        CREATE INDEX node_changed ON node (parent, changed);
        CREATE INDEX node_state ON node (state) WHERE state <> 0;
        CREATE INDEX node_hidden ON node (parent) WHERE state <> 0;
        CREATE INDEX node_data ON node (data) WHERE data IS NOT NULL;
        CREATE TABLE operation (
            id INTEGER PRIMARY KEY AUTOINCREMENT, node BLOB NOT NULL, is_delete INTEGER NOT NULL,
            fields INTEGER NOT NULL, from_parent BLOB, from_name TEXT, to_parent BLOB, to_name TEXT, group_id INTEGER,
            depends BLOB, priority INTEGER NOT NULL, content INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT,
            attempts INTEGER NOT NULL, waits_for INTEGER, is_kept INTEGER NOT NULL,
            held BLOB, spool BLOB, known BLOB, options INTEGER);
        CREATE TABLE sent (
            place INTEGER PRIMARY KEY, request TEXT NOT NULL, operation INTEGER NOT NULL, body BLOB NOT NULL);
        CREATE INDEX sent_operation ON sent (operation);
        CREATE TABLE quarantine (
            id BLOB PRIMARY KEY, version INTEGER NOT NULL, record BLOB NOT NULL, kind TEXT NOT NULL,
            detail TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE kept (id BLOB PRIMARY KEY, secret BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE listed (parent BLOB PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE app (
            collection TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, sort INTEGER NOT NULL,
            PRIMARY KEY (collection, key)) WITHOUT ROWID;
        CREATE INDEX app_sort ON app (collection, sort, key);
        CREATE TABLE mark (
            node BLOB NOT NULL, components INTEGER NOT NULL, version INTEGER NOT NULL, sort INTEGER NOT NULL,
            PRIMARY KEY (node)
        ) WITHOUT ROWID;
        """

    // MARK: - Transactions

    package func begin() throws(TreeError) {
        if mayHaveHidden { mayHaveHidden = try hasHidden() }
        try beforeStatement?()
        try Self.guarded { () throws(SQLiteError) in try database.begin(.immediate) }
    }

    package func commit() throws(TreeError) {
        try beforeStatement?()
        try Self.guarded { () throws(SQLiteError) in try database.commit() }
    }

    /// The committed transactions survive a power failure when this returns: something that depends on them is sent
    /// next.
    package func flush() throws(TreeError) {
        try beforeStatement?()
        guard durability == .program, file != nil else { return }
        // The setting cannot change inside of a transaction. A flush of the log includes everything before, so an
        // empty write with it is enough (https://sqlite.org/pragma.html#pragma_synchronous).
        try Self.guarded { () throws(SQLiteError) in
            try database.execute("PRAGMA synchronous=FULL")
            try database.statement("INSERT OR REPLACE INTO note (name, value) VALUES ('flushed', '')").run()
            try database.execute("PRAGMA synchronous=NORMAL")
        }
    }

    package func rollback() {
        database.rollback()
        links.removeAll()
        mayHaveHidden = true
    }

    private func hasHidden() throws(TreeError) -> Bool {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT 1 FROM node WHERE state <> 0 LIMIT 1").first { _ in true } ?? false
        }
    }

    /// A row was written that is not shown.
    func hid() { mayHaveHidden = true }

    /// Runs calls to SQLite; their errors become `store`.
    func sql<Value>(_ body: (Database) throws(SQLiteError) -> Value) throws(TreeError) -> Value {
        try beforeStatement?()
        return try Self.guarded { () throws(SQLiteError) in try body(database) }
    }

    private static func guarded<Value>(_ body: () throws(SQLiteError) -> Value) throws(TreeError) -> Value {
        do { return try body() } catch { throw TreeError(.store, "local tree: \(error)") }
    }

    // MARK: - Named values

    package func namedValue(_ name: String) throws(TreeError) -> String? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT value FROM note WHERE name = ?1").bind(1, name).first { $0.text(0) }
        }
    }

    package func setNamedValue(_ name: String, _ value: String?) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            guard let value else {
                return try database.statement("DELETE FROM note WHERE name = ?1").bind(1, name).run()
            }
            try database.statement("INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)")
                .bind(1, name).bind(2, value).run()
        }
    }
}

extension NodeParent {
    /// The form in the store: the id of the node, or the index of the trunk.
    var stored: [UInt8] {
        switch self {
        case .node(let id): id.octets
        case .trunk(let trunk): [UInt8(Trunk.allCases.firstIndex(of: trunk) ?? 0)]
        }
    }

    init?(stored: [UInt8]) {
        if stored.count == 1 {
            guard Trunk.allCases.indices.contains(Int(stored[0])) else { return nil }
            self = .trunk(Trunk.allCases[Int(stored[0])])
        } else {
            guard let id = NodeID(octets: stored) else { return nil }
            self = .node(id)
        }
    }
}
