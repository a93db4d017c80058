import ThicketProtocol
import ThicketSQLite

/// Applies the background work that `StoreMaintenance` planned.
extension SQLiteWriter {
    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove] {
        if work.isEmpty { return [] }
        do {
            return try write(work)
        } catch {
            if work.isHeadsOnly, error.mayBeOfOneTable { recordHeadFailure(error) }
            throw error
        }
    }

    private func write(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove] {
        restartLogIfLong()
        var moved = Set<BucketRow>()
        var moves = [BucketMove]()
        defer { forgetBlocks(of: work) }
        // Erased data must be overwritten in the file as far as SQLite can do that, not only deleted from the tables.
        let isErasing = !work.erasures.isEmpty || work.unusedClients != nil
        if isErasing { try overwrite(true) }
        defer { if isErasing { try? overwrite(false) } }
        var heads = WriteBehindHeads.Slice()
        var erased = Set<BucketRow>()
        try writing("applying background work") { () throws(SQLiteError) in
            // A log row must not be cut before its head is in the table.
            if work.cuts.contains(where: { $0.floor > late.mark }) {
                heads = try writeAllHeads()
            } else if work.headsMax > 0 {
                heads = try writeHeads(limit: work.headsMax)
            }
            for cut in work.cuts where try cutLog(cut) { moved.insert(cut.bucket) }
            for segments in work.segments { try replaceSegments(segments) }
            for forgetting in work.forgettings { try forget(forgetting) }
            if !work.batchAnswers.isEmpty { try nodeRows.remove(work.batchAnswers) }
            try end(work.endedGuests, now: work.endedBy)
            for run in work.changeIDRuns where try archive(run) {
                moved.insert(run.bucket)
            }
            for merge in work.changeIDMerges { try write(merge) }
            if let unused = work.unusedClients { try remove(unused) }
            erased = try buckets(of: work.erasures)
            for erasure in work.erasures { try erase(erasure) }
            for row in moved.sorted() {
                let move = try queries.bucketMarks.bind(1, row).first {
                    BucketMove(bucket: row, floor: $0.integer(1), archived: $0.integer(2))
                }
                if let move { moves.append(move) }
            }
        }
        late.written(heads)
        // Otherwise a later slice would write them again.
        late.forget(erased)
        return moves
    }

    /// All buckets of the users that are being erased.
    private func buckets(of erasures: [MaintenanceBatch.Erasure]) throws(SQLiteError) -> Set<BucketRow> {
        var rows = Set<BucketRow>()
        for erasure in erasures {
            try database.statement("SELECT id FROM bucket WHERE app = ?1 AND owner = ?2").bind(1, erasure.app.text)
                .bind(2, erasure.user.text).forEach { (row) throws(SQLiteError) in rows.insert(row.integer(0)) }
        }
        return rows
    }

    private func overwrite(_ isOn: Bool) throws(StoreError) {
        try storing("preparing to erase") { () throws(SQLiteError) in
            try database.execute(isOn ? "PRAGMA secure_delete=ON" : "PRAGMA secure_delete=OFF")
        }
    }

    /// Drops cached blocks and names that are rewritten, whether or not the write succeeds.
    private func forgetBlocks(of work: MaintenanceBatch) {
        forgetBlocks(of: work.changeIDRuns)
        for merge in work.changeIDMerges { archivedIDs.forget(merge.bucket) }
        if work.unusedClients != nil { clientRows.removeAll() }
    }

    func forgetBlocks(of runs: [MaintenanceBatch.ChangeIDRun]) {
        for run in runs { archivedIDs.forget(run.bucket) }
    }

    // MARK: The log

    private func cutLog(_ cut: MaintenanceBatch.Cut) throws(SQLiteError) -> Bool {
        try database.statement("UPDATE bucket SET floor = ?1 WHERE id = ?2 AND floor = ?3")
            .bind(1, cut.floor).bind(2, cut.bucket).bind(3, cut.floorBefore).run()
        guard database.changedRows == 1 else { return false }
        for kept in cut.keptBodies {
            try database.statement("INSERT OR REPLACE INTO ver (b, k, ver, body) VALUES (?1, ?2, ?3, ?4)")
                .bind(1, cut.bucket).bind(2, kept.key.text).bind(3, kept.version).bind(4, kept.body).run()
        }
        for dropped in cut.droppedBodies {
            try database.statement("DELETE FROM ver WHERE b = ?1 AND k = ?2 AND ver = ?3")
                .bind(1, cut.bucket).bind(2, dropped.key.text).bind(3, dropped.version).run()
        }
        for old in cut.changeIDs {
            try database.statement("INSERT OR REPLACE INTO old_ccid (b, h, ts) VALUES (?1, ?2, ?3)")
                .bind(1, cut.bucket).bind(2, Int64(bitPattern: old.hash)).bind(3, old.timestamp).run()
        }
        let delete = try database.statement("DELETE FROM chg WHERE gid = ?1")
        for row in cut.rows { try delete.bind(1, row).run() }
        // Below the floor, `old_ccid` alone answers: blocks that are entirely below it are no longer needed.
        try database.statement("DELETE FROM idrun WHERE b = ?1 AND high <= ?2")
            .bind(1, cut.bucket).bind(2, cut.floor).run()
        if database.changedRows > 0 { archivedIDs.forget(cut.bucket) }
        return true
    }

    private func replaceSegments(_ work: MaintenanceBatch.SegmentWork) throws(SQLiteError) {
        try database.statement("DELETE FROM seg WHERE b = ?1 AND high > ?2 AND high <= ?3")
            .bind(1, work.bucket).bind(2, work.above).bind(3, work.through).run()
        for segment in work.segments {
            let row = try database.statement(
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

    // MARK: ccids and names

    private func forget(_ forgetting: MaintenanceBatch.Forgetting) throws(SQLiteError) {
        let delete = try database.statement("DELETE FROM old_ccid WHERE b = ?1 AND h = ?2")
        for hash in forgetting.hashes {
            try delete.bind(1, forgetting.bucket).bind(2, Int64(bitPattern: hash)).run()
        }
    }

    /// - Returns: false when the bucket's mark has moved since planning; nothing is changed then.
    func archive(_ run: MaintenanceBatch.ChangeIDRun) throws(SQLiteError) -> Bool {
        try database.statement(
            "UPDATE bucket SET settled = ?1, loose = max(loose - ?2, 0) WHERE id = ?3 AND settled = ?4"
        ).bind(1, run.archived).bind(2, run.count).bind(3, run.bucket).bind(4, run.archivedBefore).run()
        guard database.changedRows == 1 else { return false }
        guard !run.block.isEmpty else { return true }
        try database.statement("INSERT INTO idrun (b, high, entries) VALUES (?1, ?2, ?3)")
            .bind(1, run.bucket).bind(2, run.archived).bind(3, run.block).run()
        return true
    }

    private func write(_ merge: MaintenanceBatch.ChangeIDMerge) throws(SQLiteError) {
        try database.statement("DELETE FROM idset WHERE b = ?1 AND low BETWEEN ?2 AND ?3")
            .bind(1, merge.bucket).bind(2, merge.first.column).bind(3, merge.last.column).run()
        for block in merge.blocks {
            try database.statement("INSERT INTO idset (b, low, entries) VALUES (?1, ?2, ?3)")
                .bind(1, merge.bucket).bind(2, block.low.column).bind(3, block.block).run()
        }
        guard let through = merge.mergedRuns else { return }
        try database.statement("DELETE FROM idrun WHERE b = ?1 AND high <= ?2")
            .bind(1, merge.bucket).bind(2, through).run()
    }

    private func remove(_ unused: MaintenanceBatch.UnusedClients) throws(SQLiteError) {
        var used = Set<Int64>()
        var seen = 0
        try database.statement("SELECT client FROM chg WHERE gid > ?1 LIMIT ?2").bind(1, unused.through)
            .bind(2, Int64(MaintenanceBatch.UnusedClients.newerRowsMax) + 1).forEach { (row) throws(SQLiteError) in
                used.insert(row.integer(0))
                seen += 1
            }
        guard seen <= MaintenanceBatch.UnusedClients.newerRowsMax else { return }
        let delete = try database.statement("DELETE FROM client WHERE id = ?1")
        for row in unused.rows where !used.contains(row) { try delete.bind(1, row).run() }
    }
}
