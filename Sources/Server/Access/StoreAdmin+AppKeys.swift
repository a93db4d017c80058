public import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite

/// The keys of apps. A key allows creating accounts in the app; an admin key also allows ending them.
///
/// Stored as their SHA-256, like tokens: they are random, so a hash without salt reveals nothing about them.
extension StoreAdmin {
    /// A line of the list.
    public struct ListedKey: Sendable, Hashable {
        /// The first digits of the key's hash: identifies the key without revealing it.
        public let id: String
        /// Whether it is an admin key.
        public let isAdmin: Bool
        /// Milliseconds since 1970.
        public let created: Int64
    }

    /// Hex digits of a key's hash that identify it.
    static let keyNameDigits = 8

    /// Makes a key and returns it: 32 hex digits that are not stored.
    /// - Parameters:
    ///   - isAdmin: may set passwords and delete accounts; for the operator's own programs, never inside an app.
    ///   - now: milliseconds since 1970.
    public func addKey(of app: AppID, isAdmin: Bool, now: Int64) throws(StoreAdminError) -> String {
        let key = Hex.encode(random(AppKey.randomBytes))
        var refusal: StoreAdminError?
        try doing("adding a key") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                guard try isKnown(app) else {
                    refusal = .unknownApp(app)
                    throw SQLiteError.refused("unknown app")
                }
                try database.statement("INSERT INTO app_key (hash, app, is_admin, created) VALUES (?1, ?2, ?3, ?4)")
                    .bind(1, AppKey.hash(of: key)).bind(2, app.text).bind(3, isAdmin ? 1 : 0).bind(4, now).run()
            }
        } orElse: {
            refusal
        }
        return key
    }

    /// Sets which passwords the app's users may log in with.
    public func setPasswords(_ passwords: AppPasswords, of app: AppID) throws(StoreAdminError) {
        guard try hasApp(app) else { throw .unknownApp(app) }
        try doing("changing an app") { () throws(SQLiteError) in
            try database.statement("UPDATE app SET passwords = ?2 WHERE name = ?1")
                .bind(1, app.text).bind(2, passwords.rawValue).run()
        }
    }

    /// The passwords that the app's users may log in with; throws for an unknown app.
    public func passwords(of app: AppID) throws(StoreAdminError) -> AppPasswords {
        guard try hasApp(app) else { throw .unknownApp(app) }
        return try doing("looking at an app") { () throws(SQLiteError) in
            try database.statement("SELECT passwords FROM app WHERE name = ?1").bind(1, app.text)
                .first { AppPasswords(rawValue: $0.integer(0)) ?? .none } ?? .none
        }
    }

    /// Sets the app's rule for encrypted notes. A running server applies it with the next change.
    public func setNotes(_ notes: AppNotes, of app: AppID) throws(StoreAdminError) {
        guard try hasApp(app) else { throw .unknownApp(app) }
        try doing("changing an app") { () throws(SQLiteError) in
            try database.statement("UPDATE app SET notes = ?2 WHERE name = ?1")
                .bind(1, app.text).bind(2, notes.rawValue).run()
        }
    }

    /// The app's rule for encrypted notes; throws for an unknown app.
    public func notes(of app: AppID) throws(StoreAdminError) -> AppNotes {
        guard try hasApp(app) else { throw .unknownApp(app) }
        return try doing("looking at an app") { () throws(SQLiteError) in
            try database.statement("SELECT notes FROM app WHERE name = ?1").bind(1, app.text)
                .first { AppNotes(rawValue: $0.integer(0)) ?? .off } ?? .off
        }
    }

    /// The app's keys, the oldest first.
    public func keys(of app: AppID) throws(StoreAdminError) -> [ListedKey] {
        guard try hasApp(app) else { throw .unknownApp(app) }
        var keys = [ListedKey]()
        try doing("listing the keys") { () throws(SQLiteError) in
            try database.statement("SELECT hash, is_admin, created FROM app_key WHERE app = ?1 ORDER BY created, hash")
                .bind(1, app.text).forEach { (row) throws(SQLiteError) in
                    keys.append(
                        ListedKey(
                            id: String(Hex.encode(row.bytes(0)).prefix(Self.keyNameDigits)),
                            isAdmin: row.integer(1) != 0, created: row.integer(2)))
                }
        }
        return keys
    }

    /// Ends a key: requests that show it are refused from now on.
    /// - Parameter id: as in `ListedKey.id`.
    public func revokeKey(_ id: String, of app: AppID) throws(StoreAdminError) {
        guard try hasApp(app) else { throw .unknownApp(app) }
        var ended = 0
        try doing("revoking a key") { () throws(SQLiteError) in
            try database.statement(
                "DELETE FROM app_key WHERE app = ?1 AND lower(substr(hex(hash), 1, ?3)) = ?2"
            ).bind(1, app.text).bind(2, id).bind(3, Int64(Self.keyNameDigits)).run()
            ended = database.changedRows
        }
        guard ended > 0 else { throw .unknownKey(id) }
    }
}
