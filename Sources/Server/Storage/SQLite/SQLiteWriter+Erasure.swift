import ThicketProtocol
import ThicketSQLite

/// Removes the data of users whose accounts are closed, in bounded steps: bucket by bucket, first the data derived from
/// the log, last the bucket's own row. A half-erased bucket is not accessible, so a step may stop anywhere.
extension SQLiteWriter {
    /// Rows and bytes that a step may still remove.
    private struct Budget {
        var rows: Int
        var bytes: Int
        var isSpent: Bool { rows <= 0 || bytes <= 0 }

        mutating func spend(bytes count: Int = 0) {
            rows -= 1
            bytes -= count
        }
    }

    /// Runs one step. The last step also deletes the row of `erasure`.
    func erase(_ erasure: MaintenanceBatch.Erasure) throws(SQLiteError) {
        var budget = Budget(rows: erasure.rowsMax, bytes: erasure.bytesMax)
        while !budget.isSpent {
            let bucket: BucketRow? = try database.statement(
                "SELECT id FROM bucket WHERE app = ?1 AND owner = ?2 ORDER BY id LIMIT 1"
            ).bind(1, erasure.app.text).bind(2, erasure.user.text).first { $0.integer(0) }
            guard let bucket else {
                guard try eraseBlobs(of: erasure.app.text, erasure.user.text, &budget) else { return }
                // The other tables of an account were cleared when it was closed. Users of partners have no account, so
                // their rows are deleted now.
                for table: (name: String, user: String) in [
                    ("entity_bundle", "entity"), ("pro", "user"), ("inbox_policy", "user"), ("erasure", "user"),
                ] {
                    try database.statement("DELETE FROM \(table.name) WHERE app = ?1 AND \(table.user) = ?2")
                        .bind(1, erasure.app.text).bind(2, erasure.user.text).run()
                }
                return
            }
            archivedIDs.forget(bucket)
            try erase(bucket, &budget)
        }
    }

    private func erase(_ bucket: BucketRow, _ budget: inout Budget) throws(SQLiteError) {
        try eraseRows(of: bucket, "SELECT id, bytes FROM seg WHERE b = ?1", "DELETE FROM seg WHERE id = ?1", &budget)
        try eraseRows(
            of: bucket, "SELECT id, length(body) FROM ver WHERE b = ?1", "DELETE FROM ver WHERE id = ?1", &budget)
        for table: ChangeIDTable in [.runs, .sets] {
            try eraseRows(of: bucket, table.selection, table.deletion, &budget)
        }
        try eraseLog(of: bucket, &budget)
        try eraseKeys(
            of: bucket, "DELETE FROM ent WHERE b = ?1 AND k IN (SELECT k FROM ent WHERE b = ?1 LIMIT ?2)", &budget)
        try eraseKeys(
            of: bucket, "DELETE FROM old_ccid WHERE b = ?1 AND h IN (SELECT h FROM old_ccid WHERE b = ?1 LIMIT ?2)",
            &budget)
        try orphanBlobs(of: bucket, &budget)
        try eraseNodes(of: bucket, &budget)
        try eraseKeys(
            of: bucket, "DELETE FROM batch WHERE b = ?1 AND id IN (SELECT id FROM batch WHERE b = ?1 LIMIT ?2)", &budget
        )
        guard !budget.isSpent else { return }
        // A row number is part of the bucket's identity, so it is never reused.
        try Meta.set(Meta.erasedRow, max(bucket, try Meta.integer(Meta.erasedRow, database) ?? 0), database)
        try database.statement("DELETE FROM tree_use WHERE b = ?1").bind(1, bucket).run()
        try database.statement("DELETE FROM bucket WHERE id = ?1").bind(1, bucket).run()
        budget.spend()
    }

    /// Deletes rows of nodes, and subtracts them from the usage of the tree.
    private func eraseNodes(of bucket: BucketRow, _ budget: inout Budget) throws(SQLiteError) {
        guard !budget.isSpent else { return }
        var (count, bytes) = (0, Int64(0))
        try database.statement(
            """
            DELETE FROM node WHERE b = ?1 AND id IN (SELECT id FROM node WHERE b = ?1 LIMIT ?2) RETURNING bytes
            """
        ).bind(1, bucket).bind(2, Int64(budget.rows)).forEach { (row) throws(SQLiteError) in
            count += 1
            bytes += row.integer(0)
        }
        budget.rows -= count
        try database.statement("UPDATE tree_use SET nodes = nodes - ?2, bytes = bytes - ?3 WHERE b = ?1")
            .bind(1, bucket).bind(2, Int64(count)).bind(3, bytes).run()
    }

    /// Releases the blobs of the bucket's nodes, before the nodes are deleted; those without another reference are
    /// removed by the next sweep.
    private func orphanBlobs(of bucket: BucketRow, _ budget: inout Budget) throws(SQLiteError) {
        guard !budget.isSpent else { return }
        var nodes = [(id: [UInt8], blob: [UInt8])]()
        try database.statement("SELECT id, blob FROM node WHERE b = ?1 AND blob IS NOT NULL LIMIT ?2")
            .bind(1, bucket).bind(2, Int64(budget.rows))
            .forEach { (row) throws(SQLiteError) in nodes.append((row.bytes(0), row.bytes(1))) }
        let release = try database.statement("UPDATE node SET blob = NULL WHERE b = ?1 AND id = ?2")
        for node in nodes {
            try release.bind(1, bucket).bind(2, node.id).run()
            budget.spend()
        }
        try BlobRows.orphan(Set(nodes.map(\.blob)), since: 0, database)
    }

    /// Removes the user's blobs that no other tree refers to, and its uploads.
    /// - Returns: whether none is left.
    private func eraseBlobs(of app: String, _ user: String, _ budget: inout Budget) throws(SQLiteError) -> Bool {
        var blobs = [(id: [UInt8], length: Int64)]()
        try database.statement(
            """
            SELECT id, length FROM blob WHERE app = ?1 AND user = ?2
            AND NOT EXISTS (SELECT 1 FROM node WHERE node.blob = blob.id) LIMIT ?3
            """
        ).bind(1, app).bind(2, user).bind(3, Int64(budget.rows))
            .forEach { (row) throws(SQLiteError) in blobs.append((row.bytes(0), row.integer(1))) }
        for blob in blobs {
            try BlobRows.remove(blob.id, database)
            try BlobRows.add(BlobUsage(count: -1, bytes: -blob.length), to: app, user, database)
            budget.spend()
        }
        guard !budget.isSpent, try releaseBlobs(of: app, user, &budget) else { return false }
        let open = try database.statement("SELECT open, uploads FROM blob_use WHERE app = ?1 AND user = ?2")
            .bind(1, app).bind(2, user).first { BlobUsage(openBytes: -$0.integer(0), openCount: -Int($0.integer(1))) }
        if let open { try BlobRows.add(open, to: app, user, database) }
        // What their uploads have left in the blob store is found by the sweep.
        try database.statement("DELETE FROM upload WHERE app = ?1 AND user = ?2").bind(1, app).bind(2, user).run()
        try database.statement("DELETE FROM blob_use WHERE app = ?1 AND user = ?2 AND blobs = 0").bind(1, app)
            .bind(2, user).run()
        return true
    }

    /// Blobs to which nodes of other trees refer have no owner from now on: they count for the app only, until the last
    /// reference goes.
    /// - Returns: whether none is left.
    private func releaseBlobs(of app: String, _ user: String, _ budget: inout Budget) throws(SQLiteError) -> Bool {
        var (count, bytes) = (Int64(0), Int64(0))
        try database.statement(
            """
            UPDATE blob SET user = '' WHERE id IN (SELECT id FROM blob WHERE app = ?1 AND user = ?2 LIMIT ?3)
            RETURNING length
            """
        ).bind(1, app).bind(2, user).bind(3, Int64(budget.rows)).forEach { (row) throws(SQLiteError) in
            count += 1
            bytes += row.integer(0)
        }
        guard count > 0 else { return true }
        budget.rows -= Int(count)
        try database.statement(
            "UPDATE blob_use SET blobs = blobs - ?3, bytes = bytes - ?4 WHERE app = ?1 AND user = ?2"
        )
        .bind(1, app).bind(2, user).bind(3, count).bind(4, bytes).run()
        return !budget.isSpent
    }

    /// The tables with blocks of ccids: in log order and in hash order.
    private enum ChangeIDTable {
        case runs, sets

        var selection: String {
            switch self {
            case .runs: "SELECT id, length(entries) FROM idrun WHERE b = ?1"
            case .sets: "SELECT id, length(entries) FROM idset WHERE b = ?1"
            }
        }

        var deletion: String {
            switch self {
            case .runs: "DELETE FROM idrun WHERE id = ?1"
            case .sets: "DELETE FROM idset WHERE id = ?1"
            }
        }
    }

    /// Deletes rows that may be large, one by one; at least one is deleted.
    private func eraseRows(
        of bucket: BucketRow, _ selection: String, _ deletion: String, _ budget: inout Budget
    ) throws(SQLiteError) {
        guard !budget.isSpent else { return }
        var rows = [(id: Int64, bytes: Int)]()
        try database.statement(selection + " LIMIT ?2").bind(1, bucket).bind(2, Int64(budget.rows))
            .forEach { (row) throws(SQLiteError) in rows.append((row.integer(0), Int(row.integer(1)))) }
        let delete = try database.statement(deletion)
        for row in rows where !budget.isSpent {
            try delete.bind(1, row.id).run()
            budget.spend(bytes: row.bytes)
        }
    }

    /// Deletes small rows, many at once.
    private func eraseKeys(
        of bucket: BucketRow, _ deletion: String, _ budget: inout Budget
    ) throws(SQLiteError) {
        guard !budget.isSpent else { return }
        try database.statement(deletion).bind(1, bucket).bind(2, Int64(budget.rows)).run()
        budget.rows -= database.changedRows
    }

    /// The log has no index by bucket, so the bucket's chain is followed from its newest change backwards.
    private func eraseLog(of bucket: BucketRow, _ budget: inout Budget) throws(SQLiteError) {
        guard !budget.isSpent else { return }
        guard
            var (place, floor): (GlobalID, GlobalID) = try queries.bucketRow.bind(1, bucket).first({
                ($0.integer(0), $0.integer(1))
            })
        else { return }
        // Positions are never reused: caches that refer to a reused position would show its content to another user.
        try Meta.set(Meta.erased, max(place, try Meta.integer(Meta.erased, database) ?? 0), database)
        let link = try database.statement(
            "SELECT pb, length(diff) + ifnull(length(snap), 0) FROM chg WHERE gid = ?1 AND b = ?2")
        let delete = try database.statement("DELETE FROM chg WHERE gid = ?1 AND b = ?2")
        while place > floor, !budget.isSpent {
            let found: (previous: GlobalID, bytes: Int)? = try link.bind(1, place).bind(2, bucket)
                .first { ($0.integer(0), Int($0.integer(1))) }
            guard let found, found.previous < place else { break }
            try delete.bind(1, place).bind(2, bucket).run()
            budget.spend(bytes: found.bytes)
            place = found.previous
        }
        floor = min(floor, place)
        try database.statement("UPDATE bucket SET head = ?2, floor = ?3 WHERE id = ?1").bind(1, bucket)
            .bind(2, place).bind(3, floor).run()
    }
}
