import ThicketProtocol

/// What one commit writes: a group of decided changes, with the heads they lead to.
///
/// Filled by the one submitter (the shard). Rows of several buckets may stand in one batch; the heads of an entity or
/// bucket that changes more than once are written once, as they are at the end.
public struct WriteBatch: Sendable {
    /// In gid order.
    public private(set) var changes: [ChangeRecord] = []
    /// Newest head of every entity touched.
    public private(set) var entities: [EntityWrite] = []
    /// Newest head of every bucket touched; those in `newBuckets` have no row yet.
    public private(set) var buckets: [BucketRecord] = []
    /// What the changes add to each of `buckets`, besides its head.
    public private(set) var news: [BucketNews] = []
    public private(set) var newBuckets: Set<BucketRow> = []
    /// Ccids of older changes that are settled along with these.
    public private(set) var changeIDRuns: [MaintenanceBatch.ChangeIDRun] = []
    private var entityPlaces = [EntityPlace: Int]()
    private var bucketPlaces = [BucketRow: Int]()

    /// Changes of one bucket, and the bytes of their diffs and bodies.
    public struct BucketNews: Sendable, Hashable {
        public var changes: Int = 0
        public var bytes: Int = 0

        mutating func add(_ change: borrowing ChangeRecord) {
            changes += 1
            bytes += change.diff.count + (change.keyframe?.count ?? 0)
        }
    }

    public struct EntityWrite: Sendable, Hashable {
        public let bucket: BucketRow
        public var record: EntityRecord
    }

    private struct EntityPlace: Hashable {
        let bucket: BucketRow
        let key: EntityKey
    }

    public init() {}

    public var isEmpty: Bool { changes.isEmpty && buckets.isEmpty }
    public var count: Int { changes.count }

    /// Adds one change with the heads after it.
    /// - Parameter isNewBucket: the bucket has no row yet; its first change of the batch says so.
    public mutating func append(
        _ change: ChangeRecord, entity: EntityRecord, bucket: BucketRecord, isNewBucket: Bool = false
    ) {
        changes.append(change)
        let place = EntityPlace(bucket: bucket.row, key: entity.key)
        if let index = entityPlaces[place] {
            entities[index].record = entity
        } else {
            entityPlaces[place] = entities.count
            entities.append(EntityWrite(bucket: bucket.row, record: entity))
        }
        if let index = bucketPlaces[bucket.row] {
            buckets[index] = bucket
            news[index].add(change)
        } else {
            bucketPlaces[bucket.row] = buckets.count
            buckets.append(bucket)
            news.append(BucketNews())
            news[news.count - 1].add(change)
        }
        if isNewBucket { newBuckets.insert(bucket.row) }
    }

    // Who knows which heads changed adds changes and heads apart, and so looks nothing up.

    /// Adds one change alone.
    mutating func append(_ change: consuming ChangeRecord) { changes.append(change) }

    /// Before the heads are given: those that were given for an earlier try are forgotten.
    mutating func forgetHeads() {
        entities.removeAll(keepingCapacity: true)
        entities.reserveCapacity(changes.count)
        buckets.removeAll(keepingCapacity: true)
        news.removeAll(keepingCapacity: true)
        newBuckets.removeAll(keepingCapacity: true)
        changeIDRuns = []
    }

    /// Adds ccids to be settled, of changes that are durable already.
    mutating func append(_ run: MaintenanceBatch.ChangeIDRun) { changeIDRuns.append(run) }

    /// Adds the head of an entity after all changes.
    mutating func append(_ entity: EntityWrite) { entities.append(entity) }

    /// Adds the head of a bucket after all changes, and what they add to it.
    mutating func append(_ bucket: BucketRecord, _ news: BucketNews, isNew: Bool) {
        buckets.append(bucket)
        self.news.append(news)
        if isNew { newBuckets.insert(bucket.row) }
    }

    /// Makes room.
    mutating func reserve(changes count: Int) { changes.reserveCapacity(count) }

    public mutating func removeAll(keepingCapacity: Bool = true) {
        changes.removeAll(keepingCapacity: keepingCapacity)
        entities.removeAll(keepingCapacity: keepingCapacity)
        buckets.removeAll(keepingCapacity: keepingCapacity)
        news.removeAll(keepingCapacity: keepingCapacity)
        newBuckets.removeAll(keepingCapacity: keepingCapacity)
        changeIDRuns = []
        entityPlaces.removeAll(keepingCapacity: keepingCapacity)
        bucketPlaces.removeAll(keepingCapacity: keepingCapacity)
    }
}
