import ThicketProtocol
import ThicketSQLite

/// The only writer of a `SQLiteStore`: each group is one transaction, durable when `commit` returns.
final class SQLiteWriter: SQLiteReader, StoreWriter {
    private let store: SQLiteStore
    private let inserts: Inserts
    private let headWriter: HeadWriter
    let nodeRows: NodeRows
    /// Rows of client names, so that a name is inserted once. Bounded; a name dropped here is looked up again.
    var clientRows = [ClientID: Int64]()
    private var lastClientRow: Int64
    /// Log pages at the latest attempt to restart the log: the next attempt waits for further growth.
    private var pagesAtRestart = 0
    /// Whether the open transaction already holds the write lock, acquired by `beginCommit`.
    private var holdsWriteLock = false
    /// Log pages after the previous commit: a smaller number means that the log was restarted.
    private var pagesBefore = 0
    var archivedIDs: ArchivedChangeIDs
    /// Whether the open transaction is abandoned because an operator changed the mode of a bucket.
    private var isStale = false

    private static let clientRowsMax = 20_000

    init(_ store: SQLiteStore, _ database: Database) throws(StoreError) {
        self.store = store
        archivedIDs = ArchivedChangeIDs(bytesMax: store.settings.changeIDBytesMax)
        (inserts, headWriter, nodeRows, lastClientRow) = try storing("preparing the writes") { () throws(SQLiteError) in
            (
                try Inserts(database), try HeadWriter(database), try NodeRows(database),
                try database.integer("SELECT max(id) FROM client") ?? 0
            )
        }
        try super.init(store.identity, store.readerCache, store.late, database)
        // Without the reservation commits are only slower. If the disk is full, a later write reports it.
        try? database.reserveLog(bytes: store.settings.logReservedBytes)
    }

    var changeIDBytes: Int { archivedIDs.memory }

    /// The writer sees everything it has written.
    override func writeBehindHeads() throws(StoreError) -> WriteBehindHeads.View {
        .init(origin: late.origin, upTo: .max)
    }

    func newBucketRow() -> BucketRow { store.newBucketRow() }

    var changeIDRunLength: Int? { store.settings.changeIDRunLength }

    // Each read outside a transaction locks and unlocks the file, so a group reads within one transaction. It begins a
    // new transaction to write. Of what other processes write in between, only modes matter; they are checked again.

    func beginReads() {
        guard !database.isInTransaction else { return }
        // If the store cannot be read, the read itself reports the error.
        try? database.begin(.deferred)
    }

    func endReads() {
        holdsWriteLock = false
        guard database.isInTransaction else { return }
        do { try database.commit() } catch { database.rollback() }
    }

    func refreshReads() {
        // With the lock, nothing was committed since the transaction began.
        guard database.isInTransaction, !holdsWriteLock else { return }
        endReads()
        beginReads()
    }

    func beginCommit() -> Bool {
        guard !database.isInTransaction, !isLogLong else { return false }
        database.setBusyTimeout(milliseconds: 0)
        defer { database.setBusyTimeout(milliseconds: store.settings.busyTimeoutMilliseconds) }
        do { try database.begin(.immediate) } catch { return false }
        holdsWriteLock = true
        return true
    }

    func commit(_ batch: WriteBatch) throws(StoreError) {
        if batch.isEmpty || !holdsWriteLock { endReads() }
        if batch.isEmpty { return }
        if !holdsWriteLock { restartLogIfLong() }
        forgetBlocks(of: batch.changeIDRuns)
        let failure = try late.carry(batch.entities, changes: batch.count) { (slice) throws(StoreError) in
            try write(batch, with: slice)
        }
        if let failure { recordHeadFailure(failure) }
    }

    /// Recorded for the server's log, which maintenance writes.
    func recordHeadFailure(_ failure: StoreError) {
        store.headFailure.withLock { $0 = ($0.count + 1, failure.description) }
    }

    private func write(_ batch: WriteBatch, with slice: WriteBehindHeads.Slice) throws(StoreError) {
        try writing("committing a group") { () throws(SQLiteError) in
            for change in batch.changes { try insert(change) }
            try headWriter.write(slice, database)
            if !batch.nodes.isEmpty, try !nodeRows.write(batch.nodes, at: batch.time) {
                // The changes are decided again, and refused.
                isStale = true
                throw SQLiteError.refused("a blob was removed")
            }
            for answer in batch.answers { try nodeRows.write(answer) }
            for policy in batch.policies { try nodeRows.write(policy) }
            for use in batch.guests where try !use.write(at: batch.time, database) {
                // The changes are decided again, and refused.
                isStale = true
                throw SQLiteError.refused("a guest was removed, or has reached a bound")
            }
            for (bucket, news) in zip(batch.buckets, batch.news) {
                try write(bucket, isNew: batch.newBuckets.contains(bucket.row), news)
            }
            for run in batch.changeIDRuns {
                // The shard is about to drop these ccids from memory: failing the group is better than losing them.
                guard try archive(run) else {
                    throw SQLiteError.refused("bucket row \(run.bucket) was archived by another writer")
                }
            }
        }
    }

    func archivedChange(hash: UInt64, in bucket: BucketRecord) throws(StoreError) -> GlobalID? {
        // For rows that were cut, only `old_ccid` decides, for its own retention time.
        if let gid = try archivedIDs.position(of: hash, in: bucket.row, database), gid > bucket.floor {
            return gid
        }
        guard bucket.floor > 0, try isOldChangeID(hash, in: bucket.row) else { return nil }
        return 0
    }

    func liveCount(in bucket: BucketRow) throws(StoreError) -> Int {
        try reading { () throws(StoreError) in try count(in: bucket) }
    }

    private func count(in bucket: BucketRow) throws(StoreError) -> Int {
        let late = try writeBehindHeads().heads(of: bucket)
        return try storing("counting the objects") { () throws(SQLiteError) in
            var count =
                try database.statement("SELECT count(*) FROM ent WHERE b = ?1 AND dead = 0").bind(1, bucket)
                .first { Int($0.integer(0)) } ?? 0
            let stored = try database.statement("SELECT 1 FROM ent WHERE b = ?1 AND k = ?2 AND dead = 0")
            for record in late.values {
                let isStored = try stored.bind(1, bucket).bind(2, record.key.text).first { _ in true } ?? false
                count += (record.isDeleted ? 0 : 1) - (isStored ? 1 : 0)
            }
            return count
        }
    }

    func noteRule(of bucket: BucketID) throws(StoreError) -> NoteRule {
        guard NoteRule.isBucket(bucket.name) else { return .none }
        return try storing("looking at an app") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT notes, EXISTS (SELECT 1 FROM pro WHERE app = ?1 AND user = ?2) FROM app WHERE name = ?1
                """
            ).bind(1, bucket.app.text).bind(2, bucket.user.text).first {
                NoteRule($0.integer(0), isPro: $0.integer(1) != 0)
            } ?? .none
        }
    }

    func leastRecent(in bucket: BucketRow, limit: Int) throws(StoreError) -> [LiveEntity] {
        let late = try writeBehindHeads().heads(of: bucket)
        var found = [(key: String, gid: GlobalID)]()
        try storing("looking for old objects") { () throws(SQLiteError) in
            try database.statement("SELECT k, gid FROM ent WHERE b = ?1 AND dead = 0 ORDER BY gid LIMIT ?2")
                .bind(1, bucket).bind(2, Int64(limit + late.count))
                .forEach { (row) throws(SQLiteError) in found.append((row.text(0), row.integer(1))) }
        }
        var live = [LiveEntity]()
        for (key, gid) in found { live.append(LiveEntity(key: try .stored(key), gid: gid)) }
        if late.isEmpty { return live }
        live.removeAll { late[$0.key] != nil }
        live += late.values.lazy.filter { !$0.isDeleted }.map { LiveEntity(key: $0.key, gid: $0.gid) }
        return Array(live.sorted { $0.gid < $1.gid }.prefix(limit))
    }

    func probe() throws(StoreError) {
        try writing("probing") { () throws(SQLiteError) in
            let next = (try Meta.integer(Meta.probe, database) ?? 0) + 1
            try Meta.set(Meta.probe, next, database)
        }
    }

    /// Runs one transaction: written and synced on return, rolled back when it throws.
    func writing(_ what: StaticString, _ body: () throws(SQLiteError) -> Void) throws(StoreError) {
        let clientRow = lastClientRow
        do {
            // A failed read may have rolled the transaction back.
            if !holdsWriteLock || !database.isInTransaction { try database.begin(.immediate) }
            holdsWriteLock = false
            try body()
            try database.commit()
        } catch {
            database.rollback()
            if lastClientRow != clientRow {
                lastClientRow = clientRow
                clientRows.removeAll()
            }
            if error.isFull || error.isIO { restartLogAfterFailure() }
            defer { isStale = false }
            if isStale { throw StoreError(.stale, "\(what): \(error)") }
            throw StoreError(error, "\(what)")
        }
        publishLogLength()
    }

    // MARK: Heads

    /// Writes all heads into the table, inside the open transaction.
    func writeAllHeads() throws(SQLiteError) -> WriteBehindHeads.Slice {
        let slice = late.whole()
        try headWriter.write(slice, database)
        return slice
    }

    /// Writes at most `limit` heads, in the background.
    func writeHeads(limit: Int) throws(SQLiteError) -> WriteBehindHeads.Slice {
        let slice = late.slice(limit: limit, always: true)
        try headWriter.write(slice, database)
        return slice
    }

    // MARK: Rows of a group

    private func insert(_ change: ChangeRecord) throws(SQLiteError) {
        let row = inserts.change
        row.bind(1, change.gid)
        row.bind(2, change.bucket)
        row.bind(4, change.kind.rawValue)
        row.bind(5, change.sourceVersion)
        row.bind(6, change.endVersion)
        row.bind(7, change.previousOfEntity)
        row.bind(8, change.previousKeyframe)
        row.bind(9, change.previousOfBucket)
        row.bind(10, try clientRow(change.clientID))
        row.bind(12, change.timestamp)
        row.bind(15, change.audience?.octets)
        // Long values are passed to SQLite without a copy, until the row is written.
        let failure = change.key.text.withBytes { key in
            row.bind(3, textInPlace: key)
            return Self.lend(change.changeID, to: row, at: 11) {
                change.diff.withUnsafeBytes { diff in
                    row.bind(13, inPlace: diff)
                    guard let keyframe = change.keyframe else {
                        row.bind(14, nil as Int64?)
                        return row.runLent()
                    }
                    return keyframe.withUnsafeBytes { body in
                        row.bind(14, inPlace: body)
                        return row.runLent()
                    }
                }
            }
        }
        if let failure { throw failure }
    }

    /// Binds a ccid in its column format for the duration of `body`.
    private static func lend(
        _ changeID: ChangeID, to row: Statement, at place: Int32, _ body: () -> SQLiteError?
    ) -> SQLiteError? {
        changeID.text.withBytes { text in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: PackedChangeID.packedBytesMax) { packed in
                guard let base = packed.baseAddress else { return .refused("no memory") }
                let count = PackedChangeID.pack(text, to: base)
                if count > 0 {
                    row.bind(place, inPlace: UnsafeRawBufferPointer(start: base, count: count))
                } else {
                    row.bind(place, textInPlace: text)
                }
                return body()
            }
        }
    }

    private func clientRow(_ name: ClientID) throws(SQLiteError) -> Int64 {
        if let known = clientRows[name] { return known }
        if clientRows.count >= Self.clientRowsMax { clientRows.removeAll() }
        if let stored = try inserts.findClient.bind(1, name.text).first({ $0.integer(0) }) {
            clientRows[name] = stored
            return stored
        }
        lastClientRow += 1
        try inserts.client.bind(1, lastClientRow).bind(2, name.text).run()
        clientRows[name] = lastClientRow
        return lastClientRow
    }

    private func write(_ bucket: BucketRecord, isNew: Bool, _ news: WriteBatch.BucketNews) throws(SQLiteError) {
        guard isNew else {
            try inserts.bucketHead.bind(1, bucket.head).bind(2, Int64(news.bytes)).bind(3, Int64(news.changes))
                .bind(4, bucket.row).bind(5, bucket.mode.rawValue).run()
            guard database.changedRows == 1 else {
                isStale = try hasRow(bucket)
                throw SQLiteError.refused("bucket row \(bucket.row) is missing, or its mode was changed")
            }
            return
        }
        // An operator's setting applies immediately, also to groups in progress.
        if bucket.mode != .sealed, try database.mode(ofNew: bucket.id.name, in: bucket.id.app) == .sealed {
            isStale = true
            throw SQLiteError.refused("buckets of that name are sealed now")
        }
        try inserts.bucket.bind(1, bucket.row).bind(2, bucket.id.app.text).bind(3, bucket.id.user.text)
            .bind(4, bucket.id.name.text).bind(5, bucket.head).bind(6, bucket.floor).bind(7, Int64(news.bytes))
            .bind(8, Int64(news.changes)).bind(9, bucket.mode.rawValue).run()
    }

    private func hasRow(_ bucket: BucketRecord) throws(SQLiteError) -> Bool {
        try database.statement("SELECT 1 FROM bucket WHERE id = ?1").bind(1, bucket.row).first { _ in true } ?? false
    }

    // MARK: The log's length

    /// Restarts a write-ahead log that has grown too long: between two groups, before the next write takes its lock.
    ///
    /// Maintenance has checkpointed most pages by then. When readers hold the log (a backup may do so for seconds), the
    /// writer continues after a short wait, and tries again when the log has grown by `passivePages`.
    func restartLogIfLong() {
        guard isLogLong else { return }
        pagesAtRestart = database.walPages
        restartLog()
    }

    private var isLogLong: Bool {
        let pages = database.walPages
        guard pages >= store.settings.restartPages, pages >= pagesAtRestart + store.settings.passivePages else {
            return false
        }
        // Checkpointing the pages that maintenance has not moved would block all groups for the duration of a large
        // write.
        return pages - movedPages <= store.settings.restartRestPages || pages >= store.settings.restartPagesMax
    }

    /// After a failed write: a log that cannot grow can be reused once its pages are in the file, which may well have
    /// space for them.
    private func restartLogAfterFailure() {
        restartLog()
        publishLogLength()
    }

    /// Pages of this generation of the log that maintenance has checkpointed.
    private var movedPages: Int {
        let generation = store.walGeneration.load(ordering: .relaxed)
        return store.walMoved.withLock { $0.generation == generation ? $0.pages : 0 }
    }

    /// Publishes the length of the log for maintenance.
    private func publishLogLength() {
        let pages = database.walPages
        if pages < pagesBefore {
            store.walGeneration.wrappingAdd(1, ordering: .releasing)
            pagesAtRestart = 0
        }
        pagesBefore = pages
        store.walPages.store(pages, ordering: .relaxed)
    }

    private func restartLog() {
        database.setBusyTimeout(milliseconds: store.settings.restartWaitMilliseconds)
        // Pages that cannot be moved now stay safely in the log; the following commit reports a failing disk.
        _ = try? database.checkpoint(.restart)
        database.setBusyTimeout(milliseconds: store.settings.busyTimeoutMilliseconds)
    }
}

/// The prepared writes of every group.
private struct Inserts {
    let change: Statement
    let bucket: Statement
    let bucketHead: Statement
    let client: Statement
    let findClient: Statement

    init(_ database: Database) throws(SQLiteError) {
        change = try database.prepare(
            """
            INSERT INTO chg (gid, b, k, op, sv, ev, pe, pk, pb, client, ccid, ts, diff, snap, aud)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
            """)
        bucket = try database.prepare(
            """
            INSERT INTO bucket (id, app, owner, name, head, floor, fresh, loose, mode)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        bucketHead = try database.prepare(
            "UPDATE bucket SET head = ?1, fresh = fresh + ?2, loose = loose + ?3 WHERE id = ?4 AND mode = ?5")
        client = try database.prepare("INSERT INTO client (id, name) VALUES (?1, ?2)")
        findClient = try database.prepare("SELECT id FROM client WHERE name = ?1")
    }
}
