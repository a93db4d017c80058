import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// Blobs in the store's file, over a connection of its own. The store's writer changes `blob.orphaned`; this changes
/// everything else.
final class SQLiteBlobLedger: BlobLedger {
    let database: Database

    init(_ database: Database) { self.database = database }

    func begin(_ upload: BlobUpload, within quota: BlobQuota) throws(StoreError) -> BlobQuota.Verdict {
        try writing("beginning an upload") { () throws(SQLiteError) in
            let verdict = quota.verdict(
                upload.length, user: try usage(upload.app.text, upload.user.text), app: try usage(upload.app.text, ""))
            guard verdict == .accepted else { return verdict }
            try database.statement(
                "INSERT INTO upload (id, app, user, length, part, begun) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
            ).bind(1, upload.id.octets).bind(2, upload.app.text).bind(3, upload.user.text).bind(4, upload.length)
                .bind(5, Int64(upload.partBytes)).bind(6, upload.begun).run()
            try BlobRows.add(
                BlobUsage(openBytes: upload.length, openCount: 1), to: upload.app.text, upload.user.text, database)
            return .accepted
        }
    }

    func upload(_ id: BlobID) throws(StoreError) -> BlobUpload? {
        let row = try storing("reading an upload") { () throws(SQLiteError) in try found(id) }
        guard let row else { return nil }
        return BlobUpload(
            id: id, app: try .stored(row.app), user: try .stored(row.user), length: row.length,
            partBytes: row.part, begun: row.begun, proof: row.proof)
    }

    private typealias Row = (app: String, user: String, length: Int64, part: Int, begun: Int64, proof: [UInt8]?)

    private func found(_ id: BlobID) throws(SQLiteError) -> Row? {
        try database.statement("SELECT app, user, length, part, begun, proof FROM upload WHERE id = ?1")
            .bind(1, id.octets).first {
                ($0.text(0), $0.text(1), $0.integer(2), Int($0.integer(3)), $0.integer(4), $0.optionalBytes(5))
            }
    }

    func complete(_ id: BlobID, proof: [UInt8], now: Int64) throws(StoreError) -> Bool {
        try writing("completing an upload") { () throws(SQLiteError) in
            guard let row = try found(id), row.proof == nil else { return false }
            try database.statement("UPDATE upload SET proof = ?2, completed = ?3 WHERE id = ?1").bind(1, id.octets)
                .bind(2, proof).bind(3, now).run()
            try database.statement(
                "INSERT INTO blob (id, app, user, length, completed, orphaned) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
            ).bind(1, id.octets).bind(2, row.app).bind(3, row.user).bind(4, row.length).bind(5, now).run()
            try BlobRows.add(
                BlobUsage(count: 1, bytes: row.length, openBytes: -row.length, openCount: -1), to: row.app, row.user,
                database)
            return true
        }
    }

    func remove(upload id: BlobID) throws(StoreError) {
        try writing("forgetting an upload") { () throws(SQLiteError) in
            guard let row = try found(id) else { return }
            try database.statement("DELETE FROM upload WHERE id = ?1").bind(1, id.octets).run()
            guard row.proof == nil else { return }
            try BlobRows.add(BlobUsage(openBytes: -row.length, openCount: -1), to: row.app, row.user, database)
        }
    }

    func length(of blob: BlobID, in node: NodeID, of app: AppID, _ user: UserID) throws(StoreError) -> Int64? {
        try storing("looking for a blob") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT l.length FROM bucket AS k JOIN node AS n ON n.b = k.id AND n.id = ?4 AND n.blob = ?5
                JOIN blob AS l ON l.id = n.blob WHERE k.app = ?1 AND k.owner = ?2 AND k.name = ?3
                """
            ).bind(1, app.text).bind(2, user.text).bind(3, BucketMode.treeName).bind(4, node.octets)
                .bind(5, blob.octets).first { $0.integer(0) }
        }
    }

    func mayRead(_ user: UserID, _ node: NodeID, in branch: BranchName, of app: AppID) throws(StoreError) -> Bool {
        let readers = try storing("looking for a shared branch") { () throws(SQLiteError) in
            try database.statement(
                """
                WITH RECURSIVE above (b, id, parent, depth) AS (
                    SELECT n.b, n.id, n.parent, 0 FROM bucket AS k JOIN node AS n ON n.b = k.id AND n.id = ?4
                        WHERE k.app = ?1 AND k.owner = ?2 AND k.name = ?3
                    UNION ALL SELECT n.b, n.id, n.parent, a.depth + 1 FROM above AS a
                        JOIN node AS n ON n.b = a.b AND n.id = a.parent WHERE a.depth < ?6)
                SELECT r.shared FROM above AS a JOIN node AS r ON r.b = a.b AND r.id = a.id
                    WHERE a.id = ?5 AND r.shared IS NOT NULL
                        AND NOT EXISTS (SELECT 1 FROM erasure WHERE app = ?1 AND user = ?2)
                """
            ).bind(1, app.text).bind(2, branch.owner.text).bind(3, BucketMode.treeName).bind(4, node.octets)
                .bind(5, branch.root.octets).bind(6, Int64(TreeLimits.depthMax)).first { $0.bytes(0) }
        }
        return readers.flatMap { NodeRow.readers(stored: $0) }?.contains(user) ?? false
    }

    func usage(of app: AppID, _ user: UserID?) throws(StoreError) -> BlobUsage {
        try storing("reading a quota") { () throws(SQLiteError) in try usage(app.text, user?.text ?? "") }
    }

    private func usage(_ app: String, _ user: String) throws(SQLiteError) -> BlobUsage {
        try BlobRows.usage(of: app, user, database) ?? BlobUsage()
    }

    // MARK: For the sweep

    func total() throws(StoreError) -> BlobUsage {
        try storing("adding up blobs") { () throws(SQLiteError) in
            try database.statement(
                "SELECT sum(blobs), sum(bytes), sum(open), sum(uploads) FROM blob_use WHERE user = ''"
            )
            .first(BlobRows.usage) ?? BlobUsage()
        }
    }

    func uploads(until time: Int64, limit: Int) throws(StoreError) -> [BlobID] {
        try ids(
            "SELECT id FROM upload WHERE ifnull(completed, begun) <= ?1 ORDER BY ifnull(completed, begun) LIMIT ?2",
            time,
            limit)
    }

    func collect(until time: Int64, limit: Int) throws(StoreError) -> Int {
        try writing("removing orphans") { () throws(SQLiteError) in
            var orphans = [(id: [UInt8], app: String, user: String, length: Int64)]()
            try database.statement(
                "SELECT id, app, user, length FROM blob WHERE orphaned <= ?1 ORDER BY orphaned LIMIT ?2"
            ).bind(1, time).bind(2, Int64(limit)).forEach { (row) throws(SQLiteError) in
                orphans.append((row.bytes(0), row.text(1), row.text(2), row.integer(3)))
            }
            for orphan in orphans {
                try BlobRows.remove(orphan.id, database)
                try BlobRows.add(BlobUsage(count: -1, bytes: -orphan.length), to: orphan.app, orphan.user, database)
            }
            return orphans.count
        }
    }

    func removed(after blob: BlobID?, limit: Int) throws(StoreError) -> [BlobID] {
        let rows = try storing("listing removed blobs") { () throws(SQLiteError) in
            var rows = [[UInt8]]()
            try database.statement("SELECT id FROM blob_gone WHERE id > ?1 ORDER BY id LIMIT ?2")
                .bind(1, blob?.octets ?? []).bind(2, Int64(limit))
                .forEach { (row) throws(SQLiteError) in rows.append(row.bytes(0)) }
            return rows
        }
        return rows.compactMap(BlobID.init(octets:))
    }

    func forget(_ blobs: [BlobID]) throws(StoreError) {
        try writing("forgetting removed blobs") { () throws(SQLiteError) in
            let delete = try database.statement("DELETE FROM blob_gone WHERE id = ?1")
            for blob in blobs { try delete.bind(1, blob.octets).run() }
        }
    }

    func known(among ids: [BlobID]) throws(StoreError) -> Set<BlobID> {
        try storing("looking for blobs") { () throws(SQLiteError) in
            let statement = try database.statement(
                """
                SELECT 1 WHERE EXISTS (SELECT 1 FROM blob WHERE id = ?1)
                OR EXISTS (SELECT 1 FROM upload WHERE id = ?1 AND proof IS NULL)
                OR EXISTS (SELECT 1 FROM blob_gone WHERE id = ?1)
                """)
            var known = Set<BlobID>()
            for id in ids where try statement.bind(1, id.octets).first({ _ in true }) ?? false { known.insert(id) }
            return known
        }
    }

    private func ids(_ sql: String, _ time: Int64, _ limit: Int) throws(StoreError) -> [BlobID] {
        let rows = try storing("listing uploads") { () throws(SQLiteError) in
            var rows = [[UInt8]]()
            try database.statement(sql).bind(1, time).bind(2, Int64(limit))
                .forEach { (row) throws(SQLiteError) in rows.append(row.bytes(0)) }
            return rows
        }
        return rows.compactMap(BlobID.init(octets:))
    }

    private func writing<Result>(
        _ what: StaticString, _ body: () throws(SQLiteError) -> Result
    ) throws(StoreError) -> Result {
        try storing(what) { () throws(SQLiteError) in try database.transaction(.immediate, body) }
    }
}

extension SQLiteStore {
    /// Opens a connection for the calling thread.
    public func makeBlobLedger() throws(StoreError) -> any BlobLedger {
        let database = try Self.connect(path, .readWrite, settings)
        try Schema.check(database)
        return SQLiteBlobLedger(database)
    }
}
