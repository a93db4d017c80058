import ThicketProtocol

/// What has been decided since the last commit: rows to write and answers to give once they are durable.
struct ShardGroup {
    /// One bucket's answers.
    struct Part {
        let bucket: BucketID
        /// The bucket, when it is in memory.
        var active: ActiveBucket?
        var events = [ChangeOutcome]()
        var news = WriteBatch.BucketNews()
        /// True when a row of this group belongs to the bucket: its other answers may rest on it.
        var isTouched = false
        /// The answer to who wants the bucket sealed.
        var mode: BucketModeAnswer?
    }

    /// Rows; and, once it is `finished`, heads.
    private(set) var batch = WriteBatch()
    /// Position of the first row; positions are given without gaps.
    var firstGlobalID: GlobalID = 0
    /// Changes that were made on an older version.
    var rebasedCount = 0
    /// Rows that carry the whole body.
    var keyframeCount = 0
    /// Objects that a smaller capacity has pushed out, beyond the one that each new object does.
    var extraRemovals = 0
    /// Bytes of the rows, and of the objects before each change: they are kept until the group is durable, and share
    /// what a change did not touch, so that this is what they take at most.
    var bytes = 0
    /// A bucket that nobody has changed yet gets a row.
    private var hasNewRow = false
    /// In order of first answer.
    var parts = [Part]()
    /// The buckets of `parts` that are in memory.
    var buckets = [ActiveBucket]()
    /// Objects changed, each once.
    private(set) var entities = [ActiveEntity]()
    /// What was asked, in order: for the second try one by one.
    var requests = [SubmittedChange]()
    /// Of buckets that are not in memory.
    private var partIndexes = [BucketID: Int]()

    /// Answers of one bucket that have room at once.
    private static let eventsReserved = 8
    /// Runs of ccids that one group takes along: each writes 32 KiB, which everybody in the group waits for.
    private static let runsMax = 4

    /// - Parameter changes: how many are expected, about.
    init(reserving changes: Int = 0) {
        batch.reserve(changes: changes)
        requests.reserveCapacity(changes)
        entities.reserveCapacity(changes)
    }

    /// Adds an answer; `active` saves a look-up.
    mutating func add(_ event: ChangeOutcome, of bucket: BucketID, active: ActiveBucket?) {
        let index = partIndex(of: bucket, active)
        parts[index].events.append(event)
    }

    /// There is something to write.
    var hasRows: Bool { !batch.isEmpty || hasNewRow }

    /// Adds the row of a bucket that nobody has changed yet.
    mutating func add(newRowOf bucket: ActiveBucket) {
        parts[partIndex(of: bucket.id, bucket)].isTouched = true
        hasNewRow = true
    }

    /// Answers who wants the bucket sealed. The answer is good once the group is durable.
    mutating func note(_ mode: BucketMode, of bucket: ActiveBucket) {
        parts[partIndex(of: bucket.id, bucket)].mode = .mode(mode)
    }

    mutating func noteModeUnknown(of bucket: BucketID, active: ActiveBucket?) {
        parts[partIndex(of: bucket, active)].mode = .unknown
    }

    /// Adds a row with its answer.
    /// - Parameter before: bytes in memory of the object before it.
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

    /// Adds the heads that the rows lead to, and ccids that can be settled with them (0037): the group can be written.
    /// - Parameter length: how many ccids are settled as one run; nil for none.
    mutating func finish(runsOf length: Int?) {
        batch.forgetHeads()
        for entity in entities {
            guard let row = entity.bucket.record?.row else { continue }
            batch.append(WriteBatch.EntityWrite(bucket: row, record: entity.record))
        }
        for part in parts where part.isTouched {
            guard let active = part.active, let record = active.record else { continue }
            batch.append(record, part.news, isNew: active.isNew)
            guard let length, batch.changeIDRuns.count < Self.runsMax, !active.isNew else { continue }
            if let run = active.run(of: length, before: firstGlobalID) { batch.append(run) }
        }
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
