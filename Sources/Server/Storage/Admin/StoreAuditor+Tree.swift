import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

// Checks that the table `node` has exactly the live records of trees, and that these are trees.
extension StoreAuditor {
    /// Checks a live record, and that the table has it at its place.
    func auditNode(_ entity: EntityRecord, _ state: JSONObject, in bucket: BucketRow) throws(StoreError) {
        let node: NodeID
        do throws(TreeRefusal) { node = try TreeCheck.node(of: entity.key.text) } catch {
            throw broken("the bucket is a tree, and \(error)")
        }
        let record: NodeRecord
        do throws(RecordFault) { record = try NodeRecord(state, from: .server) } catch {
            throw broken("the bucket is a tree, and the object is not a record: \(error)")
        }
        guard let row = try reader.nodeRow(of: node, in: bucket) else {
            throw broken("the table of nodes does not have it")
        }
        guard row.place == NodePlace(parent: record.parent, tag: record.tag) else {
            throw broken("the table of nodes has it at another place")
        }
        // Rows from before burn times have none until the node's next change.
        guard row.gid == entity.gid, row.burnTime == nil || row.burnTime == record.burnTime else {
            throw broken("the table of nodes has another change or burn time of it")
        }
        // Rows from before bytes were counted have none until the node's next change.
        guard row.bytes == 0 || row.bytes == state.serializedSize else {
            throw broken("the table of nodes has another number of bytes")
        }
        guard row.sender == (record.parent == .trunk(.inbox) ? record.stamps.sender : nil) else {
            throw broken("the table of nodes has another sender")
        }
        guard row.readers == record.shareList.map({ NodeRow.readers(of: $0.json) }) else {
            throw broken("the table of nodes has other readers of a shared branch")
        }
        // Rows from before branches were shared have none until the node's next change.
        guard row.member == nil || row.member == record.stamps.sender else {
            throw broken("the table of nodes has another creator")
        }
        try auditReference(record, at: node, in: bucket)
    }

    /// Checks that the counters of a bucket are the sums of its rows.
    private func auditUsage(of bucket: BucketRow) throws(StoreError) {
        let differing = try storing("counting the bytes of nodes") { () throws(SQLiteError) in
            try reader.database.statement(
                """
                SELECT 1 FROM (SELECT count(*) AS nodes, ifnull(sum(bytes), 0) AS bytes FROM node WHERE b = ?1) AS n
                    LEFT JOIN tree_use AS u ON u.b = ?1
                WHERE n.nodes <> ifnull(u.nodes, 0) OR n.bytes <> ifnull(u.bytes, 0)
                """
            ).bind(1, bucket).first { _ in true } ?? false
        }
        if differing { findings.report("bucket \(bucket): the counters of its tree differ from a recount") }
    }

    /// Checks that each policy of an inbox can be read.
    func auditPolicies() throws(StoreError) {
        var unreadable = 0
        try storing("reading policies") { () throws(SQLiteError) in
            try reader.database.statement("SELECT content FROM inbox_policy").forEach { (row) throws(SQLiteError) in
                if (try? InboxPolicy(parsing: row.bytes(0))) == nil { unreadable += 1 }
            }
        }
        if unreadable > 0 { findings.report("inboxes: \(unreadable) policies cannot be read") }
    }

    /// Checks that the table has no other rows of the bucket, and that each leads up to a trunk.
    ///
    /// - Parameter live: number of the bucket's live objects.
    func auditNodes(of bucket: BucketRecord, live: Int) throws(StoreError) {
        try auditUsage(of: bucket.row)
        let (rows, reached, miscounted) = try storing("counting nodes") { () throws(SQLiteError) in
            (
                try reader.database.statement("SELECT count(*) FROM node WHERE b = ?1").bind(1, bucket.row)
                    .first { Int($0.integer(0)) } ?? 0,
                try reader.database.statement(
                    """
                    WITH RECURSIVE reached (id, depth) AS (
                        SELECT id, 1 FROM node WHERE b = ?1 AND length(parent) < ?2
                        UNION ALL SELECT n.id, r.depth + 1 FROM reached AS r CROSS JOIN node AS n
                            WHERE n.b = ?1 AND n.parent = r.id AND r.depth < ?3)
                    SELECT count(*) FROM reached
                    """
                ).bind(1, bucket.row).bind(2, Int64(NodeID.bytesCount)).bind(3, Int64(TreeLimits.depthMax))
                    .first { Int($0.integer(0)) } ?? 0,
                try reader.database.statement(
                    """
                    SELECT count(*) FROM node AS n WHERE n.b = ?1
                        AND n.kids <> (SELECT count(*) FROM node AS c WHERE c.b = ?1 AND c.parent = n.id)
                    """
                ).bind(1, bucket.row).first { Int($0.integer(0)) } ?? 0
            )
        }
        let wanted = bucket.mode == .tree ? live : 0
        if rows != wanted { findings.report("bucket \(bucket.row): \(rows) rows of nodes, \(wanted) nodes") }
        if miscounted > 0 {
            findings.report("bucket \(bucket.row): \(miscounted) rows of nodes have a wrong number of children")
        }
        if rows != reached {
            findings.report("bucket \(bucket.row): \(rows) rows of nodes, \(reached) of them reached from trunks")
        }
    }
}
