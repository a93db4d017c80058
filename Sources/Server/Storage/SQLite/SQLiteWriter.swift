import ThicketProtocol
import ThicketSQLite

/// The one writer of a `SQLiteStore`: each group is one transaction, durable when `commit` returns.
final class SQLiteWriter: SQLiteReader, StoreWriter {
    private let store: SQLiteStore
    private let inserts: Inserts
    /// Rows of client names, so that a name is written once. Bounded; what falls out is looked up again.
    private var clientRows: [ClientID: Int64] = [:]
    private var lastClientRow: Int64
    /// The log's pages when it was last asked to begin anew: tried again only when it has grown further.
    private var pagesAtRestart: Int = 0

    private static let clientRowsMax: Int = 20_000

    init(_ store: SQLiteStore, _ database: Database) throws(StoreError) {
        self.store = store
        (inserts, lastClientRow) = try storing("preparing the writes") { () throws(SQLiteError) in
            (try Inserts(database), try database.integer("SELECT max(id) FROM client") ?? 0)
        }
        try super.init(store.identity, store.walks, database)
    }

    func newBucketRow() -> BucketRow { store.newBucketRow() }

    func commit(_ batch: WriteBatch) throws(StoreError) {
        if batch.isEmpty { return }
        restartLogIfLong()
        try writing("committing a group") { () throws(SQLiteError) in
            var freshBytes: [BucketRow: Int64] = [:]
            for change: ChangeRecord in batch.changes {
                try insert(change)
                freshBytes[change.bucket, default: 0] += Int64(change.diff.count + (change.keyframe?.count ?? 0))
            }
            for entity: WriteBatch.EntityWrite in batch.entities {
                try inserts.entity.bind(1, entity.bucket).bind(2, entity.record.key.text)
                    .bind(3, entity.record.version).bind(4, entity.record.gid).bind(5, entity.record.keyframe)
                    .bind(6, entity.record.isDeleted ? 1 : 0).run()
            }
            for bucket: BucketRecord in batch.buckets {
                try write(bucket, isNew: batch.newBuckets.contains(bucket.row), freshBytes[bucket.row] ?? 0)
            }
        }
    }

    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [FloorMove] {
        if work.isEmpty { return [] }
        restartLogIfLong()
        var moves: [FloorMove] = []
        try writing("applying background work") { () throws(SQLiteError) in
            for cut: MaintenanceBatch.Cut in work.cuts {
                guard try cutLog(cut) else { continue }
                moves.append(FloorMove(bucket: cut.bucket, floor: cut.floor))
            }
            for segments: MaintenanceBatch.SegmentWork in work.segments { try replaceSegments(segments) }
            for forgetting: MaintenanceBatch.Forgetting in work.forgettings {
                try database.statement("DELETE FROM old_ccid WHERE b = ?1 AND ts < ?2")
                    .bind(1, forgetting.bucket).bind(2, forgetting.before).run()
            }
        }
        return moves
    }

    func probe() throws(StoreError) {
        try writing("probing") { () throws(SQLiteError) in
            let next: Int64 = (try Meta.integer(Meta.probe, database) ?? 0) + 1
            try Meta.set(Meta.probe, next, database)
        }
    }

    /// One transaction: written and synced when this returns, undone when it throws.
    private func writing(_ what: StaticString, _ body: () throws(SQLiteError) -> Void) throws(StoreError) {
        let clientRow: Int64 = lastClientRow
        do {
            try database.begin(.immediate)
            try body()
            try database.commit()
        } catch {
            database.rollback()
            if lastClientRow != clientRow {
                lastClientRow = clientRow
                clientRows.removeAll()
            }
            if error.isFull || error.isIO { makeRoom() }
            throw StoreError(error, "\(what)")
        }
        store.walPages.store(database.walPages, ordering: .relaxed)
        if database.walPages < pagesAtRestart { pagesAtRestart = 0 }
    }

    // MARK: Rows of a group

    private func insert(_ change: ChangeRecord) throws(SQLiteError) {
        let row: Statement = inserts.change
        row.bind(1, change.gid).bind(2, change.bucket).bind(3, change.key.text).bind(4, change.kind.rawValue)
            .bind(5, change.sourceVersion).bind(6, change.endVersion).bind(7, change.previousOfEntity)
            .bind(8, change.previousKeyframe).bind(9, change.previousOfBucket)
            .bind(10, try clientRow(change.clientID)).bind(12, change.timestamp)
        switch PackedChangeID(change.changeID) {
        case .bytes(let bytes): row.bind(11, bytes)
        case .text(let text): row.bind(11, text)
        }
        try change.diff.withUnsafeBufferPointer { (diff) throws(SQLiteError) in
            row.bind(13, inPlace: UnsafeRawBufferPointer(diff))
            guard let keyframe: [UInt8] = change.keyframe else {
                try row.bind(14, nil as Int64?).run()
                return
            }
            try keyframe.withUnsafeBufferPointer { (body) throws(SQLiteError) in
                try row.bind(14, inPlace: UnsafeRawBufferPointer(body)).run()
            }
        }
    }

    private func clientRow(_ name: ClientID) throws(SQLiteError) -> Int64 {
        if let known: Int64 = clientRows[name] { return known }
        if clientRows.count >= Self.clientRowsMax { clientRows.removeAll() }
        if let stored: Int64 = try inserts.findClient.bind(1, name.text).first({ $0.integer(0) }) {
            clientRows[name] = stored
            return stored
        }
        lastClientRow += 1
        try inserts.client.bind(1, lastClientRow).bind(2, name.text).run()
        clientRows[name] = lastClientRow
        return lastClientRow
    }

    private func write(_ bucket: BucketRecord, isNew: Bool, _ freshBytes: Int64) throws(SQLiteError) {
        guard isNew else {
            try inserts.bucketHead.bind(1, bucket.head).bind(2, freshBytes).bind(3, bucket.row).run()
            guard database.changedRows == 1 else {
                throw SQLiteError.refused("bucket row \(bucket.row) is missing")
            }
            return
        }
        try inserts.bucket.bind(1, bucket.row).bind(2, bucket.id.app.text).bind(3, bucket.id.user.text)
            .bind(4, bucket.id.name.text).bind(5, bucket.head).bind(6, bucket.floor).bind(7, freshBytes).run()
    }

    // MARK: Background work

    private func cutLog(_ cut: MaintenanceBatch.Cut) throws(SQLiteError) -> Bool {
        try database.statement("UPDATE bucket SET floor = ?1 WHERE id = ?2 AND floor = ?3")
            .bind(1, cut.floor).bind(2, cut.bucket).bind(3, cut.floorBefore).run()
        guard database.changedRows == 1 else { return false }
        for kept: MaintenanceBatch.KeptBody in cut.keptBodies {
            try database.statement("INSERT OR REPLACE INTO ver (b, k, ver, body) VALUES (?1, ?2, ?3, ?4)")
                .bind(1, cut.bucket).bind(2, kept.key.text).bind(3, kept.version).bind(4, kept.body).run()
        }
        for dropped: MaintenanceBatch.KeptVersion in cut.droppedBodies {
            try database.statement("DELETE FROM ver WHERE b = ?1 AND k = ?2 AND ver = ?3")
                .bind(1, cut.bucket).bind(2, dropped.key.text).bind(3, dropped.version).run()
        }
        for old: MaintenanceBatch.OldChangeID in cut.changeIDs {
            try database.statement("INSERT OR REPLACE INTO old_ccid (b, h, ts) VALUES (?1, ?2, ?3)")
                .bind(1, cut.bucket).bind(2, Int64(bitPattern: old.hash)).bind(3, old.timestamp).run()
        }
        let delete: Statement = try database.statement("DELETE FROM chg WHERE gid = ?1")
        for row: GlobalID in cut.rows { try delete.bind(1, row).run() }
        return true
    }

    private func replaceSegments(_ work: MaintenanceBatch.SegmentWork) throws(SQLiteError) {
        try database.statement("DELETE FROM seg WHERE b = ?1 AND high > ?2 AND high <= ?3")
            .bind(1, work.bucket).bind(2, work.above).bind(3, work.through).run()
        for segment: MaintenanceBatch.Segment in work.segments {
            let row: Statement = try database.statement(
                "INSERT INTO seg (b, high, count, bytes, content) VALUES (?1, ?2, ?3, ?4, ?5)")
            row.bind(1, work.bucket).bind(2, segment.high).bind(3, Int64(segment.count))
                .bind(4, Int64(segment.content.count))
            try segment.content.withUnsafeBufferPointer { (content) throws(SQLiteError) in
                try row.bind(5, inPlace: UnsafeRawBufferPointer(content)).run()
            }
        }
        try database.statement("UPDATE bucket SET fresh = max(fresh - ?1, 0) WHERE id = ?2")
            .bind(1, work.freshBytes).bind(2, work.bucket).run()
    }

    // MARK: The log's length

    /// Makes a log that has grown too long begin anew: between two groups, when nobody waits for a commit.
    ///
    /// The keeper has moved most pages by then. When readers hold the log (a backup may, for seconds) the writer goes
    /// on after a short wait, and tries again when it has grown by as much as the keeper begins at.
    private func restartLogIfLong() {
        let pages: Int = database.walPages
        guard pages >= store.settings.restartPages, pages >= pagesAtRestart + store.settings.passivePages else {
            return
        }
        pagesAtRestart = pages
        restartLog()
    }

    /// After a failed write: a log that cannot grow has room again once its pages stand in the file, which may well have
    /// place for them.
    private func makeRoom() {
        restartLog()
        store.walPages.store(database.walPages, ordering: .relaxed)
    }

    private func restartLog() {
        database.setBusyTimeout(milliseconds: store.settings.restartWaitMilliseconds)
        // What cannot be moved now stays in the log, where it is safe; the commit that follows tells of a bad disk.
        _ = try? database.checkpoint(.restart)
        database.setBusyTimeout(milliseconds: store.settings.busyTimeoutMilliseconds)
    }
}

/// The prepared writes that every group runs.
private struct Inserts {
    let change: Statement
    let entity: Statement
    let bucket: Statement
    let bucketHead: Statement
    let client: Statement
    let findClient: Statement

    init(_ database: Database) throws(SQLiteError) {
        change = try database.prepare(
            """
            INSERT INTO chg (gid, b, k, op, sv, ev, pe, pk, pb, client, ccid, ts, diff, snap)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            """)
        entity = try database.prepare(
            "INSERT OR REPLACE INTO ent (b, k, ver, gid, kf, dead) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        bucket = try database.prepare(
            """
            INSERT INTO bucket (id, app, owner, name, head, floor, fresh) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)
        bucketHead = try database.prepare("UPDATE bucket SET head = ?1, fresh = fresh + ?2 WHERE id = ?3")
        client = try database.prepare("INSERT INTO client (id, name) VALUES (?1, ?2)")
        findClient = try database.prepare("SELECT id FROM client WHERE name = ?1")
    }
}
