import ThicketProtocol
import ThicketTreeShape

/// All rows of a `MemoryStore`: a value type, so that each call of a reader works on one state.
struct MemoryState: Sendable {
    struct KeptPlace: Hashable {
        let bucket: BucketRow
        let key: EntityKey
        let version: Version
    }

    struct NamePlace: Hashable {
        let app: AppID
        let name: BucketName
    }

    struct Owner: Hashable {
        let app: AppID
        let user: UserID
    }

    /// Policies of inboxes.
    var policies = [Owner: InboxPolicy]()
    var rows = [BucketID: BucketRow]()
    var buckets = [BucketRow: BucketRecord]()
    var entities = [BucketRow: [EntityKey: EntityRecord]]()
    /// The nodes of trees.
    var nodes = [BucketRow: NodeTable]()
    /// The answers of batches.
    var answers = [BucketRow: [BatchID: BatchAnswer]]()
    var blobs = MemoryBlobs()
    var changes = [GlobalID: ChangeRecord]()
    var keptBodies = [KeptPlace: [UInt8]]()
    /// From the hash to the time of the change, in milliseconds since 1970.
    var oldChangeIDs = [BucketRow: [UInt64: Int64]]()
    /// The newest change that was erased with its user.
    var erased: GlobalID = 0
    var apps = Set<AppID>()
    var grants = [[UInt8]: TokenGrant]()
    var adminKeys = [[UInt8]: AppID]()
    /// The modes that operators set for new buckets.
    var modes = [NamePlace: BucketMode]()

    /// Writes all or nothing: every check that can refuse the batch runs first.
    mutating func write(_ batch: WriteBatch) throws(StoreError) {
        try check(batch)
        if !batch.nodes.isEmpty { (nodes, blobs) = try nodes(after: batch) }
        for answer in batch.answers { write(answer) }
        for write in batch.policies { policies[Owner(app: write.app, user: write.user)] = write.policy }
        for change in batch.changes { changes[change.gid] = change }
        for write in batch.entities {
            entities[write.bucket, default: [:]][write.record.key] = write.record
        }
        for var bucket in batch.buckets {
            if let known = buckets[bucket.row] {
                bucket.floor = known.floor
            } else {
                rows[bucket.id] = bucket.row
            }
            buckets[bucket.row] = bucket
        }
    }

    private mutating func write(_ answer: BatchAnswer) {
        answers[answer.bucket, default: [:]][answer.batch] = answer
        guard let kept = answers[answer.bucket], kept.count > BatchAnswer.perTreeMax else { return }
        if let oldest = kept.values.min(by: { $0.gid < $1.gid }) { answers[answer.bucket]?[oldest.batch] = nil }
    }

    /// Old places go first, because nodes of one group may exchange them.
    private func nodes(after batch: WriteBatch) throws(StoreError) -> ([BucketRow: NodeTable], MemoryBlobs) {
        var (nodes, blobs) = (nodes, blobs)
        var left = Set<BlobID>()
        for write in batch.nodes {
            if let blob = nodes[write.bucket]?.rows[write.node]?.blob { left.insert(blob) }
            nodes[write.bucket]?.remove(write.node)
        }
        for write in batch.nodes {
            guard let row = write.row else { continue }
            guard nodes[write.bucket, default: NodeTable()].insert(write.node, row) else {
                throw StoreError(.constraint, "two nodes at one place in bucket row \(write.bucket)")
            }
        }
        guard blobs.refer(batch.nodes, left: left, tables: nodes, at: batch.time) else {
            throw StoreError(.stale, "a blob was removed")
        }
        return (nodes, blobs)
    }

    private func check(_ batch: WriteBatch) throws(StoreError) {
        for change in batch.changes where changes[change.gid] != nil {
            throw StoreError(.constraint, "change \(change.gid) already exists")
        }
        for bucket in batch.buckets {
            let isNew = batch.newBuckets.contains(bucket.row)
            guard isNew == (buckets[bucket.row] == nil), isNew == (rows[bucket.id] == nil) else {
                throw StoreError(.constraint, "bucket row \(bucket.row) is \(isNew ? "already present" : "missing")")
            }
            let isSealed = isNew && mode(ofNew: bucket.id.name, in: bucket.id.app) == .sealed
            let mode = isNew ? (isSealed ? .sealed : bucket.mode) : buckets[bucket.row]?.mode
            guard mode == bucket.mode else { throw StoreError(.stale, "the mode of bucket row \(bucket.row)") }
        }
    }

    func mode(ofNew name: BucketName, in app: AppID) -> BucketMode {
        modes[NamePlace(app: app, name: name)] ?? .open
    }

    mutating func write(_ work: MaintenanceBatch) -> [BucketMove] {
        var moves = [BucketMove]()
        for cut in work.cuts where buckets[cut.bucket]?.floor == cut.floorBefore {
            for row in cut.rows { changes[row] = nil }
            for old in cut.changeIDs {
                oldChangeIDs[cut.bucket, default: [:]][old.hash] = old.timestamp
            }
            for kept in cut.keptBodies {
                keptBodies[KeptPlace(bucket: cut.bucket, key: kept.key, version: kept.version)] = kept.body
            }
            for dropped in cut.droppedBodies {
                keptBodies[KeptPlace(bucket: cut.bucket, key: dropped.key, version: dropped.version)] = nil
            }
            buckets[cut.bucket]?.floor = cut.floor
            moves.append(BucketMove(bucket: cut.bucket, floor: cut.floor, archived: 0))
        }
        for forgetting in work.forgettings {
            for hash in forgetting.hashes { oldChangeIDs[forgetting.bucket]?[hash] = nil }
        }
        for place in work.batchAnswers { answers[place.bucket]?[place.batch] = nil }
        for erasure in work.erasures { erase(erasure) }
        return moves
    }

    private mutating func erase(_ erasure: MaintenanceBatch.Erasure) {
        for bucket in buckets.values where bucket.id.app == erasure.app && bucket.id.user == erasure.user {
            erased = max(erased, bucket.head)
            changes = changes.filter { $0.value.bucket != bucket.row }
            keptBodies = keptBodies.filter { $0.key.bucket != bucket.row }
            (entities[bucket.row], oldChangeIDs[bucket.row], nodes[bucket.row]) = (nil, nil, nil)
            answers[bucket.row] = nil
            (rows[bucket.id], buckets[bucket.row]) = (nil, nil)
        }
        policies[Owner(app: erasure.app, user: erasure.user)] = nil
        blobs.erase(erasure.app, erasure.user, tables: nodes)
    }
}

extension MemoryState: ChildSource {
    func childRows(
        of parent: NodeParent, in bucket: BucketRow, _ cursor: ChildCursor, limit: Int
    ) throws(StoreError) -> [ChildRow] {
        Array(nodes[bucket]?.sorted(of: parent, cursor).prefix(limit) ?? [])
    }

    func childStats(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> ChildStats {
        nodes[bucket]?.stats(of: node) ?? ChildStats(count: 0, newest: nil)
    }
}

extension MemoryState: LogSource {
    func entityRecord(_ key: EntityKey, _ bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        entities[bucket]?[key]
    }
    func changeRecord(_ gid: GlobalID) throws(StoreError) -> ChangeRecord? { changes[gid] }
    func changeLink(_ gid: GlobalID) throws(StoreError) -> ChangeLink? { changes[gid]?.link }
    func logStep(_ gid: GlobalID) throws(StoreError) -> LogStep? {
        changes[gid].map {
            LogStep(
                bucket: $0.bucket, key: $0.key, kind: $0.kind, endVersion: $0.endVersion,
                previousOfEntity: $0.previousOfEntity,
                previousOfBucket: $0.previousOfBucket)
        }
    }
    func replayRow(_ gid: GlobalID) throws(StoreError) -> ReplayRow? {
        changes[gid].map {
            ReplayRow(
                kind: $0.kind, sourceVersion: $0.sourceVersion, previousOfEntity: $0.previousOfEntity, diff: $0.diff,
                keyframe: $0.keyframe)
        }
    }
    func keptBody(_ key: EntityKey, _ version: Version, _ bucket: BucketRow) throws(StoreError) -> [UInt8]? {
        keptBodies[KeptPlace(bucket: bucket, key: key, version: version)]
    }
    func segmentBody(_ gid: GlobalID, _ bucket: BucketRow) throws(StoreError) -> [UInt8]? { nil }
}
