import ThicketProtocol
import ThicketSQLite

/// Audits one state of the store.
final class StoreAuditor {
    let reader: SQLiteReader
    var findings = StoreFindings()
    /// Log rows reached through the buckets' chains and through the objects' chains; both must equal the number of
    /// rows.
    private var reachedByBuckets: Int64 = 0
    private var reachedByObjects: Int64 = 0

    /// Objects or buckets read per query.
    private static let pageSize = 1_000

    init(_ reader: SQLiteReader) { self.reader = reader }

    func run() throws(StoreError) {
        var after: BucketRow = 0
        while true {
            let page = try reader.buckets(afterRow: after, limit: Self.pageSize)
            guard let last = page.last else { break }
            // A bucket that is being erased may be half deleted, so it is not audited.
            for bucket in page where try !isErased(bucket) { try audit(bucket) }
            after = last.row
        }
        try auditTotals()
        try auditBlobs()
        try auditPolicies()
    }

    private func auditTotals() throws(StoreError) {
        let (rows, orphans, nodes) = try storing("counting rows") { () throws(SQLiteError) in
            (
                try reader.database.integer(
                    """
                    SELECT count(*) FROM chg WHERE b NOT IN (SELECT b.id FROM bucket AS b
                        JOIN erasure AS e ON e.app = b.app AND e.user = b.owner)
                    """) ?? 0,
                try reader.database.integer("SELECT count(*) FROM ent WHERE b NOT IN (SELECT id FROM bucket)") ?? 0,
                try reader.database.integer(
                    """
                    SELECT (SELECT count(*) FROM node WHERE b NOT IN (SELECT id FROM bucket))
                        + (SELECT count(*) FROM batch WHERE b NOT IN (SELECT id FROM bucket))
                    """) ?? 0
            )
        }
        findings.changes = Int(rows)
        if reachedByBuckets != rows {
            findings.report("log: \(rows) changes, \(reachedByBuckets) of them reached from their buckets' heads")
        }
        if reachedByObjects != rows {
            findings.report("log: \(rows) changes, \(reachedByObjects) of them reached from their objects' heads")
        }
        if orphans > 0 { findings.report("log: \(orphans) objects belong to no bucket") }
        if nodes > 0 { findings.report("trees: \(nodes) rows of nodes and batches belong to no bucket") }
    }

    // MARK: One bucket

    private func isErased(_ bucket: BucketRecord) throws(StoreError) -> Bool {
        try storing("looking for ended accounts") { () throws(SQLiteError) in
            try reader.database.statement("SELECT 1 FROM erasure WHERE app = ?1 AND user = ?2")
                .bind(1, bucket.id.app.text).bind(2, bucket.id.user.text).first { _ in true } ?? false
        }
    }

    private func audit(_ bucket: BucketRecord) throws(StoreError) {
        findings.buckets += 1
        try reportingCorruption("bucket \(bucket.row)") { () throws(StoreError) in try auditChain(of: bucket) }
        let late = try reader.writeBehindHeads().heads(of: bucket.row)
        /// Newest changes of the live objects.
        var live = [GlobalID]()
        var after: EntityKey?
        while true {
            let page = try entities(bucket.row, after: after, late)
            guard let last = page.last else { break }
            for entity in page {
                findings.objects += 1
                if !entity.isDeleted { live.append(entity.gid) }
                try reportingCorruption("bucket \(bucket.row), object with newest change \(entity.gid)") {
                    () throws(StoreError) in
                    try audit(entity, bucket)
                }
            }
            after = last.key
        }
        try auditNodes(of: bucket, live: live.count)
        try auditKeptBodies(bucket)
        try auditSegments(bucket, live)
        try auditChangeIDs(bucket)
    }

    private func auditChain(of bucket: BucketRecord) throws(StoreError) {
        if bucket.floor > bucket.head { findings.report("bucket \(bucket.row): the floor is above the head") }
        var place = bucket.head
        while place > bucket.floor {
            guard let link = try reader.changeLink(place) else {
                return findings.report("bucket \(bucket.row): change \(place) of its chain is missing")
            }
            reachedByBuckets += 1
            guard link.bucket == bucket.row else {
                return findings.report("bucket \(bucket.row): change \(place) of its chain belongs to another bucket")
            }
            guard link.previousOfBucket < place else {
                return findings.report("bucket \(bucket.row): change \(place) refers to a later one")
            }
            place = link.previousOfBucket
        }
        if bucket.floor == 0 && place != 0 { findings.report("bucket \(bucket.row): its chain has no beginning") }
    }

    /// A page of the objects; write-behind heads replace the rows of the table.
    private func entities(
        _ bucket: BucketRow, after: EntityKey?, _ late: [EntityKey: EntityRecord]
    ) throws(StoreError) -> [EntityRecord] {
        var records = try storedEntities(bucket, after: after?.text ?? "")
        if late.isEmpty { return records }
        let last = records.count == Self.pageSize ? records.last?.key : nil
        records.removeAll { late[$0.key] != nil }
        for record in late.values {
            if let after, !after.precedes(record.key) { continue }
            if let last, last.precedes(record.key) { continue }
            records.append(record)
        }
        return records.sorted { $0.key.precedes($1.key) }
    }

    private func storedEntities(_ bucket: BucketRow, after: String) throws(StoreError) -> [EntityRecord] {
        typealias Raw = (
            key: String, version: Version, gid: GlobalID, keyframe: GlobalID, isDeleted: Bool,
            born: Version?
        )
        var rows = [Raw]()
        try storing("listing the objects") { () throws(SQLiteError) in
            try reader.database.statement(
                "SELECT k, ver, gid, kf, dead, born FROM ent WHERE b = ?1 AND k > ?2 ORDER BY k LIMIT ?3"
            ).bind(1, bucket).bind(2, after).bind(3, Int64(Self.pageSize)).forEach { (row) throws(SQLiteError) in
                rows.append(
                    (
                        row.text(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4) != 0,
                        row.optionalInteger(5)
                    ))
            }
        }
        var records = [EntityRecord]()
        for row in rows {
            records.append(
                EntityRecord(
                    key: try .stored(row.key), version: row.version, gid: row.gid, keyframe: row.keyframe,
                    isDeleted: row.isDeleted, born: row.born))
        }
        return records
    }

    // MARK: One object

    private func audit(_ entity: EntityRecord, _ bucket: BucketRecord) throws(StoreError) {
        guard entity.gid <= bucket.head else { throw broken("its newest change is above the bucket's head") }
        let chain = try chain(of: entity, bucket)
        reachedByObjects += Int64(chain.count)
        guard let oldest = chain.first, let first = try reader.changeLink(oldest) else {
            guard entity.gid <= bucket.floor else { throw broken("its newest change is missing") }
            if entity.isDeleted { return }
            guard let body = try reader.keptBody(entity.key, entity.version, bucket.row) else {
                throw broken("its newest change was cut from the log and no body was kept")
            }
            let state = try BodyReplay.parse(body, entity.gid)
            if bucket.mode == .tree { try auditNode(entity, state, in: bucket.row) }
            return
        }
        var state: JSONObject?
        if let source = first.sourceVersion {
            if let kept = try reader.keptBody(entity.key, source, bucket.row) {
                state = try BodyReplay.parse(kept, oldest)
            } else {
                throw broken("its log begins at change \(oldest) and the body before is not kept")
            }
        }
        try replay(chain, from: state, entity, bucket)
    }

    /// The object's changes that are in the log, oldest first.
    private func chain(of entity: EntityRecord, _ bucket: BucketRecord) throws(StoreError) -> [GlobalID] {
        var chain = [GlobalID]()
        var place = entity.gid
        var version = entity.version
        while place > 0, let link = try reader.changeLink(place) {
            guard link.bucket == bucket.row else { throw broken("change \(place) of its chain is in another bucket") }
            guard link.endVersion == version else {
                throw broken("change \(place) does not lead to version \(version)")
            }
            guard link.previousOfEntity < place else { throw broken("change \(place) refers to a later one") }
            chain.append(place)
            place = link.previousOfEntity
            version -= 1
        }
        if place > bucket.floor { throw broken("change \(place) of its chain is missing") }
        return chain.reversed()
    }

    /// Applies every diff and compares each keyframe and link with the result.
    private func replay(
        _ chain: [GlobalID], from base: JSONObject?, _ entity: EntityRecord, _ bucket: BucketRecord
    ) throws(StoreError) {
        var state = base
        var keyframe: GlobalID = 0
        var born: Version?
        for gid in chain {
            guard let change = try reader.changeRecord(gid), change.key == entity.key else {
                throw broken("change \(gid) of its chain belongs to another object")
            }
            let pointer = change.previousKeyframe
            guard pointer == keyframe || pointer == 0 || (keyframe == 0 && pointer <= bucket.floor) else {
                throw broken("change \(gid) points to keyframe \(pointer), not \(keyframe)")
            }
            switch change.kind {
            case .remove:
                state = nil
            case .modify:
                guard (change.sourceVersion == nil) == (state == nil) else {
                    let what = state == nil ? "an edit of a missing object" : "a second creation"
                    throw broken("change \(gid) is \(what)")
                }
                if change.sourceVersion == nil { born = change.endVersion }
                if let source = change.sourceVersion, source != change.endVersion - 1 {
                    throw broken("change \(gid) leads from version \(source) to \(change.endVersion)")
                }
                let next = try BodyReplay.apply(change.diff, to: state ?? JSONObject(), gid)
                if let body = change.keyframe {
                    findings.keyframes += 1
                    keyframe = gid
                    guard try BodyReplay.parse(body, gid) == next else {
                        throw broken("keyframe \(gid) differs from what its diffs give")
                    }
                }
                state = next
            }
        }
        guard entity.isDeleted == (state == nil) else {
            throw broken("its head says \(entity.isDeleted ? "deleted" : "alive"), its log says the opposite")
        }
        guard entity.keyframe == keyframe || entity.keyframe == 0 || entity.keyframe <= bucket.floor else {
            throw broken("its head points to keyframe \(entity.keyframe), not \(keyframe)")
        }
        guard let state else { return }
        switch bucket.mode {
        case .open: break
        case .sealed: try auditSealed(entity, state, madeAt: born)
        case .tree: try auditNode(entity, state, in: bucket.row)
        }
    }

    // MARK: Copies

    private func auditKeptBodies(_ bucket: BucketRecord) throws(StoreError) {
        var broken = 0
        var count = 0
        try storing("reading kept bodies") { () throws(SQLiteError) in
            try reader.database.statement("SELECT body FROM ver WHERE b = ?1").bind(1, bucket.row).forEach {
                (row) throws(SQLiteError) in
                count += 1
                if (try? BodyReplay.parse(row.bytes(0), 0)) == nil { broken += 1 }
            }
        }
        findings.keptBodies += count
        if broken > 0 { findings.report("bucket \(bucket.row): \(broken) kept bodies are not objects") }
    }

    // MARK: Findings

    func broken(_ what: String) -> StoreError { StoreError(.corrupt, what) }

    /// Reports corruption of one item as a finding, so that the audit continues with the next item.
    func reportingCorruption(_ what: String, _ body: () throws(StoreError) -> Void) throws(StoreError) {
        do {
            try body()
        } catch {
            guard error.kind == .corrupt else { throw error }
            findings.report("\(what): \(error.detail)")
        }
    }
}
