import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite

/// Token management for operators. The first digits of its hash identify a token; the token itself is not stored.
extension StoreAdmin {
    /// One token of the list.
    public struct ListedToken: Sendable, Hashable {
        /// The first hex digits of the token's hash.
        public let id: String
        /// The owner of the buckets that the token gives access to.
        public let user: UserID
        /// Whether changes are refused.
        public let isReadOnly: Bool
        /// Milliseconds since 1970.
        public let created: Int64
        /// Milliseconds since 1970; nil: valid until revoked.
        public let expires: Int64?
        /// Device name that the client gave when the token was created; empty when it gave none.
        public let device: String
    }

    /// Number of hex digits of a token's hash that identify it.
    static let tokenNameDigits = 16
    /// Maximum number of tokens in one list.
    public static let tokensListedMax = 10_000

    /// Tokens of an app, or of one user, ordered by user and age, oldest first; at most `tokensListedMax`.
    public func tokens(of app: AppID, user: UserID?) throws(StoreAdminError) -> [ListedToken] {
        guard try hasApp(app) else { throw .unknownApp(app) }
        typealias Raw = (hash: [UInt8], user: String, isReadOnly: Bool, created: Int64, expires: Int64?, device: String)
        var rows = [Raw]()
        try doing("listing the tokens") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT hash, user, read_only, created, expires, device FROM token
                WHERE app = ?1 AND (?2 IS NULL OR user = ?2) ORDER BY user, created, hash LIMIT ?3
                """
            ).bind(1, app.text).bind(2, user?.text).bind(3, Int64(Self.tokensListedMax))
                .forEach { (row) throws(SQLiteError) in
                    rows.append(
                        (
                            row.bytes(0), row.text(1), row.integer(2) != 0, row.integer(3), row.optionalInteger(4),
                            row.text(5)
                        ))
                }
        }
        var listed = [ListedToken]()
        do {
            for row in rows {
                listed.append(
                    ListedToken(
                        id: String(Hex.encode(row.hash).prefix(Self.tokenNameDigits)), user: try .stored(row.user),
                        isReadOnly: row.isReadOnly, created: row.created, expires: row.expires, device: row.device))
            }
        } catch {
            throw .store(error)
        }
        return listed
    }

    /// Whether a user has a token or a bucket in an app.
    public func hasUser(_ user: UserID, of app: AppID) throws(StoreAdminError) -> Bool {
        try doing("looking for a user") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT 1 FROM token WHERE app = ?1 AND user = ?2
                UNION ALL SELECT 1 FROM bucket WHERE app = ?1 AND owner = ?2 LIMIT 1
                """
            ).bind(1, app.text).bind(2, user.text).first { _ in true } ?? false
        }
    }

    /// Revokes tokens of a user. Connections that were opened with these tokens are not closed here.
    /// - Parameter id: a `ListedToken.id`; nil revokes all tokens of the user.
    /// - Returns: the number of revoked tokens.
    public func revokeTokens(_ id: String?, of app: AppID, user: UserID) throws(StoreAdminError) -> Int {
        guard try hasApp(app) else { throw .unknownApp(app) }
        return try doing("revoking tokens") { () throws(SQLiteError) in
            try database.statement(
                """
                DELETE FROM token WHERE app = ?1 AND user = ?2
                    AND (?3 IS NULL OR lower(substr(hex(hash), 1, ?4)) = ?3)
                """
            ).bind(1, app.text).bind(2, user.text).bind(3, id).bind(4, Int64(Self.tokenNameDigits)).run()
            return database.changedRows
        }
    }
}
