import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// The tables `node` and `batch`: where the nodes of trees are, which blobs they refer to, and answers of batches.
/// Written with the changes that they follow from, so they are never behind the log.
struct NodeRows {
    private let database: Database
    private let insertion: Statement
    private let deletion: Statement
    private let counting: Statement
    private let answering: Statement
    private let trimming: Statement
    private let forgetting: Statement
    private let adoption: Statement
    private let adding: Statement
    private let policy: Statement

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        insertion = try database.prepare(
            """
            INSERT INTO node (b, id, parent, tag, gid, t, x, blob, kids, bytes, sender, member, shared)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """)
        deletion = try database.prepare("DELETE FROM node WHERE b = ?1 AND id = ?2 RETURNING parent, kids, blob, bytes")
        adding = try database.prepare(
            """
            INSERT INTO tree_use (b, nodes, bytes) VALUES (?1, ?2, ?3)
            ON CONFLICT (b) DO UPDATE SET nodes = nodes + ?2, bytes = bytes + ?3
            """)
        adoption = try database.prepare("UPDATE blob SET orphaned = NULL WHERE id = ?1")
        counting = try database.prepare("UPDATE node SET kids = kids + ?3 WHERE b = ?1 AND id = ?2")
        answering = try database.prepare(
            "INSERT OR REPLACE INTO batch (b, id, digest, answer, gid, ts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        trimming = try database.prepare(
            """
            DELETE FROM batch WHERE b = ?1 AND gid <= (SELECT gid FROM batch WHERE b = ?1 ORDER BY gid DESC
                LIMIT 1 OFFSET ?2)
            """)
        policy = try database.prepare(
            "INSERT OR REPLACE INTO inbox_policy (app, user, content) VALUES (?1, ?2, ?3)")
        forgetting = try database.prepare("DELETE FROM batch WHERE b = ?1 AND id = ?2")
    }

    private struct Parent: Hashable {
        let bucket: BucketRow
        let id: [UInt8]
    }

    /// What follows from the rows of a group.
    private struct Effects {
        /// Change of the number of children.
        var kids = [Parent: Int64]()
        /// Blobs that removed rows referred to, and no new row.
        var left = Set<[UInt8]>()
        /// Change of the usage.
        var usage = [BucketRow: TreeUsage]()

        mutating func add(_ nodes: Int, _ bytes: Int64, to bucket: BucketRow) {
            usage[bucket, default: TreeUsage()].nodes += nodes
            usage[bucket, default: TreeUsage()].bytes += bytes
        }
    }

    /// Inside the open transaction. Old rows go first, because nodes of one group may exchange their places.
    ///
    /// - Parameter time: when blobs without a reference became orphans, milliseconds since 1970.
    /// - Returns: false when a node refers to a blob that does not exist; the transaction must be rolled back.
    func write(_ nodes: [WriteBatch.NodeWrite], at time: Int64) throws(SQLiteError) -> Bool {
        var effects = Effects()
        var kids = [Int64]()
        for write in nodes { kids.append(try remove(write, &effects)) }
        for (write, kids) in zip(nodes, kids) {
            guard let row = write.row else { continue }
            guard try insert(write, row, kids: kids, &effects) else { return false }
        }
        for (parent, change) in effects.kids where change != 0 && parent.id.count == NodeID.bytesCount {
            try counting.bind(1, parent.bucket).bind(2, parent.id).bind(3, change).run()
        }
        for (bucket, change) in effects.usage {
            try adding.bind(1, bucket).bind(2, Int64(change.nodes)).bind(3, change.bytes).run()
        }
        if !effects.left.isEmpty { try BlobRows.orphan(effects.left, since: time, database) }
        return true
    }

    /// - Returns: the number of children of the removed row.
    private func remove(_ write: WriteBatch.NodeWrite, _ effects: inout Effects) throws(SQLiteError) -> Int64 {
        let old = try deletion.bind(1, write.bucket).bind(2, write.node.octets).first {
            (parent: $0.bytes(0), kids: $0.integer(1), blob: $0.optionalBytes(2), bytes: $0.integer(3))
        }
        guard let old else { return 0 }
        effects.add(-1, -old.bytes, to: write.bucket)
        effects.kids[Parent(bucket: write.bucket, id: old.parent), default: 0] -= 1
        if let blob = old.blob { effects.left.insert(blob) }
        return old.kids
    }

    /// - Returns: false when the blob of the row does not exist.
    private func insert(
        _ write: WriteBatch.NodeWrite, _ row: NodeRow, kids: Int64, _ effects: inout Effects
    ) throws(SQLiteError) -> Bool {
        let parent = row.place.parent.stored
        try insertion.bind(1, write.bucket).bind(2, write.node.octets).bind(3, parent)
            .bind(4, row.place.tag.stored).bind(5, row.gid).bind(6, row.changed).bind(7, row.burnTime)
            .bind(8, row.blob?.octets).bind(9, kids).bind(10, Int64(row.bytes)).bind(11, row.sender?.text)
            .bind(12, row.member?.text).bind(13, row.storedReaders).run()
        effects.add(1, Int64(row.bytes), to: write.bucket)
        effects.kids[Parent(bucket: write.bucket, id: parent), default: 0] += 1
        guard let blob = row.blob?.octets else { return true }
        try adoption.bind(1, blob).run()
        effects.left.remove(blob)
        return database.changedRows == 1
    }

    /// Inside the open transaction; drops the oldest answers of the tree above their bound.
    func write(_ answer: BatchAnswer) throws(SQLiteError) {
        try answering.bind(1, answer.bucket).bind(2, answer.batch.octets).bind(3, answer.digest)
            .bind(4, answer.answer).bind(5, answer.gid).bind(6, answer.time).run()
        try trimming.bind(1, answer.bucket).bind(2, Int64(BatchAnswer.perTreeMax)).run()
    }

    /// Inside the open transaction.
    func write(_ write: WriteBatch.PolicyWrite) throws(SQLiteError) {
        try policy.bind(1, write.app.text).bind(2, write.user.text)
            .bind(3, JSONValue.object(write.policy.object).serialized()).run()
    }

    /// Inside the open transaction.
    func remove(_ answers: [BatchPlace]) throws(SQLiteError) {
        for place in answers { try forgetting.bind(1, place.bucket).bind(2, place.batch.octets).run() }
    }
}

extension SQLiteReader {
    final func place(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodePlace? {
        try nodeRow(of: node, in: bucket)?.place
    }

    /// The row of a node; nil when the node does not exist.
    final func nodeRow(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodeRow? {
        let found: NodeRow?? = try storing("reading a node's place") { () throws(SQLiteError) in
            try queries.nodes.row.bind(1, bucket).bind(2, node.octets).first { NodeRow(stored: $0) }
        }
        guard let found else { return nil }
        guard let row = found else {
            throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) is not a place")
        }
        return row
    }

    final func length(of blob: BlobID, by owner: BucketID, in bucket: BucketRow?) throws(StoreError) -> Int64? {
        try storing("looking for a blob") { () throws(SQLiteError) in
            try queries.nodes.blob.bind(1, blob.octets).bind(2, owner.app.text).bind(3, owner.user.text)
                .bind(4, bucket).first { $0.integer(0) }
        }
    }

    final func node(at place: NodePlace, in bucket: BucketRow) throws(StoreError) -> NodeID? {
        let found = try storing("looking for a node") { () throws(SQLiteError) in
            try queries.nodes.atPlace.bind(1, bucket).bind(2, place.parent.stored).bind(3, place.tag.stored)
                .first { $0.bytes(0) }
        }
        return try found.map { (octets) throws(StoreError) in try Self.node(octets, bucket) }
    }

    final func children(
        of parent: NodeParent, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID] {
        var found = [[UInt8]]()
        try storing("listing nodes") { () throws(SQLiteError) in
            try queries.nodes.children.bind(1, bucket).bind(2, parent.stored).bind(3, Int64(limit))
                .forEach { (row) throws(SQLiteError) in found.append(row.bytes(0)) }
        }
        return try found.map { (octets) throws(StoreError) in try Self.node(octets, bucket) }
    }

    final func children(_ read: ChildRead, in bucket: BucketRow) throws(StoreError) -> [StoredChildren] {
        try reading { () throws(StoreError) in try childLists(read, in: bucket) }
    }

    final func burningNodes(at time: Int64, limit: Int) throws(StoreError) -> [BurningNode] {
        typealias Raw = (row: BucketRow, node: [UInt8], app: String, user: String, name: String)
        var found = [Raw]()
        try storing("looking for nodes to burn") { () throws(SQLiteError) in
            try queries.nodes.burning.bind(1, time).bind(2, Int64(limit)).forEach { (row) throws(SQLiteError) in
                found.append((row.integer(0), row.bytes(1), row.text(2), row.text(3), row.text(4)))
            }
        }
        return try found.map { (raw) throws(StoreError) in
            BurningNode(
                bucket: BucketID(app: try .stored(raw.app), user: try .stored(raw.user), name: try .stored(raw.name)),
                node: try Self.node(raw.node, raw.row))
        }
    }

    final func batchAnswer(_ batch: BatchID, in bucket: BucketRow) throws(StoreError) -> BatchAnswer? {
        try storing("looking for a batch") { () throws(SQLiteError) in
            try queries.nodes.answer.bind(1, bucket).bind(2, batch.octets).first {
                BatchAnswer(
                    bucket: bucket, batch: batch, digest: $0.bytes(0), answer: $0.bytes(1), gid: $0.integer(2),
                    time: $0.integer(3))
            }
        }
    }

    final func batchAnswers(before time: Int64, limit: Int) throws(StoreError) -> [BatchPlace] {
        var places = [BatchPlace]()
        try storing("looking for old batches") { () throws(SQLiteError) in
            try queries.nodes.oldAnswers.bind(1, time).bind(2, Int64(limit)).forEach { (row) throws(SQLiteError) in
                guard let batch = BatchID(octets: row.bytes(1)) else { return }
                places.append(BatchPlace(bucket: row.integer(0), batch: batch, bytes: Int(row.integer(2))))
            }
        }
        return places
    }

    final func inboxPolicy(of owner: BucketID) throws(StoreError) -> InboxPolicy {
        let content = try storing("reading a policy") { () throws(SQLiteError) in
            try queries.nodes.policy.bind(1, owner.app.text).bind(2, owner.user.text).first { $0.bytes(0) }
        }
        guard let content else { return InboxPolicy() }
        do throws(TreeCallFault) { return try InboxPolicy(parsing: content) } catch {
            throw StoreError(.corrupt, "a row of the table inbox_policy is not a policy: \(error)")
        }
    }

    final func inboxCount(of sender: UserID, in bucket: BucketRow) throws(StoreError) -> InboxCount {
        try storing("counting the nodes of an inbox") { () throws(SQLiteError) in
            try queries.nodes.inboxCount.bind(1, bucket).bind(2, sender.text)
                .bind(3, Int64(TreeLimits.inboxNodesCeiling)).first {
                    InboxCount(all: Int($0.integer(0)), ofSender: Int($0.integer(1)))
                } ?? InboxCount()
        }
    }

    final func listRoots(in bucket: BucketRow) throws(StoreError) -> Set<NodeID> {
        var found = [[UInt8]]()
        try storing("listing shared branches") { () throws(SQLiteError) in
            try queries.nodes.listRoots.bind(1, bucket).forEach { (row) throws(SQLiteError) in
                found.append(row.bytes(0))
            }
        }
        var roots = Set<NodeID>()
        for octets in found { roots.insert(try Self.node(octets, bucket)) }
        return roots
    }

    final func readers(of root: NodeID, in bucket: BucketRow) throws(StoreError) -> [UserID]? {
        try nodeRow(of: root, in: bucket)?.readers
    }

    final func children(
        of parent: NodeID, by user: UserID, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID] {
        var found = [[UInt8]]()
        try storing("listing nodes of a member") { () throws(SQLiteError) in
            try queries.nodes.byMember.bind(1, bucket).bind(2, parent.octets).bind(3, user.text).bind(4, Int64(limit))
                .forEach { (row) throws(SQLiteError) in found.append(row.bytes(0)) }
        }
        return try found.map { (octets) throws(StoreError) in try Self.node(octets, bucket) }
    }

    final func usage(of owner: BucketID, in bucket: BucketRow) throws(StoreError) -> TreeUsage {
        try reading { () throws(StoreError) in
            try storing("reading the usage of a tree") { () throws(SQLiteError) in
                var usage: TreeUsage =
                    try queries.nodes.usage.bind(1, bucket).first {
                        TreeUsage(nodes: Int($0.integer(0)), bytes: $0.integer(1))
                    } ?? TreeUsage()
                if let blobs = try BlobRows.usage(of: owner.app.text, owner.user.text, database) { usage.blobs = blobs }
                return usage
            }
        }
    }

    private static func node(_ octets: [UInt8], _ bucket: BucketRow) throws(StoreError) -> NodeID {
        guard let node = NodeID(octets: octets) else {
            throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) has no id")
        }
        return node
    }
}

extension NodeRow {
    /// The columns parent, tag, gid, t, x, blob, bytes, sender, member and shared.
    ///
    /// - Returns: nil when they are not a place.
    fileprivate init?(stored row: Statement) {
        guard let parent = NodeParent(stored: row.bytes(0)), let tag = NodeTag(stored: row.bytes(1)) else { return nil }
        self.init(
            place: NodePlace(parent: parent, tag: tag), gid: row.integer(2), changed: row.integer(3),
            burnTime: row.optionalInteger(4), blob: row.optionalBytes(5).flatMap(BlobID.init(octets:)),
            bytes: Int(row.integer(6)),
            sender: Self.user(row, 7), member: Self.user(row, 8),
            readers: row.optionalBytes(9).map { Self.readers(stored: $0) ?? [] })
    }
}

extension NodeRow {
    fileprivate static func user(_ row: Statement, _ column: Int32) -> UserID? {
        row.optionalBytes(column).flatMap { try? UserID(String(decoding: $0, as: UTF8.self)) }
    }
}

extension SQLiteReader: ChildSource {
    final func childRows(
        of parent: NodeParent, in bucket: BucketRow, _ cursor: ChildCursor, limit: Int
    ) throws(StoreError) -> [ChildRow] {
        var found = [(node: [UInt8], gid: GlobalID, tag: [UInt8])]()
        try storing("listing children") { () throws(SQLiteError) in
            let rows: Statement
            switch cursor {
            case .newest(let before):
                rows = queries.nodes.newest.bind(3, before)
            case .tag(let after):
                rows = queries.nodes.byTag.bind(3, after?.stored ?? [])
            }
            try rows.bind(1, bucket).bind(2, parent.stored).bind(4, Int64(limit)).forEach { (row) throws(SQLiteError) in
                found.append((row.bytes(0), row.integer(1), row.bytes(2)))
            }
        }
        return try found.map { (raw) throws(StoreError) in
            guard let tag = NodeTag(stored: raw.tag) else {
                throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) is not a place")
            }
            return ChildRow(node: try Self.node(raw.node, bucket), gid: raw.gid, tag: tag)
        }
    }

    final func childStats(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> ChildStats {
        let found: (count: Int, newest: Int64?)? = try storing("counting children") { () throws(SQLiteError) in
            try queries.nodes.stats.bind(1, bucket).bind(2, node.octets).first {
                (Int($0.integer(0)), $0.optionalInteger(1))
            }
        }
        return ChildStats(count: found?.count ?? 0, newest: found?.newest)
    }
}
