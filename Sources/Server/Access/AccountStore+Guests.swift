public import ThicketAuth
public import ThicketKeyLog
import ThicketSQLite

/// Guests of accounts: rows of `guest` beside their accounts. The shard's writer counts what they write there.
extension AccountStore {
    /// The guest with this user id; nil when the app has none.
    public func guest(_ user: String, in app: String) throws(DirectoryError) -> Guest? {
        try asking { () throws(SQLiteError) in
            try database.statement(Self.guestColumns + "WHERE user = ?1 AND app = ?2").bind(1, user).bind(2, app)
                .first(Self.guest)
        }
    }

    /// The guests of an account, the newest first, those that have ended and are not removed yet included.
    public func guests(of owner: String, in app: String) throws(DirectoryError) -> [Guest] {
        try asking { () throws(SQLiteError) in
            var guests = [Guest]()
            try database.statement(
                Self.guestColumns + "WHERE app = ?1 AND owner = ?2 ORDER BY created DESC, user LIMIT ?3"
            ).bind(1, app).bind(2, owner).bind(3, Int64(Self.listedMax))
                .forEach { (row: Statement) throws(SQLiteError) in guests.append(Self.guest(row)) }
            return guests
        }
    }

    /// Adds a guest with its account; nothing is added unless the verdict is `added`.
    public func add(
        _ guest: Guest, _ account: Account, bundle: [UInt8], entries: [KeyLogEntry], max: Int
    ) throws(DirectoryError) -> GuestVerdict {
        var verdict = GuestVerdict.nameTaken
        _ = try writing(entries, of: account) { () throws(SQLiteError) in
            guard try !isNameTaken(account), try !hasAccount(account) else { return false }
            let count = try database.statement("SELECT count(*) FROM guest WHERE app = ?1 AND owner = ?2")
                .bind(1, guest.app).bind(2, guest.owner).first { $0.integer(0) }
            guard count ?? 0 < Int64(max) else {
                verdict = .tooMany
                return false
            }
            try insert(account, bundle: bundle, now: guest.created)
            try insert(guest)
            verdict = .added
            return true
        }
        return verdict
    }

    /// Removes a guest of an account with its account; false when the account has no such guest.
    public func removeGuest(
        _ user: String, of owner: String, in app: String, now: Int64
    ) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            let isThere = try database.statement("SELECT 1 FROM guest WHERE user = ?1 AND app = ?2 AND owner = ?3")
                .bind(1, user).bind(2, app).bind(3, owner).first { _ in true }
            guard isThere != nil else { return false }
            return try AccountRows.remove(user, in: app, now: now, database)
        }
    }

    /// A guest's name is its id, so an equal name is the same account.
    private func hasAccount(_ account: Account) throws(SQLiteError) -> Bool {
        try database.statement("SELECT 1 FROM account WHERE user = ?1").bind(1, account.user).first { _ in true } != nil
    }

    private static let guestColumns =
        """
        SELECT user, app, owner, root, kind, created, expires, deposits_max, bytes_max, deposits, bytes FROM guest

        """

    private static func guest(_ row: Statement) -> Guest {
        var guest = Guest(
            user: row.text(0), app: row.text(1), owner: row.text(2), root: row.text(3),
            kind: Guest.Kind(rawValue: row.integer(4)) ?? .reading, created: row.integer(5), expires: row.integer(6),
            depositsMax: row.integer(7), bytesMax: row.integer(8))
        (guest.deposits, guest.bytes) = (row.integer(9), row.integer(10))
        return guest
    }

    private func insert(_ guest: Guest) throws(SQLiteError) {
        try database.statement(
            """
            INSERT INTO guest (user, app, owner, root, kind, created, expires, deposits_max, bytes_max, deposits, bytes)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0)
            """
        ).bind(1, guest.user).bind(2, guest.app).bind(3, guest.owner).bind(4, guest.root).bind(5, guest.kind.rawValue)
            .bind(6, guest.created).bind(7, guest.expires).bind(8, guest.depositsMax).bind(9, guest.bytesMax).run()
    }
}
