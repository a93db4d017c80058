import ThicketAuth
import ThicketCrypto
import ThicketSQLite

// Reset codes, the kept wraps of locked accounts, and the login methods of apps.
extension AccountStore {
    /// The passwords that the app's users may log in with; `.none` for an unknown app.
    public func passwords(of app: String) throws(DirectoryError) -> AppPasswords {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT passwords FROM app WHERE name = ?1").bind(1, app)
                .first { AppPasswords(rawValue: $0.integer(0)) ?? .none } ?? .none
        }
    }

    /// Keeps the hash of a reset code; false when another was kept less than `ResetCode.pause` ago. `now`:
    /// milliseconds.
    public func keep(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            let last = try database.statement("SELECT made FROM account_code WHERE user = ?1").bind(1, user)
                .first { $0.integer(0) }
            if let last, abs(now - last) < Int64(ResetCode.pause * 1_000) { return false }
            // Outdated codes of all users are deleted here, so that codes of ended accounts do not stay.
            try database.statement("DELETE FROM account_code WHERE made < ?1")
                .bind(1, now - Int64(ResetCode.seconds * 1_000)).run()
            try database.statement(
                "INSERT OR REPLACE INTO account_code (user, code, made, tries) VALUES (?1, ?2, ?3, 0)"
            ).bind(1, user).bind(2, hash).bind(3, now).run()
            return true
        }
    }

    /// Whether the code is the kept one, in time and not used up; every call counts as a try. `now`: milliseconds.
    public func redeem(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            let kept: (code: [UInt8], made: Int64, tries: Int64)? = try database.statement(
                "SELECT code, made, tries FROM account_code WHERE user = ?1"
            ).bind(1, user).first { ($0.bytes(0), $0.integer(1), $0.integer(2)) }
            let isInTime: Bool = kept.map { abs(now - $0.made) < Int64(ResetCode.seconds * 1_000) } ?? false
            let isSame = ConstantTime.equal(kept?.code ?? Array(repeating: 0, count: hash.count), hash)
            guard let kept, isInTime, kept.tries < ResetCode.triesMax else { return false }
            // A used code is not good again; its row stays so that no other code is sent too soon.
            try database.statement("UPDATE account_code SET tries = ?2 WHERE user = ?1").bind(1, user)
                .bind(2, isSame ? Int64(ResetCode.triesMax) : kept.tries + 1).run()
            return isSame
        }
    }

    /// How the access key of a locked account was sealed before; nil for other accounts.
    public func lockedWrap(of user: String) throws(DirectoryError) -> LockedWrap? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT salt, n, r, p, access FROM locked_wrap WHERE user = ?1").bind(1, user)
                .first { row in
                    LockedWrap(
                        stretch: Account.Stretch(
                            salt: row.bytes(0), n: row.integer(1), r: row.integer(2), p: row.integer(3)),
                        access: row.bytes(4))
                }
        }
    }

    /// Keeps the previous wrap of an account that becomes locked, and deletes that of an account that is no longer
    /// locked.
    func keepWrap(of account: Account, from before: Account.Proof) throws(SQLiteError) {
        guard case .key(let old) = before, case .key(let new) = account.proof else { return }
        if !new.access.isEmpty {
            try database.statement("DELETE FROM locked_wrap WHERE user = ?1").bind(1, account.user).run()
        } else if !old.access.isEmpty {
            try database.statement(
                "INSERT OR REPLACE INTO locked_wrap (user, salt, n, r, p, access) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
            ).bind(1, account.user).bind(2, old.stretch.salt).bind(3, old.stretch.n).bind(4, old.stretch.r)
                .bind(5, old.stretch.p).bind(6, old.access).run()
        }
    }
}
