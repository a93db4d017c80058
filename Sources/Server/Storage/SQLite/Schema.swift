import ThicketSQLite

/// The tables, and the migration of files of older versions.
enum Schema {
    /// Identifies the file as a Thicket store ("Thkt"), so that another program's database is not mistaken for one.
    static let applicationID: Int64 = 0x5468_6B74
    /// The schema version that this program writes.
    static var version: Int64 { Int64(migrations.count) }

    /// Entry n migrates from version n to n + 1; all needed entries run in one transaction.
    static let migrations = [
        // Tables and columns whose names are abbreviated or ambiguous. All times are milliseconds since 1970.
        // Common to the tables of buckets: `b` is the row of the bucket (`bucket.id`), `k` the key of the object, `gid`
        // a position in the log of all buckets (`GlobalID`).
        // - meta: `k` name, `v` value; see `Meta`.
        // - app: `partner` the partner of its users; `passwords` `AppPasswords`; `notes` `AppNotes`.
        // - token: `hash` SHA-256 of the token; `user` the owner of the buckets; `device` the client's name for its
        //   device.
        // - client: client ids as numbers, for `chg.client`.
        // - bucket: `owner` the user; `head` gid of its newest change; `floor` gid up to which retention has cut the
        //   log; `fresh` bytes of its log that no segment covers yet; `settled` gid up to which ccids are archived in
        //   `idrun` and `idset`; `loose` number of its changes after `settled`; `mode` `BucketMode`.
        // - bucket_mode: `mode` the mode that an operator set for new buckets of this name.
        // - ent (entities, the heads of objects): `ver` version after the newest change; `gid` the newest change; `kf`
        //   gid of the newest keyframe, 0 for none; `dead` 1 after a deletion; `born` version that the newest creation
        //   made, in sealed buckets.
        // - chg (changes, the log): `op` 0 modified, 1 removed; `sv` source version that the diff applies to, NULL for
        //   a creation; `ev` end version; `pe`, `pk`, `pb` gids of the previous change of the entity, of the previous
        //   keyframe of the entity and of the previous change of the bucket, 0 for none; `ccid` packed
        //   (`PackedChangeID`); `ts` time; `snap` whole body of a keyframe;
        //   `aud` the shared branches that the change belongs to (`ChangeAudience`), NULL for none.
        // - old_ccid (ccids of rows that retention has cut): `h` keyed hash; `ts` time of the change.
        // - ver (bodies kept apart from the log): `ver` version; `body` JSON.
        // - seg (segments): `high` newest gid that the segment covers; `count` objects; `bytes` length of `content`
        //   (`Segment`).
        // - node (the nodes of trees that are not removed): `id` 16 bytes; `parent` the 16 bytes of a node or the name
        //   of a trunk; `tag` 20 bytes; `gid` its newest change; `t` the stamp of that change; `x` its burn time, NULL
        //   for none; `kids` number of nodes directly below; `blob` the blob that the record refers to;
        //   `bytes` of the record; `sender` the account that has put it into the inbox, NULL for others; `member` the
        //   account that has created it below a node, NULL for the owner; `shared` the readers of the branch of which
        //   it is the root, as a JSON array, NULL for other nodes.
        // - inbox_policy: `content` the policy as JSON (`InboxPolicy`).
        // - tree_use: number of rows of `node` of a bucket, and the sum of their bytes.
        // - batch (answers of batches of trees): `id` 16 bytes; `digest` SHA-256 of the batch as sent; `gid` its last
        //   change; `ts` time.
        // - blob (complete blobs): `id` 16 bytes; `app`, `user` the owner, '' if it was
        //   erased; `length` bytes; `completed` time; `orphaned`
        //   time since which no node refers to it, NULL while one does.
        // - upload (open ones, and complete ones for a while): `id` also of the blob; `part` bytes of each part but the
        //   last; `begun`, `completed` times; `proof` the hash by which it was completed.
        // - blob_use (sums of `blob` and of open uploads): `user` '' for all users of the app; `blobs` number
        //   and `bytes` of blobs, `uploads` number and `open` bytes of open uploads.
        // - blob_gone: blobs that were removed and whose bytes may still be in the blob store.
        // - idrun (archived ccids in log order): `high` newest gid; `entries` `ChangeIDBlock`.
        // - idset (archived ccids in hash order): `low` first hash of the block (`UInt64.column`); `entries`
        //   `ChangeIDBlock`.
        // - partner: `name` keyed hash by which its API key is found; `api_key` the sealed API key; `passwords` 1 if
        //   its users may log in at this server by password.
        // - partner_key: `sealed` one sealed auth key.
        // - entity (users of partners): `partner_entity` the partner's id of the user; `public_key` and `sign_key` the
        //   user's public keys.
        // - device: `first` and `last` times at which the device was seen.
        // - denied (login tokens that were signed out): `hash` of the token; `until` time at which the token expires.
        // - app_key: `hash` SHA-256 of the key; `is_admin` 1 for administrator keys.
        // - account: `folded` the name in lower case, by which names are compared; `scheme` 0 for a password that is
        //   sent, 1 for a key that the client derives; `n` (as a power of two), `r`, `p` scrypt parameters; `verifier`
        //   hash of the password or keyed hash of the key; `recovery` keyed hash of the proof of the recovery words;
        //   `access` access key sealed by the client, empty while the account is locked; `changed` time of the latest
        //   change; `keys` number of access keys so far (`Account.KeyProof.keyNumber`).
        // - guest (accounts of links): `owner` the account that has made it; `root` the id of the branch's root; `kind`
        //   `Guest.Kind`; `deposits`, `bytes` what it has written.
        // - bundle, entity_bundle: `content` sealed keys of an account or of a partner's user; the other columns as in
        //   account.
        // - erasure: users whose data is to be erased.
        // - profile, credential, login (users of partners that log in here): `number` counts users from 1; `guest` 1
        //   for a guest; `updated` time; `logins` number of logins; `begun` and `ends` times of a session.
        // - reset_code, account_code: `code` keyed hash of a mailed code; `made` time; `tries` failed attempts.
        // - locked_wrap: `access` access key sealed under the password before the reset; `n`, `r`, `p` as in account.
        // - old_login: `salt`, `verifier` of the old password; `wrap_salt`, `n`, `r`, `p`, `access` the access key
        //   sealed under it; `begun` time at which the migration began.
        // - pro (users without a limit of notes): `receipt` proof of payment; `since` time.
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
        // A block of `idset` is cached by its row, so rows are never reused.
        """
        ALTER TABLE bucket ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE bucket ADD COLUMN loose INTEGER NOT NULL DEFAULT 0;
        UPDATE bucket SET loose = c.n FROM (SELECT b, count(*) AS n FROM chg GROUP BY b) AS c WHERE bucket.id = c.b;
        CREATE TABLE idrun (id INTEGER PRIMARY KEY, b INTEGER NOT NULL, high INTEGER NOT NULL, entries BLOB NOT NULL,
            UNIQUE (b, high));
        CREATE TABLE idset (id INTEGER PRIMARY KEY AUTOINCREMENT, b INTEGER NOT NULL, low INTEGER NOT NULL,
            entries BLOB NOT NULL, UNIQUE (b, low));
        """,
        // Keys of partners are sealed with the server's key file.
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
        // Login tokens that were signed out; a row is deleted when its token has expired anyway.
        """
        CREATE TABLE denied (hash BLOB PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
        CREATE INDEX denied_until ON denied (until);
        """,
        // API keys, accounts, and users whose data is to be erased.
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
        // Users of partners that log in at this server, by name and password or as guests.
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
        // Mailed codes, and accounts whose password was reset by one.
        """
        ALTER TABLE app ADD COLUMN passwords INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE account_code (user TEXT PRIMARY KEY, code BLOB NOT NULL, made INTEGER NOT NULL,
            tries INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE locked_wrap (user TEXT PRIMARY KEY, salt BLOB NOT NULL, n INTEGER NOT NULL, r INTEGER NOT NULL,
            p INTEGER NOT NULL, access BLOB NOT NULL) WITHOUT ROWID;
        """,
        // Sealed keys of partners' users; the access key and its scrypt parameters may be missing.
        """
        CREATE TABLE entity_bundle (app TEXT NOT NULL, entity TEXT NOT NULL, version INTEGER NOT NULL,
            content BLOB NOT NULL, recovery BLOB, access BLOB, salt BLOB, n INTEGER, r INTEGER, p INTEGER,
            PRIMARY KEY (app, entity)) WITHOUT ROWID;
        """,
        // Sealed buckets.
        """
        ALTER TABLE bucket ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE ent ADD COLUMN born INTEGER;
        CREATE TABLE bucket_mode (app TEXT NOT NULL, name TEXT NOT NULL, mode INTEGER NOT NULL,
            PRIMARY KEY (app, name)) WITHOUT ROWID;
        """,
        // Encrypted notes.
        """
        ALTER TABLE app ADD COLUMN notes INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE pro (app TEXT NOT NULL, user TEXT NOT NULL, receipt TEXT NOT NULL, since INTEGER NOT NULL,
            PRIMARY KEY (app, user)) WITHOUT ROWID;
        """,
        // Accounts that are being migrated from a sent password to keys of their own (decision 0043).
        """
        CREATE TABLE old_login (user TEXT PRIMARY KEY, app TEXT NOT NULL, folded TEXT NOT NULL, salt BLOB NOT NULL,
            verifier BLOB NOT NULL, wrap_salt BLOB NOT NULL, n INTEGER NOT NULL, r INTEGER NOT NULL,
            p INTEGER NOT NULL, access BLOB NOT NULL, begun INTEGER NOT NULL, UNIQUE (app, folded)) WITHOUT ROWID;
        """,
        // Counts access keys.
        """
        ALTER TABLE account ADD COLUMN keys INTEGER NOT NULL DEFAULT 1;
        """,
        // From this version on `ent` may be behind the log (`WriteBehindHeads`); at migration it is not.
        """
        INSERT OR REPLACE INTO meta (k, v) SELECT 'heads', ifnull(max(gid), 0) FROM chg;
        """,
        // Trees of encrypted nodes.
        """
        CREATE TABLE node (b INTEGER NOT NULL, id BLOB NOT NULL, parent BLOB NOT NULL, tag BLOB NOT NULL,
            PRIMARY KEY (b, id)) WITHOUT ROWID;
        CREATE UNIQUE INDEX node_place ON node (b, parent, tag);
        """,
        // Lists of children, burn times, and batches. Older rows get their burn time with the node's next change.
        """
        ALTER TABLE node ADD COLUMN gid INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE node ADD COLUMN t INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE node ADD COLUMN x INTEGER;
        ALTER TABLE node ADD COLUMN kids INTEGER NOT NULL DEFAULT 0;
        UPDATE node SET gid = max(
            ifnull((SELECT e.gid FROM ent AS e WHERE e.b = node.b AND e.k = \(nodeKey)), 0),
            ifnull((SELECT max(c.gid) FROM chg AS c WHERE c.b = node.b AND c.k = \(nodeKey)
                AND c.gid > ifnull((SELECT v FROM meta WHERE k = 'heads'), 0)), 0)),
            kids = (SELECT count(*) FROM node AS n WHERE n.b = node.b AND n.parent = node.id);
        UPDATE node SET t = ifnull((SELECT c.ts FROM chg AS c WHERE c.gid = node.gid), 0);
        CREATE INDEX node_newest ON node (b, parent, gid);
        CREATE INDEX node_burn ON node (x) WHERE x IS NOT NULL;
        CREATE TABLE batch (b INTEGER NOT NULL, id BLOB NOT NULL, digest BLOB NOT NULL, answer BLOB NOT NULL,
            gid INTEGER NOT NULL, ts INTEGER NOT NULL, PRIMARY KEY (b, id)) WITHOUT ROWID;
        CREATE INDEX batch_order ON batch (b, gid);
        CREATE INDEX batch_age ON batch (ts);
        """,
        // Blobs.
        """
        ALTER TABLE node ADD COLUMN blob BLOB;
        CREATE INDEX node_blob ON node (blob) WHERE blob IS NOT NULL;
        CREATE TABLE blob (id BLOB PRIMARY KEY, app TEXT NOT NULL, user TEXT NOT NULL, length INTEGER NOT NULL,
            completed INTEGER NOT NULL, orphaned INTEGER) WITHOUT ROWID;
        CREATE INDEX blob_user ON blob (app, user);
        CREATE INDEX blob_orphaned ON blob (orphaned) WHERE orphaned IS NOT NULL;
        CREATE TABLE upload (id BLOB PRIMARY KEY, app TEXT NOT NULL, user TEXT NOT NULL, length INTEGER NOT NULL,
            part INTEGER NOT NULL, begun INTEGER NOT NULL, proof BLOB, completed INTEGER) WITHOUT ROWID;
        CREATE INDEX upload_user ON upload (app, user);
        CREATE INDEX upload_time ON upload (ifnull(completed, begun));
        CREATE TABLE blob_use (app TEXT NOT NULL, user TEXT NOT NULL, blobs INTEGER NOT NULL, bytes INTEGER NOT NULL,
            uploads INTEGER NOT NULL, open INTEGER NOT NULL, PRIMARY KEY (app, user)) WITHOUT ROWID;
        CREATE TABLE blob_gone (id BLOB PRIMARY KEY) WITHOUT ROWID;
        """,
        // Usage of trees. Older rows get their bytes with the node's next change.
        """
        ALTER TABLE node ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE tree_use (b INTEGER PRIMARY KEY, nodes INTEGER NOT NULL, bytes INTEGER NOT NULL);
        INSERT INTO tree_use SELECT b, count(*), 0 FROM node GROUP BY b;
        """,
        // Nodes by other accounts, and policies of inboxes.
        """
        ALTER TABLE node ADD COLUMN sender TEXT;
        CREATE INDEX node_sender ON node (b, sender) WHERE sender IS NOT NULL;
        CREATE TABLE inbox_policy (app TEXT NOT NULL, user TEXT NOT NULL, content BLOB NOT NULL,
            PRIMARY KEY (app, user)) WITHOUT ROWID;
        """,
        // Key logs: entries in their order, the newest signed head, and statements of replaced log keys.
        """
        CREATE TABLE key_entry (app TEXT NOT NULL, place INTEGER NOT NULL, user TEXT NOT NULL, number INTEGER NOT NULL,
            bytes BLOB NOT NULL, PRIMARY KEY (app, place)) WITHOUT ROWID;
        CREATE UNIQUE INDEX key_entry_user ON key_entry (app, user, number);
        CREATE TABLE key_log (app TEXT PRIMARY KEY, head BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE key_rotation (app TEXT NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL,
            PRIMARY KEY (app, number)) WITHOUT ROWID;
        """,
        // Shared branches. Before this version no record had a list, and no creator below a node counted.
        """
        ALTER TABLE node ADD COLUMN shared BLOB;
        ALTER TABLE node ADD COLUMN member TEXT;
        CREATE INDEX node_shared ON node (b) WHERE shared IS NOT NULL;
        CREATE INDEX node_member ON node (b, parent, member) WHERE member IS NOT NULL;
        ALTER TABLE chg ADD COLUMN aud BLOB;
        """,
        // Guests of links.
        """
        CREATE TABLE guest (user TEXT PRIMARY KEY, app TEXT NOT NULL, owner TEXT NOT NULL, root TEXT NOT NULL,
            kind INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL, deposits_max INTEGER NOT NULL,
            bytes_max INTEGER NOT NULL, deposits INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
        CREATE INDEX guest_owner ON guest (app, owner);
        CREATE INDEX guest_end ON guest (expires);
        """,
    ]

    /// The key of a node, the base32 of its id, as an expression over `node`.
    private static let nodeKey: String = (0..<26).map { letter in
        let (nibble, shift) = (5 * letter / 4, 3 - 5 * letter % 4)
        func digit(_ place: Int) -> String {
            "(instr('0123456789ABCDEF', substr(hex(node.id) || '00', \(place + 1), 1)) - 1)"
        }
        let pair = "((\(digit(nibble)) << 4) | \(digit(nibble + 1)))"
        return "substr('abcdefghijklmnopqrstuvwxyz234567', 1 + ((\(pair) >> \(shift)) & 31), 1)"
    }.joined(separator: " || ")

    /// Creates the tables in an empty file, or migrates an older store.
    /// - Parameter seed: fills `meta` in a new store.
    static func prepare(_ database: Database, seed: () throws(SQLiteError) -> Void) throws(StoreError) {
        do {
            try enableLog(database)
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

    /// Switches the file to WAL mode. The writer calls this too: without a write-ahead log, a commit would be only as
    /// durable as the deletion of a rollback journal.
    static func enableLog(_ database: Database) throws(SQLiteError) {
        let mode = try database.text("PRAGMA journal_mode=WAL")
        guard mode == "wal" else {
            throw SQLiteError(
                extended: noLog,
                message: "the file cannot use a write-ahead log: the journal mode stays '\(mode ?? "nothing")'")
        }
    }

    /// `SQLITE_CANTOPEN`.
    private static let noLog: Int32 = 14

    /// Throws unless the file is a store of this version, or, with `orOlder`, of an earlier version.
    static func check(_ database: Database, orOlder: Bool = false) throws(StoreError) {
        let (application, found) = try storing("opening the store") { () throws(SQLiteError) in
            (try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0)
        }
        guard application == applicationID, found > 0 else {
            throw StoreError(.schema, "the file is not a Thicket store")
        }
        try refuseNewer(found)
        guard found == version || orOlder else {
            throw StoreError(.older, "the file has schema version \(found), older than this program's \(version)")
        }
    }

    /// The schema version of a store that is older than this program; nil for any other file, or if none exists.
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
        guard found >= 0 else { throw StoreError(.schema, "the file is not a Thicket store") }
        try storing("preparing the tables") { () throws(SQLiteError) in
            for migration in migrations[Int(found)...] { try database.execute(migration) }
            if found == 0 { try seed() }
            try database.execute("PRAGMA application_id=\(applicationID); PRAGMA user_version=\(version)")
            try database.commit()
        }
    }
}

extension StoreError {
    /// Maps an SQLite error to a store error.
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

/// Runs `body`; an SQLite error becomes a `StoreError` that names the operation.
func storing<Result>(
    _ what: StaticString, _ body: () throws(SQLiteError) -> Result
) throws(StoreError) -> Result {
    do {
        return try body()
    } catch {
        throw StoreError(error, "\(what)")
    }
}
