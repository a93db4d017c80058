import ThicketSQLite

/// The end of accounts, inside of an open transaction.
enum AccountRows {
    /// Deletes an account with everything that it logs in by, and the guests that it has made, and schedules the
    /// erasure of their data.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: false when the account does not exist.
    static func remove(_ user: String, in app: String, now: Int64, _ database: Database) throws(SQLiteError) -> Bool {
        guard try removeOne(user, in: app, now: now, database) else { return false }
        var guests = [String]()
        try database.statement("SELECT user FROM guest WHERE app = ?1 AND owner = ?2").bind(1, app).bind(2, user)
            .forEach { (row: Statement) throws(SQLiteError) in guests.append(row.text(0)) }
        for guest in guests { _ = try removeOne(guest, in: app, now: now, database) }
        return true
    }

    private static func removeOne(
        _ user: String, in app: String, now: Int64, _ database: Database
    ) throws(SQLiteError) -> Bool {
        try database.statement("DELETE FROM account WHERE user = ?1 AND app = ?2").bind(1, user).bind(2, app).run()
        guard database.changedRows == 1 else { return false }
        for table in ["bundle", "account_code", "locked_wrap", "old_login", "guest"] {
            try database.statement("DELETE FROM \(table) WHERE user = ?1").bind(1, user).run()
        }
        for table in ["pro", "token"] {
            try database.statement("DELETE FROM \(table) WHERE app = ?1 AND user = ?2").bind(1, app).bind(2, user).run()
        }
        // Maintenance finds the erasure in this table, also after a crash.
        try database.statement("INSERT OR IGNORE INTO erasure (app, user, created) VALUES (?1, ?2, ?3)")
            .bind(1, app).bind(2, user).bind(3, now).run()
        return true
    }
}
