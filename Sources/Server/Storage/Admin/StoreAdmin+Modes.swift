import ThicketProtocol
import ThicketSQLite

/// Modes of buckets. A mode that an operator sets for a name applies to the buckets of all users of the app.
extension StoreAdmin {
    /// The modes of all buckets of one name.
    public struct Modes: Sendable, Hashable {
        /// Mode of buckets that are created from now on.
        public let ofNew: BucketMode
        /// Number of existing open buckets.
        public let open: Int64
        /// Number of existing sealed buckets.
        public let sealed: Int64
        /// Number of existing trees.
        public var tree: Int64 = 0
    }

    /// The modes of the buckets of one name in an app.
    /// - Throws: `unknownApp`.
    public func modes(of name: BucketName, in app: AppID) throws(StoreAdminError) -> Modes {
        guard try hasApp(app) else { throw .unknownApp(app) }
        return try doing("reading modes") { () throws(SQLiteError) in
            Modes(
                ofNew: try database.mode(ofNew: name, in: app), open: try count(name, app, .open),
                sealed: try count(name, app, .sealed), tree: try count(name, app, .tree))
        }
    }

    private func count(_ name: BucketName, _ app: AppID, _ mode: BucketMode) throws(SQLiteError) -> Int64 {
        try database.statement("SELECT count(*) FROM bucket WHERE app = ?1 AND name = ?2 AND mode = ?3")
            .bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).first { $0.integer(0) } ?? 0
    }

    /// Sets the mode of all buckets of one name, existing and future ones, for all users: all of them or none.
    ///
    /// - Throws: `bucketsInUse` when an existing bucket has another mode and contains objects, or is a tree: a tree
    ///   stays one, even without nodes. `options` for the options bucket. `treeMode` for a mode that only devices
    ///   choose.
    /// - Returns: the number of existing buckets whose mode changed.
    @discardableResult
    public func setMode(
        _ mode: BucketMode, of name: BucketName, in app: AppID
    ) throws(StoreAdminError) -> Int {
        guard mode.isSetByOperators else { throw .treeMode }
        guard !BucketOptions.isBucket(name) else { throw .options }
        var refusal: StoreAdminError?
        return try doing("setting a mode") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                guard try isKnown(app) else {
                    refusal = .unknownApp(app)
                    throw SQLiteError.refused("unknown app")
                }
                try WriteBehindHeads.writeAll(database)
                let users = try usersWithObjects(name, app, otherThan: mode)
                guard users == 0 else {
                    refusal = .bucketsInUse(name, users: users)
                    throw SQLiteError.refused("buckets in use")
                }
                try database.statement("INSERT OR REPLACE INTO bucket_mode (app, name, mode) VALUES (?1, ?2, ?3)")
                    .bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).run()
                try database.statement("UPDATE bucket SET mode = ?3 WHERE app = ?1 AND name = ?2 AND mode <> ?3")
                    .bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).run()
                return database.changedRows
            }
        } orElse: {
            refusal
        }
    }

    private func usersWithObjects(
        _ name: BucketName, _ app: AppID, otherThan mode: BucketMode
    ) throws(SQLiteError) -> Int64 {
        try database.statement(
            """
            SELECT count(*) FROM bucket AS u WHERE u.app = ?1 AND u.name = ?2 AND u.mode <> ?3
            AND (u.mode = ?4 OR EXISTS (SELECT 1 FROM ent AS e WHERE e.b = u.id AND e.dead = 0))
            """
        ).bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).bind(4, BucketMode.tree.rawValue)
            .first { $0.integer(0) } ?? 0
    }
}
