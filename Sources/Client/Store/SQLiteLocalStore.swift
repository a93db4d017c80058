package import ThicketProtocol
internal import ThicketSQLite

/// Stores everything in a SQLite file in write-ahead mode, with every page sealed (docs/decisions/0048).
///
/// What the app sees is not a column: it is the ghost with `pending` and `later` applied. For a large object these are
/// stored as a whole value and the steps since (`StoreJournal`), so that a keystroke in a large text writes only a few
/// bytes (docs/decisions/0017).
package final class SQLiteLocalStore: LocalStore {
    /// nil when the store is closed.
    private var file: StoreFile?
    private var database: Database? { file?.database }
    private var journal: StoreJournal?
    private var bucketRows = [BucketName: Int64]()
    private var entityRows = EntityRows()
    private let durability: StoreDurability

    /// The version of the schema below. A newer version is refused; an older one is upgraded.
    ///
    /// 1: whole objects only. 2: `journal`. 3: sealed buckets. 4: undelivered events; packed objects of sealed buckets
    /// (`PackedEntity`; both forms are read). 5: the identity of the server's bucket (docs/decisions/0083).
    private static let formatVersion: Int64 = 5

    /// - Parameters:
    ///   - key: the files are sealed under it; an unsealed store is sealed now. nil: unsealed, for tests.
    ///   - vfs: a file system registered with SQLite, for tests; nil for the default one.
    /// - Throws: `storeInUse`, `store`.
    package init(
        path: String, key: StoreKey? = nil, durability: StoreDurability = .program, vfs: String? = nil
    ) throws(ClientError) {
        self.durability = durability
        file = try StoreFile(path: path, key: key, durability: durability, vfs: vfs)
        try prepare()
        try sql { (database) throws(SQLiteError) in
            self.journal = try StoreJournal(database)
            let rows = try database.statement("SELECT id, name FROM bucket")
            defer { rows.reset() }
            while try rows.step() {
                if let name = try? BucketName(rows.text(1)) { self.bucketRows[name] = rows.integer(0) }
            }
        }
    }

    private func prepare() throws(ClientError) {
        let version =
            try sql { (database) throws(SQLiteError) in try database.integer("PRAGMA user_version") } ?? 0
        guard version <= Self.formatVersion else {
            throw ClientError(.store, "the local store was made by a newer version (format \(version))")
        }
        guard version < Self.formatVersion else { return }
        try sql { (database) throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                if version == 0 { try database.execute(Self.schema) }
                if version < 2 { try database.execute(StoreJournal.schema) }
                if version < 3 { try database.execute(Self.sealedSchema) }
                if version < 4 { try database.execute(Self.undeliveredSchema) }
                if version < 5 { try database.execute(Self.identitySchema) }
                try database.execute("PRAGMA user_version=\(Self.formatVersion)")
            }
        }
    }

    /// The columns of the schema, with those of `sealedSchema`, `identitySchema` and the table of `undeliveredSchema`.
    /// `StoreJournal.schema` describes the table `journal`.
    ///
    /// `note` holds named values: `client` (this copy's client id), `app` and `user` (the app and the user to which the
    /// store belongs), `author` (the author id under which this device signs sealed operations).
    ///
    /// `bucket` holds a `BucketRecord` per bucket:
    /// - `cv`: the change version up to which the ghosts include all changes; NULL before the first index scan.
    /// - `walks`: number of index scans started. The columns `walk` to `objects_total`, `walk_store` and `walk_is_same`
    ///   hold the running scan (`IndexScan`) and are NULL or 0 when none runs.
    /// - `walk`: number of the running scan; `mark`: start of its next page; `current`: change version of its first
    ///   page.
    /// - `objects_read`, `objects_total`: progress of the scan; the total is NULL when the server does not report it.
    /// - `is_sealed`: 1 when the app opened the bucket as a sealed one.
    /// - `store`: identity of the server's bucket to which the ghosts belong; `walk_store`: the identity when the scan
    ///   began. NULL when unknown.
    /// - `generation`: number of the last scan that met a bucket which may differ from the previous one; 0 when none
    ///   did.
    /// - `walk_is_same`: 1 when the ghosts belong to the bucket being scanned (docs/decisions/0083).
    ///
    /// `entity` holds one row per object; its `id` is also the `id` of the rows in `ghost` and `edit` and the `owner`
    /// in `journal`:
    /// - `key`: the server's key; `name`: the app's key in a sealed bucket, NULL in an open one.
    /// - `version`: version of the ghost in `ghost`; newer steps in `journal` carry their own.
    /// - `is_there`: 1 when the server has the object; `is_live`: 1 when the app sees it.
    /// - `walk`: number of the last scan that listed the object.
    ///
    /// `ghost.object`: the newest state known to be on the server, as JSON or as a `PackedEntity`.
    ///
    /// `edit` holds the unconfirmed edits (`EditState`). Edits are encoded by `EditCodec`:
    /// - `ccid`, `pending`, `source`, `sent`, `applied_at`, `is_confirmed`: the change in flight (`PendingChange`): its
    ///   identifier, its effect on the ghost, the version on which it is based, its JSON as sent, the version that the
    ///   server gave it, and 1 when the server is known to have it. `ccid` is NULL when no change is in flight.
    /// - `later`: the edits after that change, as one edit.
    /// - `held_version`, `held`: a newer ghost that cannot be applied yet; `held` is NULL when the object does not
    ///   exist in it.
    /// - `wanted`: the version requested from the server because a change did not fit the ghost.
    /// - `refusal`: the code with which the server refused the edit; `attempts`: how often it was sent again in another
    ///   form.
    /// - `sends_whole`: bits; 1: the next change carries the whole object, 2: `later` replaces the whole object.
    /// - `sealed`: the edits of an object in a sealed bucket (`SealedKept`, JSON); `later` is not used then, and
    ///   `pending` only for a removal.
    /// - `sealed_flags`: bits; 1: edits that are not a change yet, 2: the object is read-only.
    ///
    /// `untold` holds the undelivered conflicts and integrity reports of a bucket, ordered by `place`, encoded by
    /// `UndeliveredCodec`.
    private static let schema = """
        CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE bucket (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cv TEXT, walks INTEGER NOT NULL,
            walk INTEGER, mark TEXT, current TEXT, objects_read INTEGER, objects_total INTEGER);
        CREATE TABLE entity (
            id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0,
            is_there INTEGER NOT NULL DEFAULT 0, is_live INTEGER NOT NULL DEFAULT 0, walk INTEGER NOT NULL DEFAULT 0,
            UNIQUE (bucket, key));
        CREATE TABLE ghost (id INTEGER PRIMARY KEY, object BLOB NOT NULL);
        CREATE TABLE edit (
            id INTEGER PRIMARY KEY, ccid TEXT, pending BLOB, source INTEGER, sent BLOB, applied_at INTEGER,
            is_confirmed INTEGER NOT NULL, later BLOB, held_version INTEGER, held BLOB, wanted INTEGER, refusal INTEGER,
            attempts INTEGER NOT NULL, sends_whole INTEGER NOT NULL);
        """

    /// Columns for sealed buckets.
    private static let sealedSchema = """
        ALTER TABLE bucket ADD COLUMN is_sealed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE entity ADD COLUMN name TEXT;
        ALTER TABLE edit ADD COLUMN sealed BLOB;
        ALTER TABLE edit ADD COLUMN sealed_flags INTEGER NOT NULL DEFAULT 0;
        """

    /// Columns that tell one server's bucket from another (`BucketRecord.store`, `IndexScan.store`).
    private static let identitySchema = """
        ALTER TABLE bucket ADD COLUMN store TEXT;
        ALTER TABLE bucket ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE bucket ADD COLUMN walk_store TEXT;
        ALTER TABLE bucket ADD COLUMN walk_is_same INTEGER NOT NULL DEFAULT 0;
        """

    /// The conflicts and integrity reports that have not been delivered to the app (`UndeliveredCodec`).
    private static let undeliveredSchema = """
        CREATE TABLE untold (
            bucket INTEGER NOT NULL, place INTEGER NOT NULL, event BLOB NOT NULL, PRIMARY KEY (bucket, place)
        ) WITHOUT ROWID;
        """

    package func close() {
        journal = nil
        file = nil
    }

    // MARK: - Calls to SQLite

    private static func guarded<Value>(_ body: () throws(SQLiteError) -> Value) throws(ClientError) -> Value {
        do { return try body() } catch { throw clientError(error) }
    }

    static func clientError(_ error: SQLiteError) -> ClientError {
        ClientError(.store, "local store: \(error)", number: Int(error.extended))
    }

    private func sql<Value>(_ body: (Database) throws(SQLiteError) -> Value) throws(ClientError) -> Value {
        guard let database else { throw ClientError(.store, "the local store is closed") }
        return try Self.guarded { () throws(SQLiteError) in try body(database) }
    }

    private func keys(_ query: String, _ bind: (Statement) -> Void) throws(ClientError) -> [EntityKey] {
        try sql { (database) throws(SQLiteError) in
            var keys = [EntityKey]()
            let statement = try database.statement(query)
            bind(statement)
            defer { statement.reset() }
            while try statement.step() {
                if let key = try? EntityKey(statement.text(0)) { keys.append(key) }
            }
            return keys
        }
    }

    // MARK: - Reading

    package func clientID(fresh: ClientID) throws(ClientError) -> ClientID {
        if let kept = try namedValue("client"), let known = try? ClientID(kept) { return known }
        try setNamedValue("client", to: fresh.text)
        return fresh
    }

    package func namedValue(_ name: String) throws(ClientError) -> String? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT value FROM note WHERE name = ?1").bind(1, name).first { $0.text(0) }
        }
    }

    package func setNamedValue(_ name: String, to value: String) throws(ClientError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)")
                .bind(1, name).bind(2, value).run()
        }
    }

    package func buckets() throws(ClientError) -> [BucketRecord] {
        try sql { (database) throws(SQLiteError) in
            var records = [BucketRecord]()
            let query =
                "SELECT name, cv, walks, walk, mark, current, objects_read, objects_total, is_sealed, store,"
                + " generation, walk_store, walk_is_same FROM bucket ORDER BY name"
            let rows = try database.statement(query)
            defer { rows.reset() }
            while try rows.step() { if let record = Self.bucket(rows) { records.append(record) } }
            return records
        }
    }

    private static func bucket(_ row: Statement) -> BucketRecord? {
        guard let name = try? BucketName(row.text(0)) else { return nil }
        var record = BucketRecord(name: name, scansStarted: row.integer(2))
        record.isSealed = row.integer(8) != 0
        record.store = row.isNull(9) ? nil : row.text(9)
        record.generation = row.integer(10)
        record.changeVersion = row.isNull(1) ? nil : try? ChangeVersion(row.text(1))
        guard let id = row.optionalInteger(3) else { return record }
        var indexScan = IndexScan(id: id)
        indexScan.mark = row.isNull(4) ? nil : row.text(4)
        indexScan.current = row.isNull(5) ? nil : try? ChangeVersion(row.text(5))
        indexScan.objectsRead = row.integer(6)
        indexScan.objectsTotal = row.optionalInteger(7)
        indexScan.store = row.isNull(11) ? nil : row.text(11)
        indexScan.isSame = row.integer(12) != 0
        record.indexScan = indexScan
        return record
    }

    package func entity(_ address: EntityAddress) throws(ClientError) -> EntityRecord? {
        guard let bucket = bucketRows[address.bucket] else { return nil }
        let found = try sql { (database) throws(SQLiteError) in
            let query = """
                SELECT version, is_live, entity.walk, object, ccid, pending, source, sent, applied_at, is_confirmed, later,
                    held_version, held, wanted, refusal, attempts, sends_whole, entity.id, name, sealed
                FROM entity LEFT JOIN ghost ON ghost.id = entity.id LEFT JOIN edit ON edit.id = entity.id
                WHERE bucket = ?1 AND key = ?2
                """
            return try database.statement(query).bind(1, bucket).bind(2, address.key.text).first { EntityRow($0) }
        }
        guard let found, let journal else { return nil }
        entityRows.record(found.id, address)
        return try journal.read(found.id, over: try found.record())
    }

    package func known(_ bucket: BucketName, among keys: [EntityKey]) throws(ClientError) -> Set<EntityKey> {
        guard let row = bucketRows[bucket] else { return [] }
        return try sql { (database) throws(SQLiteError) in
            var known = Set<EntityKey>()
            let statement = try database.statement("SELECT 1 FROM entity WHERE bucket = ?1 AND key = ?2")
                .bind(1, row)
            defer { statement.reset() }
            for key in keys {
                if try statement.bind(2, key.text).step() { known.insert(key) }
                statement.reset()
            }
            return known
        }
    }

    package func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey] {
        guard let row = bucketRows[bucket] else { return [] }
        let query =
            "SELECT key FROM entity WHERE bucket = ?1 AND key > ?2 AND is_live = 1 ORDER BY key LIMIT ?3"
        return try keys(query) { $0.bind(1, row).bind(2, after?.text ?? "").bind(3, Int64(limit)) }
    }

    package func liveNames(_ bucket: BucketName, after: String?, limit: Int) throws(ClientError) -> [String] {
        guard let row = bucketRows[bucket] else { return [] }
        return try sql { (database) throws(SQLiteError) in
            var names = [String]()
            // A page reads all names of the bucket and sorts them: an index on `name` would cost every open bucket.
            let rows = try database.statement(
                "SELECT name FROM entity WHERE bucket = ?1 AND is_live = 1 AND name > ?2 ORDER BY name LIMIT ?3")
            rows.bind(1, row).bind(2, after ?? "").bind(3, Int64(limit))
            defer { rows.reset() }
            while try rows.step() { names.append(rows.text(0)) }
            return names
        }
    }

    package func edited(_ bucket: BucketName) throws(ClientError) -> [EditedKey] {
        guard let row = bucketRows[bucket] else { return [] }
        return try sql { (database) throws(SQLiteError) in
            var found = [EditedKey]()
            let query = """
                SELECT key, ccid IS NOT NULL OR later IS NOT NULL OR sealed_flags & 1,
                    refusal IS NOT NULL OR sealed_flags & 2, wanted IS NOT NULL
                FROM edit JOIN entity ON entity.id = edit.id WHERE bucket = ?1 ORDER BY key
                """
            let rows = try database.statement(query).bind(1, row)
            defer { rows.reset() }
            while try rows.step() {
                guard let key = try? EntityKey(rows.text(0)) else { continue }
                let flags = (1...3).map { rows.integer($0) != 0 }
                found.append(EditedKey(key: key, hasEdits: flags[0], isRefused: flags[1], isStale: flags[2]))
            }
            return found
        }
    }

    package func keysHeld(_ bucket: BucketName) throws(ClientError) -> [EntityKey] {
        guard let row = bucketRows[bucket] else { return [] }
        let query = """
            SELECT key FROM edit JOIN entity ON entity.id = edit.id WHERE bucket = ?1 AND held_version IS NOT NULL ORDER BY key
            """
        return try keys(query) { $0.bind(1, row) }
    }

    package func keysUnseen(_ bucket: BucketName, scanID: Int64) throws(ClientError) -> [EntityKey] {
        guard let row = bucketRows[bucket] else { return [] }
        let query = "SELECT key FROM entity WHERE bucket = ?1 AND is_there = 1 AND walk <> ?2 ORDER BY key"
        return try keys(query) { $0.bind(1, row).bind(2, scanID) }
    }

    package func versions(
        _ bucket: BucketName, limit: Int
    ) throws(ClientError) -> [(key: EntityKey, version: Version)] {
        guard let bucketRow = bucketRows[bucket] else { return [] }
        return try sql { (database) throws(SQLiteError) in
            var found = [(key: EntityKey, version: Version)]()
            let query = """
                SELECT key, ifnull((SELECT version FROM journal WHERE owner = id AND kind = 1 ORDER BY place DESC LIMIT 1),
                    version)
                FROM entity WHERE bucket = ?1 AND is_there = 1 ORDER BY key LIMIT ?2
                """
            let rows = try database.statement(query).bind(1, bucketRow).bind(2, Int64(limit))
            defer { rows.reset() }
            while try rows.step() {
                if let key = try? EntityKey(rows.text(0)) { found.append((key, rows.integer(1))) }
            }
            return found
        }
    }

    package func undelivered(_ bucket: BucketName) throws(ClientError) -> [BucketEvent] {
        guard let row = bucketRows[bucket] else { return [] }
        let found = try sql { (database) throws(SQLiteError) in
            var found = [[UInt8]]()
            let rows = try database.statement("SELECT event FROM untold WHERE bucket = ?1 ORDER BY place")
                .bind(1, row)
            defer { rows.reset() }
            while try rows.step() { found.append(rows.bytes(0)) }
            return found
        }
        var events = [BucketEvent]()
        for bytes in found { events.append(try UndeliveredCodec.decode(bytes)) }
        return events
    }

    // MARK: - Writing

    private func setSynchronous(_ mode: String) throws(ClientError) {
        try sql { (database) throws(SQLiteError) in try database.execute("PRAGMA synchronous=\(mode)") }
    }

    package func commit(_ batch: LocalBatch) throws(ClientError) {
        var rows = bucketRows
        let known = entityRows
        let isFlushed = batch.isOnDisk && durability == .program
        // A flush of the log includes everything written before (https://sqlite.org/pragma.html#pragma_synchronous).
        if isFlushed { try setSynchronous("FULL") }
        defer { if isFlushed { try? setSynchronous("NORMAL") } }
        guard let journal else { throw ClientError(.store, "the local store is closed") }
        do {
            try sql { (database) throws(SQLiteError) in
                try database.transaction(.immediate) { () throws(SQLiteError) in
                    for record in batch.buckets {
                        rows[record.name] = try Self.write(record, to: database)
                    }
                    try Self.write(delivered: batch.delivered, undelivered: batch.undelivered, rows, to: database)
                    for name in batch.forgottenRemovals.sorted() {
                        guard let bucket = rows[name] else { throw SQLiteError.unknownBucket }
                        let change = "UPDATE entity SET version = 0 WHERE bucket = ?1 AND is_there = 0 AND version <> 0"
                        try database.statement(change).bind(1, bucket).run()
                    }
                    try Self.insert(batch.arrivals, rows, to: database)
                    for change in batch.entities {
                        guard let bucket = rows[change.address.bucket] else { throw SQLiteError.unknownBucket }
                        let place = EntityPlace(bucket: bucket, id: known[change.address])
                        try Self.write(change, at: place, to: database, journal)
                    }
                }
            }
        } catch {
            journal.forget()
            throw error
        }
        bucketRows = rows
    }
}
