import ThicketKeyLog
import ThicketSQLite

/// The key logs in the store's file. The rows are the truth; logs in memory follow them (`KeyLogs`).
struct KeyLogRows {
    let database: Database

    /// Rows read at once.
    static let pageRows = 4_096

    /// What a transaction does with entries.
    enum Plan {
        /// These are to be appended; those that were sent again are left out.
        case append([KeyLogEntry])
        /// - newest: the user's newest entry.
        case refused(KeyLogError, newest: KeyLogEntry?)
    }

    /// The user's newest entry.
    func newest(of user: String, in app: String) throws(SQLiteError) -> KeyLogEntry? {
        let bytes = try database.statement(
            "SELECT bytes FROM key_entry WHERE app = ?1 AND user = ?2 ORDER BY number DESC LIMIT 1"
        ).bind(1, app).bind(2, user).first { $0.bytes(0) }
        return try bytes.map { (bytes) throws(SQLiteError) in try Self.parse(bytes) }
    }

    /// The keys with an id in the user's entries.
    func keys(of user: String, id: String, in app: String) throws(SQLiteError) -> PublicKeys? {
        var found: PublicKeys?
        try database.statement(
            "SELECT bytes FROM key_entry WHERE app = ?1 AND user = ?2 ORDER BY number DESC"
        ).bind(1, app).bind(2, user).forEach { (row) throws(SQLiteError) in
            guard found == nil else { return }
            let keys = try Self.parse(row.bytes(0)).keys
            if keys.id.utf8.elementsEqual(id.utf8) { found = keys }
        }
        return found
    }

    /// Whether the user can sign in: an account of this server, a partner's user, or one with a token. The entries of
    /// an account stay when it ends.
    func exists(_ user: String, in app: String) throws(SQLiteError) -> Bool {
        try database.statement(
            """
            SELECT EXISTS (SELECT 1 FROM account WHERE user = ?1) OR EXISTS (SELECT 1 FROM entity WHERE id = ?1)
                OR EXISTS (SELECT 1 FROM token WHERE app = ?2 AND user = ?1)
            """
        ).bind(1, user).bind(2, app).first { $0.integer(0) != 0 } ?? false
    }

    /// Whether the user has ever had these keys.
    func hasHad(_ keys: PublicKeys, _ user: String, in app: String) throws(SQLiteError) -> Bool {
        var hasHad = false
        try database.statement("SELECT bytes FROM key_entry WHERE app = ?1 AND user = ?2").bind(1, app).bind(2, user)
            .forEach { (row) throws(SQLiteError) in
                let entry = try Self.parse(row.bytes(0))
                hasHad = hasHad || entry.keys.identity == keys.identity
            }
        return hasHad
    }

    /// Checks entries against those that the log has, inside a transaction: no other one can add any meanwhile.
    /// - Parameter mayReset: whether the user may declare the old key lost.
    func plan(
        _ entries: [KeyLogEntry], mayReset: (KeyLogEntry) throws(SQLiteError) -> Bool = { _ in false }
    ) throws(SQLiteError) -> Plan {
        var newest = [[UInt8]: KeyLogEntry]()
        var new = [KeyLogEntry]()
        for entry in entries {
            let user = Array(entry.user.utf8)
            var last = newest[user]
            if last == nil { last = try self.newest(of: entry.user, in: entry.app) }
            if let last, entry == last { continue }
            do throws(KeyLogError) {
                try entry.check(after: last)
            } catch { return .refused(error, newest: last) }
            guard entry.sequence < UInt64(KeyLogLimits.entriesMax) else {
                return .refused(
                    KeyLogError(.tooMany, "the user has \(KeyLogLimits.entriesMax) entries, which is the maximum"),
                    newest: last)
            }
            if entry.kind == .reset, try !mayReset(entry) {
                return .refused(
                    KeyLogError(.resetNotAuthorised, "this user is not authorised to declare the old key lost"),
                    newest: last)
            }
            newest[user] = entry
            new.append(entry)
        }
        return .append(new)
    }

    /// Appends entries of one app to its log, inside the transaction of their `plan`.
    func append(_ entries: [KeyLogEntry]) throws(SQLiteError) {
        guard let app = entries.first?.app else { return }
        var place = try count(of: app)
        for entry in entries {
            try database.statement(
                "INSERT INTO key_entry (app, place, user, number, bytes) VALUES (?1, ?2, ?3, ?4, ?5)"
            )
            .bind(1, app).bind(2, place).bind(3, entry.user).bind(4, Int64(entry.sequence)).bind(5, entry.bytes)
            .run()
            place += 1
        }
    }

    /// Number of entries of an app.
    func count(of app: String) throws(SQLiteError) -> Int64 {
        try database.statement("SELECT ifnull(max(place) + 1, 0) FROM key_entry WHERE app = ?1").bind(1, app)
            .first { $0.integer(0) } ?? 0
    }

    /// Entries in their order, `pageRows` at most, from a place in the log on.
    func entries(of app: String, from place: Int) throws(SQLiteError) -> [[UInt8]] {
        var entries = [[UInt8]]()
        try database.statement("SELECT bytes FROM key_entry WHERE app = ?1 AND place >= ?2 ORDER BY place LIMIT ?3")
            .bind(1, app).bind(2, Int64(place)).bind(3, Int64(Self.pageRows))
            .forEach { (row) throws(SQLiteError) in entries.append(row.bytes(0)) }
        return entries
    }

    /// Apps whose log has entries or a head.
    func apps() throws(SQLiteError) -> [String] {
        var apps = [String]()
        try database.statement("SELECT DISTINCT app FROM key_entry UNION SELECT app FROM key_log ORDER BY 1")
            .forEach { (row) throws(SQLiteError) in apps.append(row.text(0)) }
        return apps
    }

    /// The newest head that was signed; nil when none was.
    func head(of app: String) throws(SQLiteError) -> [UInt8]? {
        try database.statement("SELECT head FROM key_log WHERE app = ?1").bind(1, app).first { $0.bytes(0) }
    }

    /// Keeps a head in place of the one before.
    func keep(_ head: KeyLogHead, of app: String) throws(SQLiteError) {
        try database.statement("INSERT OR REPLACE INTO key_log (app, head) VALUES (?1, ?2)").bind(1, app)
            .bind(2, head.bytes).run()
    }

    /// The statements of replaced keys, the oldest first.
    func rotations(of app: String) throws(SQLiteError) -> [[UInt8]] {
        var rotations = [[UInt8]]()
        try database.statement("SELECT bytes FROM key_rotation WHERE app = ?1 ORDER BY number").bind(1, app)
            .forEach { (row) throws(SQLiteError) in rotations.append(row.bytes(0)) }
        return rotations
    }

    /// Adds a statement.
    func add(_ rotation: LogKeyRotation) throws(SQLiteError) {
        try database.statement(
            """
            INSERT INTO key_rotation (app, number, bytes)
            SELECT ?1, ifnull(max(number) + 1, 0), ?2 FROM key_rotation WHERE app = ?1
            """
        ).bind(1, rotation.app).bind(2, rotation.bytes).run()
    }

    /// `SQLITE_CORRUPT`.
    private static let corrupt: Int32 = 11

    static func parse(_ bytes: [UInt8]) throws(SQLiteError) -> KeyLogEntry {
        do throws(KeyLogError) { return try KeyLogEntry(bytes) } catch {
            throw SQLiteError(extended: corrupt, message: "an entry of the key log cannot be read: \(error)")
        }
    }
}
