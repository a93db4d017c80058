import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketSQLite

/// The tokens of accounts: rows of the same table as those that operators hand out.
extension AccountStore {
    /// Adds a token and deletes the oldest of the user beyond `keeping`; returns how many were deleted.
    public func add(
        _ token: NewToken, of user: String, in app: String, keeping: Int
    ) throws(DirectoryError) -> Int {
        try writing { () throws(SQLiteError) in
            try insert(token, of: user, in: app)
            try database.statement(
                """
                DELETE FROM token WHERE hash IN (SELECT hash FROM token WHERE app = ?1 AND user = ?2 AND hash <> ?3
                    ORDER BY created DESC, hash LIMIT -1 OFFSET ?4)
                """
            ).bind(1, app).bind(2, user).bind(3, token.hash).bind(4, Int64(max(0, keeping - 1))).run()
            return database.changedRows
        }
    }

    /// The account that a token belongs to; nil when it is unknown, expired, or of another app. `now`: milliseconds.
    public func owner(ofToken hash: [UInt8], in app: String, now: Int64) throws(DirectoryError) -> Account? {
        let user = try asking { () throws(SQLiteError) in
            try database.statement(
                "SELECT user FROM token WHERE hash = ?1 AND app = ?2 AND (expires IS NULL OR expires > ?3)"
            ).bind(1, hash).bind(2, app).bind(3, now).first { $0.text(0) }
        }
        guard let user else { return nil }
        return try account(user, in: app)
    }

    /// The user's tokens, the newest first; at most `StoreAdmin.tokensListedMax`.
    public func tokens(of user: String, in app: String) throws(DirectoryError) -> [KeptToken] {
        try asking { () throws(SQLiteError) in
            var tokens = [KeptToken]()
            try database.statement(
                """
                SELECT hash, created, expires, device FROM token WHERE app = ?1 AND user = ?2
                ORDER BY created DESC, hash LIMIT ?3
                """
            ).bind(1, app).bind(2, user).bind(3, Int64(StoreAdmin.tokensListedMax))
                .forEach { (row) throws(SQLiteError) in
                    tokens.append(
                        KeptToken(
                            id: String(Hex.encode(row.bytes(0)).prefix(StoreAdmin.tokenNameDigits)),
                            created: row.integer(1), expires: row.optionalInteger(2), device: row.text(3)))
                }
            return tokens
        }
    }

    /// Ends the tokens with this id, or all for nil; returns how many ended.
    public func endTokens(_ id: String?, of user: String, in app: String) throws(DirectoryError) -> Int {
        try writing { () throws(SQLiteError) in try deleteTokens(id, of: user, in: app) }
    }

    /// - Parameter id: the first digits of the hash, or all of them; nil for every token.
    func deleteTokens(_ id: String?, of user: String, in app: String) throws(SQLiteError) -> Int {
        let digits = id.map { String($0.prefix(StoreAdmin.tokenNameDigits)) }
        try database.statement(
            """
            DELETE FROM token WHERE app = ?1 AND user = ?2 AND (?3 IS NULL OR lower(substr(hex(hash), 1, ?4)) = ?3)
            """
        ).bind(1, app).bind(2, user).bind(3, digits).bind(4, Int64(StoreAdmin.tokenNameDigits)).run()
        return database.changedRows
    }

    func insert(_ token: NewToken, of user: String, in app: String) throws(SQLiteError) {
        try database.statement(
            """
            INSERT INTO token (hash, app, user, read_only, created, expires, device)
            VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)
            """
        ).bind(1, token.hash).bind(2, app).bind(3, user).bind(4, token.created).bind(5, token.expires)
            .bind(6, token.device).run()
    }
}
