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
    public private(set) var newBuckets: Set<BucketRow> = []
    private var entityPlaces: [EntityPlace: Int] = [:]
    private var bucketPlaces: [BucketRow: Int] = [:]

    public struct EntityWrite: Sendable, Hashable {
        public let bucket: BucketRow
        public var record: EntityRecord
    }

    private struct EntityPlace: Hashable {
        let bucket: BucketRow
        let key: EntityKey
    }

    public init() {}

    public var isEmpty: Bool { changes.isEmpty }
    public var count: Int { changes.count }

    /// Adds one change with the heads after it.
    /// - Parameter isNewBucket: the bucket has no row yet; its first change of the batch says so.
    public mutating func append(
        _ change: ChangeRecord, entity: EntityRecord, bucket: BucketRecord, isNewBucket: Bool = false
    ) {
        changes.append(change)
        let place: EntityPlace = .init(bucket: bucket.row, key: entity.key)
        if let index: Int = entityPlaces[place] {
            entities[index].record = entity
        } else {
            entityPlaces[place] = entities.count
            entities.append(EntityWrite(bucket: bucket.row, record: entity))
        }
        if let index: Int = bucketPlaces[bucket.row] {
            buckets[index] = bucket
        } else {
            bucketPlaces[bucket.row] = buckets.count
            buckets.append(bucket)
        }
        if isNewBucket { newBuckets.insert(bucket.row) }
    }

    /// Adds one change alone. Whoever adds changes so gives the heads too (`setHeads`), before the batch is written.
    mutating func append(_ change: consuming ChangeRecord) { changes.append(change) }

    /// Gives the heads after all changes: of each entity and bucket once.
    mutating func setHeads(
        entities: some Sequence<EntityWrite>, buckets: some Sequence<(BucketRecord, isNew: Bool)>
    ) {
        self.entities.removeAll(keepingCapacity: true)
        self.entities.reserveCapacity(changes.count)
        self.entities.append(contentsOf: entities)
        self.buckets.removeAll(keepingCapacity: true)
        newBuckets.removeAll(keepingCapacity: true)
        for (bucket, isNew): (BucketRecord, Bool) in buckets {
            self.buckets.append(bucket)
            if isNew { newBuckets.insert(bucket.row) }
        }
    }

    /// Makes room.
    mutating func reserve(changes count: Int) { changes.reserveCapacity(count) }

    public mutating func removeAll(keepingCapacity: Bool = true) {
        changes.removeAll(keepingCapacity: keepingCapacity)
        entities.removeAll(keepingCapacity: keepingCapacity)
        buckets.removeAll(keepingCapacity: keepingCapacity)
        newBuckets.removeAll(keepingCapacity: keepingCapacity)
        entityPlaces.removeAll(keepingCapacity: keepingCapacity)
        bucketPlaces.removeAll(keepingCapacity: keepingCapacity)
    }

    /// The same work in one batch per bucket, for a second try after a `constraint`: one bad row then stops only its
    /// own bucket.
    public func byBucket() -> [WriteBatch] {
        var parts: [WriteBatch] = []
        for bucket: BucketRecord in buckets {
            var part: WriteBatch = .init()
            part.changes = changes.filter { $0.bucket == bucket.row }
            part.entities = entities.filter { $0.bucket == bucket.row }
            part.buckets = [bucket]
            if newBuckets.contains(bucket.row) { part.newBuckets = [bucket.row] }
            parts.append(part)
        }
        return parts
    }
}
