import ThicketProtocol

/// What has been decided since the last commit: rows to write and answers to give once they are durable.
struct ShardGroup {
    /// One bucket's answers.
    struct Part {
        let bucket: BucketID
        var events: [ChangeOutcome] = []
        /// True when a row of this group belongs to the bucket: its other answers may rest on it.
        var isTouched: Bool = false
    }

    /// Rows and heads.
    var batch = WriteBatch()
    /// Position of the first row; positions are given without gaps.
    var firstGlobalID: GlobalID = 0
    /// Changes that were made on an older version.
    var rebasedCount: Int = 0
    /// Rows that carry the whole body.
    var keyframeCount: Int = 0
    /// Bytes of the rows.
    var bytes: Int = 0
    /// In order of first answer.
    var parts: [Part] = []
    /// The buckets of `parts` that are in memory.
    var buckets: [ActiveBucket] = []
    /// Objects changed; an object that changed twice stands twice.
    var entities: [ActiveEntity] = []
    /// What was asked, in order: for the second try one by one.
    var requests: [SubmittedChange] = []
    private var partIndexes: [BucketID: Int] = [:]

    /// Adds an answer; `active` saves a look-up.
    mutating func add(_ event: ChangeOutcome, of bucket: BucketID, active: ActiveBucket?) {
        parts[partIndex(of: bucket, active)].events.append(event)
    }

    /// Adds a row with its answer.
    mutating func add(row: ChangeRecord, entity: ActiveEntity, event: ChangeOutcome) {
        let bucket: ActiveBucket = entity.bucket
        guard let record: BucketRecord = bucket.record else { return }
        batch.append(row, entity: entity.record, bucket: record, isNewBucket: bucket.isNew)
        bytes += 256 + row.diff.count + (row.keyframe?.count ?? 0)
        entities.append(entity)
        let index: Int = partIndex(of: bucket.id, bucket)
        parts[index].isTouched = true
        parts[index].events.append(event)
    }

    private mutating func partIndex(of bucket: BucketID, _ active: ActiveBucket?) -> Int {
        if let index: Int = active?.groupIndex ?? partIndexes[bucket] {
            if let active, active.groupIndex == nil { join(active, index) }
            return index
        }
        parts.append(Part(bucket: bucket))
        partIndexes[bucket] = parts.count - 1
        if let active { join(active, parts.count - 1) }
        return parts.count - 1
    }

    private mutating func join(_ active: ActiveBucket, _ index: Int) {
        active.groupIndex = index
        buckets.append(active)
    }
}
