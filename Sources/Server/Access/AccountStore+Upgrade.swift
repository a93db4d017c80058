public import ThicketAuth
public import ThicketKeyLog
import ThicketSQLite

// Accounts whose upgrade to client-side keys is in progress (decision 0043).
extension AccountStore {
    /// The old login of an account in upgrade, by its folded name; nil when the upgrade is not in progress.
    public func oldLogin(named folded: String, in app: String) throws(DirectoryError) -> OldLogin? {
        try asking { () throws(SQLiteError) in
            try database.statement(Self.oldLogins + "WHERE app = ?1 AND folded = ?2").bind(1, app).bind(2, folded)
                .first(Self.oldLogin)
        }
    }

    /// The old login of an account in upgrade, by its user id; nil when the upgrade is not in progress.
    public func oldLogin(of user: String, in app: String) throws(DirectoryError) -> OldLogin? {
        try asking { () throws(SQLiteError) in
            try database.statement(Self.oldLogins + "WHERE app = ?1 AND user = ?2").bind(1, app).bind(2, user)
                .first(Self.oldLogin)
        }
    }

    /// Begins an upgrade in one transaction; false, and nothing changes, when the account differs from `before`.
    public func upgrade(
        _ account: Account, from before: Account.Proof, old: OldLogin, bundle: [UInt8], entries: [KeyLogEntry] = [],
        token: NewToken, now: Int64
    ) throws(DirectoryError) -> Bool {
        try writing(entries, of: account) { () throws(SQLiteError) in
            let kept = try database.statement(Self.selection + "WHERE user = ?1").bind(1, account.user)
                .first(Self.account)
            guard kept?.proof == before, try !isNameTaken(account) else { return false }
            let bundleThere = try database.statement("SELECT 1 FROM bundle WHERE user = ?1")
                .bind(1, account.user).first { _ in true }
            guard bundleThere == nil else { return false }
            try update(account, now: now)
            try keep(old, app: account.app, now: now)
            try database.statement("INSERT INTO bundle (user, version, content) VALUES (?1, 1, ?2)")
                .bind(1, account.user).bind(2, bundle).run()
            _ = try deleteTokens(nil, of: account.user, in: account.app)
            try insert(token, of: account.user, in: account.app)
            return true
        }
    }

    /// Ends the old login and the user's other tokens; returns whether an old login existed.
    public func finishUpgrade(
        of user: String, in app: String, token: NewToken
    ) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            try database.statement("DELETE FROM old_login WHERE user = ?1 AND app = ?2").bind(1, user).bind(2, app)
                .run()
            let wasThere = database.changedRows == 1
            if wasThere { _ = try deleteTokens(nil, of: user, in: app) }
            try insert(token, of: user, in: app)
            return wasThere
        }
    }

    // MARK: Rows

    private static let oldLogins =
        "SELECT user, folded, salt, verifier, wrap_salt, n, r, p, access FROM old_login "

    private static func oldLogin(_ row: Statement) -> OldLogin {
        OldLogin(
            user: row.text(0), folded: row.text(1), salt: row.bytes(2), hash: row.bytes(3),
            wrap: LockedWrap(
                stretch: Account.Stretch(
                    salt: row.bytes(4), n: row.integer(5), r: row.integer(6), p: row.integer(7)),
                access: row.bytes(8)))
    }

    private func keep(_ old: OldLogin, app: String, now: Int64) throws(SQLiteError) {
        try database.statement(
            """
            INSERT INTO old_login (user, app, folded, salt, verifier, wrap_salt, n, r, p, access, begun)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """
        ).bind(1, old.user).bind(2, app).bind(3, old.folded).bind(4, old.salt).bind(5, old.hash)
            .bind(6, old.wrap.stretch.salt).bind(7, old.wrap.stretch.n).bind(8, old.wrap.stretch.r)
            .bind(9, old.wrap.stretch.p).bind(10, old.wrap.access).bind(11, now).run()
    }
}
