import ThicketSQLite

/// The tables, and how a file of an older version becomes one of this version.
enum Schema {
    /// Marks the file as ours ("Thkt"), so that no other program's database is taken for a store.
    static let applicationID: Int64 = 0x5468_6B74
    /// Version that this program writes.
    static var version: Int64 { Int64(migrations.count) }

    /// Entry n leads from version n to n + 1; all run in one transaction.
    static let migrations = [
        """
        CREATE TABLE meta (k TEXT PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE app (name TEXT PRIMARY KEY, created INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE token (hash BLOB PRIMARY KEY, app TEXT NOT NULL, user TEXT NOT NULL,
            read_only INTEGER NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE client (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE bucket (id INTEGER PRIMARY KEY, app TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL,
            head INTEGER NOT NULL, floor INTEGER NOT NULL, fresh INTEGER NOT NULL, UNIQUE (app, owner, name));
        CREATE TABLE ent (b INTEGER NOT NULL, k TEXT NOT NULL, ver INTEGER NOT NULL, gid INTEGER NOT NULL,
            kf INTEGER NOT NULL, dead INTEGER NOT NULL, PRIMARY KEY (b, k)) WITHOUT ROWID;
        CREATE TABLE chg (gid INTEGER PRIMARY KEY, b INTEGER NOT NULL, k TEXT NOT NULL, op INTEGER NOT NULL,
            sv INTEGER, ev INTEGER NOT NULL, pe INTEGER NOT NULL, pk INTEGER NOT NULL, pb INTEGER NOT NULL,
            client INTEGER NOT NULL, ccid BLOB NOT NULL, ts INTEGER NOT NULL, diff BLOB NOT NULL, snap BLOB);
        CREATE TABLE old_ccid (b INTEGER NOT NULL, h INTEGER NOT NULL, ts INTEGER NOT NULL,
            PRIMARY KEY (b, h)) WITHOUT ROWID;
        CREATE TABLE ver (id INTEGER PRIMARY KEY, b INTEGER NOT NULL, k TEXT NOT NULL, ver INTEGER NOT NULL,
            body BLOB NOT NULL, UNIQUE (b, k, ver));
        CREATE TABLE seg (id INTEGER PRIMARY KEY, b INTEGER NOT NULL, high INTEGER NOT NULL, count INTEGER NOT NULL,
            bytes INTEGER NOT NULL, content BLOB NOT NULL, UNIQUE (b, high));
        """,
        // settled: ccids of changes up to here stand in blocks; loose: changes after it. Rows of idset are never used
        // twice, so that a block can be remembered by its row.
        """
        ALTER TABLE bucket ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE bucket ADD COLUMN loose INTEGER NOT NULL DEFAULT 0;
        UPDATE bucket SET loose = c.n FROM (SELECT b, count(*) AS n FROM chg GROUP BY b) AS c WHERE bucket.id = c.b;
        CREATE TABLE idrun (id INTEGER PRIMARY KEY, b INTEGER NOT NULL, high INTEGER NOT NULL, entries BLOB NOT NULL,
            UNIQUE (b, high));
        CREATE TABLE idset (id INTEGER PRIMARY KEY AUTOINCREMENT, b INTEGER NOT NULL, low INTEGER NOT NULL,
            entries BLOB NOT NULL, UNIQUE (b, low));
        """,
        // Keys of partners are sealed under the server's key file; name is what an API key is looked up by.
        """
        ALTER TABLE app ADD COLUMN partner TEXT;
        CREATE TABLE partner (id TEXT PRIMARY KEY, name BLOB NOT NULL UNIQUE, api_key BLOB NOT NULL,
            enabled INTEGER NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE partner_key (id INTEGER PRIMARY KEY AUTOINCREMENT, partner TEXT NOT NULL, sealed BLOB NOT NULL,
            created INTEGER NOT NULL);
        CREATE TABLE entity (id TEXT PRIMARY KEY, partner TEXT NOT NULL, partner_entity TEXT NOT NULL,
            email TEXT NOT NULL, created INTEGER NOT NULL, public_key BLOB, sign_key BLOB,
            UNIQUE (partner, partner_entity)) WITHOUT ROWID;
        CREATE TABLE device (entity TEXT NOT NULL, device TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            PRIMARY KEY (entity, device)) WITHOUT ROWID;
        """,
        // denied: login tokens that were signed out, until their own time refuses them (milliseconds since 1970).
        """
        CREATE TABLE denied (hash BLOB PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
        CREATE INDEX denied_until ON denied (until);
        """,
        // scheme: 0 a password that was sent, 1 a key that the client stretched. erasure: users whose data is to go.
        """
        CREATE TABLE app_key (hash BLOB PRIMARY KEY, app TEXT NOT NULL, is_admin INTEGER NOT NULL,
            created INTEGER NOT NULL) WITHOUT ROWID;
        ALTER TABLE token ADD COLUMN expires INTEGER;
        ALTER TABLE token ADD COLUMN device TEXT NOT NULL DEFAULT '';
        CREATE INDEX token_user ON token (app, user);
        CREATE TABLE account (user TEXT PRIMARY KEY, app TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL,
            scheme INTEGER NOT NULL, salt BLOB NOT NULL, n INTEGER, r INTEGER, p INTEGER, verifier BLOB NOT NULL,
            recovery BLOB, access BLOB, created INTEGER NOT NULL, changed INTEGER NOT NULL,
            UNIQUE (app, folded)) WITHOUT ROWID;
        CREATE TABLE bundle (user TEXT PRIMARY KEY, version INTEGER NOT NULL, content BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE erasure (app TEXT NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL,
            PRIMARY KEY (app, user)) WITHOUT ROWID;
        """,
        // Users who come in by this server's own logins; times are milliseconds since 1970.
        """
        ALTER TABLE partner ADD COLUMN passwords INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE profile (number INTEGER PRIMARY KEY AUTOINCREMENT, entity TEXT NOT NULL UNIQUE,
            username TEXT NOT NULL, phone TEXT NOT NULL, guest INTEGER NOT NULL, updated INTEGER NOT NULL,
            logins INTEGER NOT NULL);
        CREATE TABLE credential (partner TEXT NOT NULL, username TEXT NOT NULL, entity TEXT NOT NULL UNIQUE,
            salt BLOB NOT NULL, verifier BLOB NOT NULL, PRIMARY KEY (partner, username)) WITHOUT ROWID;
        CREATE TABLE login (hash BLOB PRIMARY KEY, entity TEXT NOT NULL, device TEXT NOT NULL, begun INTEGER NOT NULL,
            ends INTEGER NOT NULL) WITHOUT ROWID;
        CREATE INDEX login_entity ON login (entity, begun);
        CREATE TABLE reset_code (entity TEXT PRIMARY KEY, code BLOB NOT NULL, made INTEGER NOT NULL,
            tries INTEGER NOT NULL) WITHOUT ROWID;
        """,
        // passwords: `AppPasswords`. locked_wrap: how a locked account's access key was sealed before.
        """
        ALTER TABLE app ADD COLUMN passwords INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE account_code (user TEXT PRIMARY KEY, code BLOB NOT NULL, made INTEGER NOT NULL,
            tries INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE locked_wrap (user TEXT PRIMARY KEY, salt BLOB NOT NULL, n INTEGER NOT NULL, r INTEGER NOT NULL,
            p INTEGER NOT NULL, access BLOB NOT NULL) WITHOUT ROWID;
        """,
        // Sealed keys of partners' users: recovery as in account; access and how it is stretched may be missing.
        """
        CREATE TABLE entity_bundle (app TEXT NOT NULL, entity TEXT NOT NULL, version INTEGER NOT NULL,
            content BLOB NOT NULL, recovery BLOB, access BLOB, salt BLOB, n INTEGER, r INTEGER, p INTEGER,
            PRIMARY KEY (app, entity)) WITHOUT ROWID;
        """,
        // mode: `BucketMode`; bucket_mode: what an operator wants of buckets that are not there yet. born:
        // `EntityRecord`.
        """
        ALTER TABLE bucket ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE ent ADD COLUMN born INTEGER;
        CREATE TABLE bucket_mode (app TEXT NOT NULL, name TEXT NOT NULL, mode INTEGER NOT NULL,
            PRIMARY KEY (app, name)) WITHOUT ROWID;
        """,
        // notes: `AppNotes`. pro: users whose notes are not counted, and what says that they have paid.
        """
        ALTER TABLE app ADD COLUMN notes INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE pro (app TEXT NOT NULL, user TEXT NOT NULL, receipt TEXT NOT NULL, since INTEGER NOT NULL,
            PRIMARY KEY (app, user)) WITHOUT ROWID;
        """,
        // old_login: how accounts that are being brought to keys of their own are still come into by a password that is
        // sent; wrap_salt, n, r, p, access: their access key, sealed under that password.
        """
        CREATE TABLE old_login (user TEXT PRIMARY KEY, app TEXT NOT NULL, folded TEXT NOT NULL, salt BLOB NOT NULL,
            verifier BLOB NOT NULL, wrap_salt BLOB NOT NULL, n INTEGER NOT NULL, r INTEGER NOT NULL,
            p INTEGER NOT NULL, access BLOB NOT NULL, begun INTEGER NOT NULL, UNIQUE (app, folded)) WITHOUT ROWID;
        """,
        // keys: access keys that the account has had, with the one that it has (`Account.KeyProof.keyNumber`).
        """
        ALTER TABLE account ADD COLUMN keys INTEGER NOT NULL DEFAULT 1;
        """,
        // From here on heads may be behind the log (`LateHeads`); so far none is.
        """
        INSERT OR REPLACE INTO meta (k, v) SELECT 'heads', ifnull(max(gid), 0) FROM chg;
        """,
    ]

    /// Makes an empty file a store, or brings an older one up to date.
    /// - Parameter seed: fills `meta` in a new store.
    static func prepare(_ database: Database, seed: () throws(SQLiteError) -> Void) throws(StoreError) {
        do {
            try useLog(database)
            let current = try isCurrent(database)
            if current { return }
            try database.begin(.immediate)
        } catch {
            throw StoreError(error, "opening the store")
        }
        do {
            try migrate(database, seed: seed)
        } catch {
            database.rollback()
            throw error
        }
    }

    /// Gives the file its log, if it has none. The writer asks, too: without a log each commit would be as sure as the
    /// deletion of a journal is.
    static func useLog(_ database: Database) throws(SQLiteError) {
        let mode = try database.text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else {
            throw SQLiteError(extended: noLog, message: "the file takes no log: it stays with '\(mode ?? "nothing")'")
        }
    }

    /// `SQLITE_CANTOPEN`.
    private static let noLog: Int32 = 14

    /// Throws unless the file is a store of this version, or of an earlier one that can be brought up to date.
    static func check(_ database: Database, orOlder: Bool = false) throws(StoreError) {
        let (application, found) = try storing("opening the store") { () throws(SQLiteError) in
            (try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0)
        }
        guard application == applicationID, found > 0 else { throw StoreError(.schema, "the file is no store of ours") }
        try refuseNewer(found)
        guard found == version || orOlder else {
            throw StoreError(.older, "the file has schema version \(found), older than this program's \(version)")
        }
    }

    /// The version of a store that is older than this program; nil of every other file, and where there is none.
    static func olderVersion(path: String) throws(StoreError) -> Int64? {
        guard Files.exists(path), Files.size(path) > 0 else { return nil }
        let database = try SQLiteStore.connect(path, .readOnly, .init())
        return try storing("looking at the store's version") { () throws(SQLiteError) in
            guard try database.integer("PRAGMA application_id") == applicationID else { return nil }
            let found = try database.integer("PRAGMA user_version") ?? 0
            return (1..<version).contains(found) ? found : nil
        }
    }

    private static func refuseNewer(_ found: Int64) throws(StoreError) {
        guard found <= version else {
            throw StoreError(
                .newer, "the file has schema version \(found), newer than this program, which knows up to \(version)")
        }
    }

    private static func isCurrent(_ database: Database) throws(SQLiteError) -> Bool {
        guard try database.integer("PRAGMA application_id") == applicationID else { return false }
        return try database.integer("PRAGMA user_version") == version
    }

    private static func migrate(_ database: Database, seed: () throws(SQLiteError) -> Void) throws(StoreError) {
        let (application, found, tables) = try storing("looking at the tables") {
            () throws(SQLiteError) in
            (
                try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0,
                try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
            )
        }
        guard application == applicationID || (application == 0 && tables == 0) else {
            throw StoreError(.schema, "the file belongs to another program")
        }
        try refuseNewer(found)
        guard found >= 0 else { throw StoreError(.schema, "the file is no store of ours") }
        try storing("preparing the tables") { () throws(SQLiteError) in
            for migration in migrations[Int(found)...] { try database.execute(migration) }
            if found == 0 { try seed() }
            try database.execute("PRAGMA application_id=\(applicationID); PRAGMA user_version=\(version)")
            try database.commit()
        }
    }
}

extension StoreError {
    /// SQLite's answer in the store's words.
    init(_ error: SQLiteError, _ what: String) {
        let kind: Kind
        switch error {
        case _ where error.isFull: kind = .full
        case _ where error.isBusy: kind = .busy
        case _ where error.isIO: kind = .io
        case _ where error.isCorrupt: kind = .corrupt
        case _ where error.isConstraint: kind = .constraint
        case _ where error.isCannotOpen || error.isReadOnly: kind = .unavailable
        default: kind = .io
        }
        self.init(kind, "\(what): \(error)")
    }
}

/// Runs `body` and names what was being done should SQLite refuse.
func storing<Result>(
    _ what: StaticString, _ body: () throws(SQLiteError) -> Result
) throws(StoreError) -> Result {
    do {
        return try body()
    } catch {
        throw StoreError(error, "\(what)")
    }
}
