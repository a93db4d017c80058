import ThicketProtocol
import ThicketSQLite

/// Modes of buckets: what an operator says of a name holds for the buckets of all users of the app.
extension StoreAdmin {
    /// How the buckets of one name stand.
    public struct Modes: Sendable, Hashable {
        /// Of those that are not there yet.
        public let ofNew: BucketMode
        /// Of those that are there, by mode.
        public let open: Int64
        public let sealed: Int64
    }

    public func modes(of name: BucketName, in app: AppID) throws(StoreAdminError) -> Modes {
        guard try hasApp(app) else { throw .unknownApp(app) }
        return try doing("reading modes") { () throws(SQLiteError) in
            Modes(
                ofNew: try database.mode(ofNew: name, in: app), open: try count(name, app, .open),
                sealed: try count(name, app, .sealed))
        }
    }

    private func count(_ name: BucketName, _ app: AppID, _ mode: BucketMode) throws(SQLiteError) -> Int64 {
        try database.statement("SELECT count(*) FROM bucket WHERE app = ?1 AND name = ?2 AND mode = ?3")
            .bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).first { $0.integer(0) } ?? 0
    }

    /// Gives a mode to the buckets of one name, of all users, those that are there and those that will be: all or none.
    ///
    /// - Throws: `bucketsInUse` when one of them has another mode and objects.
    /// - Returns: how many buckets that are there have it only now.
    @discardableResult
    public func setMode(
        _ mode: BucketMode, of name: BucketName, in app: AppID
    ) throws(StoreAdminError) -> Int {
        guard !BucketOptions.isBucket(name) else { throw .options }
        var refusal: StoreAdminError?
        return try doing("setting a mode") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                guard try isKnown(app) else {
                    refusal = .unknownApp(app)
                    throw SQLiteError.refused("unknown app")
                }
                try LateHeads.settle(database)
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
            AND EXISTS (SELECT 1 FROM ent AS e WHERE e.b = u.id AND e.dead = 0)
            """
        ).bind(1, app.text).bind(2, name.text).bind(3, mode.rawValue).first { $0.integer(0) } ?? 0
    }
}
