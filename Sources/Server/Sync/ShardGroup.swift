import ThicketProtocol
import ThicketTreeShape

/// The decisions since the last commit: rows to write, and answers to send once the rows are durable.
struct ShardGroup {
    /// The answers of one bucket.
    struct Part {
        let bucket: BucketID
        /// The bucket, if it is in memory.
        var active: ActiveBucket?
        var events = [ChangeOutcome]()
        var news = WriteBatch.BucketNews()
        /// Whether the group has a row of this bucket: its other answers may depend on that row.
        var isTouched = false
        /// The answer to a `chooseMode` request.
        var mode: BucketModeAnswer?
    }

    /// Rows; after `finish` also heads.
    private(set) var batch = WriteBatch()
    /// Position of the first row; positions have no gaps.
    var firstGlobalID: GlobalID = 0
    /// Number of changes that were made on an older version.
    var rebasedCount = 0
    /// Number of rows that carry the whole body.
    var keyframeCount = 0
    /// Number of answered batches; their changes are rows as others are.
    private(set) var batchCount = 0
    /// Number of answered batches and of policies.
    private(set) var answeredCount = 0
    /// Number of nodes removed because their burn time has come.
    var burnedCount = 0
    /// Number of objects evicted because of a reduced capacity, beyond the one that each creation evicts.
    var extraRemovals = 0
    /// Bytes of the rows, and of the objects before each change. Those objects are kept until the group is durable.
    /// They share what a change did not touch, so the sum is an upper bound.
    var bytes = 0
    /// Whether the group creates the row of a bucket without changes.
    private var hasNewRow = false
    /// In order of first answer.
    var parts = [Part]()
    /// The buckets of `parts` that are in memory.
    var buckets = [ActiveBucket]()
    /// Changed objects, each once.
    private(set) var entities = [ActiveEntity]()
    /// Received requests, in order, for a retry one by one.
    var requests = [SubmittedChange]()
    /// Index of the part for buckets that are not in memory.
    private var partIndexes = [BucketID: Int]()

    /// Initial capacity for the answers of one bucket.
    private static let eventsReserved = 8
    /// Maximum number of ccid runs in one group: each writes 32 KiB, for which all changes of the group wait.
    private static let runsMax = 4

    /// - Parameter changes: expected number.
    init(reserving changes: Int = 0) {
        batch.reserve(changes: changes)
        requests.reserveCapacity(changes)
        entities.reserveCapacity(changes)
    }

    /// Adds an answer; passing `active` saves a look-up.
    mutating func add(_ event: ChangeOutcome, of bucket: BucketID, active: ActiveBucket?) {
        let index = partIndex(of: bucket, active)
        parts[index].events.append(event)
    }

    /// Adds the answer of a batch, after its changes.
    mutating func add(_ batch: BatchOutcome, of bucket: ActiveBucket) {
        batchCount += 1
        answeredCount += 1
        add(.batch(batch), of: bucket.id, active: bucket)
    }

    /// Adds the policy of an inbox with its answer.
    mutating func add(_ policy: WriteBatch.PolicyWrite, _ answer: BatchOutcome, of bucket: ActiveBucket) {
        answeredCount += 1
        batch.append(policy)
        touch(bucket)
        add(.batch(answer), of: bucket.id, active: bucket)
    }

    /// Adds what the changes of a guest's batch count for.
    mutating func add(_ use: GuestUse) { batch.append(use) }

    /// The answers of the bucket depend on rows of the group, also if none of them is the bucket's own.
    mutating func touch(_ bucket: ActiveBucket) { parts[partIndex(of: bucket.id, bucket)].isTouched = true }

    /// Whether the group must be written to the store.
    var hasRows: Bool { !batch.isEmpty || hasNewRow }

    /// Adds the row of a bucket without changes.
    mutating func add(newRowOf bucket: ActiveBucket) {
        parts[partIndex(of: bucket.id, bucket)].isTouched = true
        hasNewRow = true
    }

    /// Answers a `chooseMode` request. The answer is valid once the group is durable.
    mutating func recordMode(_ mode: BucketMode, of bucket: ActiveBucket) {
        parts[partIndex(of: bucket.id, bucket)].mode = .mode(mode)
    }

    mutating func recordModeUnknown(of bucket: BucketID, active: ActiveBucket?) {
        parts[partIndex(of: bucket, active)].mode = .unknown
    }

    /// Adds a row with its answer.
    /// - Parameter before: bytes in memory of the object before the change.
    mutating func add(
        row: consuming ChangeRecord, entity: ActiveEntity, before: Int, event: consuming ChangeOutcome
    ) {
        let bucket = entity.bucket
        let index = partIndex(of: bucket.id, bucket)
        parts[index].isTouched = true
        parts[index].news.add(row)
        parts[index].events.append(event)
        bytes += 256 + row.diff.count + (row.keyframe?.count ?? 0) + before
        batch.append(row)
        if !entity.isInGroup {
            entity.isInGroup = true
            entities.append(entity)
        }
    }

    /// Adds the heads after the rows, and ccids that can be archived with them (decision 0008); the group can then be
    /// written.
    /// - Parameter length: number of ccids in a run; nil archives none.
    mutating func finish(runsOf length: Int?) {
        batch.forgetHeads()
        for entity in entities {
            guard let row = entity.bucket.record?.row else { continue }
            batch.append(WriteBatch.EntityWrite(bucket: row, record: entity.record))
            if entity.bucket.mode == .tree { append(nodeOf: entity, row) }
        }
        for part in parts where part.isTouched {
            guard let active = part.active, let record = active.record else { continue }
            batch.append(record, part.news, isNew: active.isNew)
            for answer in active.batches.values.sorted(by: { $0.gid < $1.gid }) { batch.append(answer) }
            guard let length, batch.changeIDRuns.count < Self.runsMax, !active.isNew else { continue }
            if let run = active.run(of: length, before: firstGlobalID) { batch.append(run) }
        }
    }

    private mutating func append(nodeOf entity: ActiveEntity, _ row: BucketRow) {
        guard let node = NodeID(text: entity.key.text) else { return }
        let state = entity.state
        let written = state.isDeleted ? nil : NodeRow(of: state.value, bytes: state.size, gid: entity.gid)
        batch.append(WriteBatch.NodeWrite(bucket: row, node: node, row: written))
    }

    private mutating func partIndex(of bucket: BucketID, _ active: ActiveBucket?) -> Int {
        if let index = active?.groupIndex { return index }
        let known = partIndexes.isEmpty && active != nil ? nil : partIndexes[bucket]
        let index = known ?? parts.count
        if known == nil {
            parts.append(Part(bucket: bucket))
            if active == nil { partIndexes[bucket] = index }
            parts[index].events.reserveCapacity(active == nil ? 1 : Self.eventsReserved)
        }
        if let active { join(active, index) }
        return index
    }

    private mutating func join(_ active: ActiveBucket, _ index: Int) {
        active.groupIndex = index
        parts[index].active = active
        buckets.append(active)
    }
}
