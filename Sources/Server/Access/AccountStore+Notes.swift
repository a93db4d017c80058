public import ThicketAuth
import ThicketProtocol
import ThicketSQLite

// Which users may have encrypted notes without a limit.
extension AccountStore {
    /// The user's right to encrypted notes; nil when the app has none.
    public func notes(of user: String, in app: String) throws(DirectoryError) -> NoteStanding? {
        try asking { () throws(SQLiteError) in
            let stored =
                try database.statement("SELECT notes FROM app WHERE name = ?1").bind(1, app).first { $0.integer(0) }
                ?? 0
            let receipt = try database.statement("SELECT receipt FROM pro WHERE app = ?1 AND user = ?2")
                .bind(1, app).bind(2, user).first { $0.text(0) }
            switch NoteRule(stored, isPro: receipt != nil) {
            case .none: return nil
            case .free: return NoteStanding(isPro: false, receipt: nil, notesMax: NoteRule.freeMax)
            case .pro:
                return NoteStanding(isPro: true, receipt: receipt.flatMap { $0.isEmpty ? nil : $0 }, notesMax: nil)
            }
        }
    }

    /// Grants or ends the Pro status of an account. A running server applies it with the user's next note.
    /// - Parameters:
    ///   - name: the account's name, or the user's id.
    ///   - receipt: the proof of payment; "" without one. nil: ends Pro.
    ///   - now: milliseconds since 1970.
    /// - Returns: the user's id; nil when the account does not exist.
    public func setPro(
        _ name: String, in app: String, receipt: String?, now: Int64
    ) throws(DirectoryError) -> String? {
        let named = try account(named: Account.folded(name), in: app)
        let found: Account?
        if let named { found = named } else { found = try account(name, in: app) }
        guard let user = found?.user else { return nil }
        try setPro(user: user, in: app, receipt: receipt, now: now)
        return user
    }

    /// The users of an app's partner that a name matches: as the partner's own id of the user, or as the entity id.
    /// Two users when it is the partner's id of one and the entity id of another; none when no user matches, or the
    /// app has no partner.
    public func partnerUsers(_ name: String, in app: String) throws(DirectoryError) -> [String] {
        try asking { () throws(SQLiteError) in
            var users = [String]()
            try database.statement(
                """
                SELECT e.id FROM entity AS e JOIN app AS a ON a.partner = e.partner
                WHERE a.name = ?1 AND (e.id = ?2 OR e.partner_entity = ?2)
                """
            ).bind(1, app).bind(2, name).forEach { (row: Statement) throws(SQLiteError) in users.append(row.text(0)) }
            return users
        }
    }

    /// Grants or ends the Pro status of a user, of a built-in account or of a partner.
    /// - Parameters:
    ///   - user: the id that owns the user's buckets.
    ///   - receipt: as in `setPro(_:in:receipt:now:)`.
    public func setPro(
        user: String, in app: String, receipt: String?, now: Int64
    ) throws(DirectoryError) {
        try writing { () throws(SQLiteError) in
            guard let receipt else {
                try database.statement("DELETE FROM pro WHERE app = ?1 AND user = ?2").bind(1, app).bind(2, user).run()
                return
            }
            try database.statement("INSERT OR REPLACE INTO pro (app, user, receipt, since) VALUES (?1, ?2, ?3, ?4)")
                .bind(1, app).bind(2, user).bind(3, receipt).bind(4, now).run()
        }
    }
}
