import ThicketAuth
import ThicketKeyLog
import ThicketSQLite

/// What the key log's thread reads and writes: tokens, names, entries. Belongs to one thread.
final class KeyLogStore {
    private let database: Database
    private let rows: KeyLogRows

    /// Opens an existing store; throws when it cannot be opened or has another schema.
    init(path: String, settings: StoreSettings = .init()) throws(StoreError) {
        database = try SQLiteStore.connect(path, .readWrite, settings)
        try Schema.check(database)
        rows = KeyLogRows(database: database)
    }

    /// The user of a token, with an account or without; nil when the token is unknown, expired, or of another app.
    func owner(ofToken hash: [UInt8], in app: String, now: Int64) throws(DirectoryError) -> String? {
        try asking { () throws(SQLiteError) in
            try database.statement(
                "SELECT user FROM token WHERE hash = ?1 AND app = ?2 AND (expires IS NULL OR expires > ?3)"
            ).bind(1, hash).bind(2, app).bind(3, now).first { $0.text(0) }
        }
    }

    /// The user id of the account with this name.
    func user(named folded: String, in app: String) throws(DirectoryError) -> String? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT user FROM account WHERE app = ?1 AND folded = ?2").bind(1, app)
                .bind(2, folded).first { $0.text(0) }
        }
    }

    /// The statements of replaced log keys.
    func rotations(of app: String) throws(DirectoryError) -> [[UInt8]] {
        try asking { () throws(SQLiteError) in try rows.rotations(of: app) }
    }

    /// Keeps a head that was given out.
    func keep(_ head: KeyLogHead, of app: String) throws(DirectoryError) {
        try asking { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in try rows.keep(head, of: app) }
        }
    }

    /// Appends entries of a user and of the handle of its name.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: how many were new, or why one is refused; nothing was added then.
    func append(
        _ entries: [KeyLogEntry], of user: String, in app: String, now: Int64
    ) throws(DirectoryError) -> Result<Int, KeyLogError> {
        try asking { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                let folded = try database.statement("SELECT folded FROM account WHERE user = ?1 AND app = ?2")
                    .bind(1, user).bind(2, app).first { $0.text(0) }
                let handle = folded.flatMap { try? KeyLogHandle.name($0, app: app) }
                if let refusal = try refusal(of: entries, user, handle, app, now) { return .failure(refusal) }
                let plan = try rows.plan(entries) { (entry) throws(SQLiteError) in
                    try mayReset(entry, handle, user, app)
                }
                switch plan {
                case .refused(let refusal, _): return .failure(refusal)
                case .append(let new):
                    try rows.append(new)
                    return .success(new.count)
                }
            }
        }
    }

    /// What is wrong with the entries, apart from the chains that they continue.
    private func refusal(
        of entries: [KeyLogEntry], _ user: String, _ handle: String?, _ app: String, _ now: Int64
    ) throws(SQLiteError) -> KeyLogError? {
        var newest = try rows.newest(of: user, in: app)
        for entry in entries {
            guard entry.app.utf8.elementsEqual(app.utf8) else {
                return KeyLogError(.otherApp, "the entry is for the log of another app")
            }
            do throws(KeyLogError) { try SentEntries.expectPast(entry, now) } catch { return error }
            if entry.user.utf8.elementsEqual(user.utf8) {
                newest = entry
                continue
            }
            guard let handle, entry.user.utf8.elementsEqual(handle.utf8) else {
                return KeyLogError(.otherUser, "the entry is not of the token's user or of the handle of its name")
            }
            guard let newest, newest.hasKeys(of: entry) else {
                return KeyLogError(.sameKeys, "the handle of a name has the keys of its user's newest entry")
            }
        }
        return nil
    }

    /// Whether a handle may get new keys without a signature of the old ones: when the old ones are of an earlier
    /// account that had this name. The keys of this account must sign.
    private func mayReset(
        _ entry: KeyLogEntry, _ handle: String?, _ user: String, _ app: String
    ) throws(SQLiteError) -> Bool {
        guard let handle, entry.user.utf8.elementsEqual(handle.utf8),
            let last = try rows.newest(of: handle, in: app)
        else { return false }
        return try !rows.hasHad(last.keys, user, in: app)
    }

    private func asking<Result>(_ body: () throws(SQLiteError) -> Result) throws(DirectoryError) -> Result {
        do throws(SQLiteError) { return try body() } catch { throw DirectoryError("\(error)") }
    }
}
