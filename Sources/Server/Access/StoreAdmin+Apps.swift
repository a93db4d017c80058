public import ThicketAuth
import ThicketProtocol
import ThicketSQLite

/// Apps and their users.
extension StoreAdmin {
    /// Sets an app's partner and its login methods: both or neither.
    public func tie(
        _ app: AppID, to partner: String, taking passwords: AppPasswords
    ) throws(StoreAdminError) {
        guard try hasApp(app) else { throw .unknownApp(app) }
        var refusal: StoreAdminError?
        try doing("changing an app") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                refusal = try tie(app, to: partner)
                if refusal != nil { throw SQLiteError.refused("the app's partner") }
                try database.statement("UPDATE app SET passwords = ?2 WHERE name = ?1").bind(1, app.text)
                    .bind(2, passwords.rawValue).run()
            }
        } orElse: {
            refusal
        }
    }

    /// The partner whose users may use the app; nil when it has none, or the app is unknown.
    public func partner(of app: AppID) throws(StoreAdminError) -> String? {
        try doing("looking at an app") { () throws(SQLiteError) in
            try database.statement("SELECT partner FROM app WHERE name = ?1 AND partner IS NOT NULL")
                .bind(1, app.text).first { $0.text(0) }
        }
    }

    /// The number of built-in accounts of the app.
    public func accountCount(of app: AppID) throws(StoreAdminError) -> Int64 {
        try doing("counting the accounts") { () throws(SQLiteError) in
            try database.statement("SELECT count(*) FROM account WHERE app = ?1").bind(1, app.text)
                .first { $0.integer(0) } ?? 0
        }
    }

    /// The user of the account with this name; nil when the app has no such account.
    public func account(named name: UserID, of app: AppID) throws(StoreAdminError) -> UserID? {
        let user = try doing("looking for an account") { () throws(SQLiteError) in
            try database.statement("SELECT user FROM account WHERE app = ?1 AND folded = ?2").bind(1, app.text)
                .bind(2, Account.folded(name.text)).first { $0.text(0) }
        }
        guard let user else { return nil }
        do throws(StoreError) {
            return try .stored(user)
        } catch {
            throw .store(error)
        }
    }
}
