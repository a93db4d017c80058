import ThicketProtocol
import ThicketTreeShape

/// The content of one commit: a group of decided changes, and the heads after them.
///
/// Filled by the shard only. A batch may hold rows of several buckets. The head of an entity or bucket that changes
/// more than once is written once, with its final value.
public struct WriteBatch: Sendable {
    /// In gid order.
    public private(set) var changes: [ChangeRecord] = []
    /// Final head of every changed entity.
    public private(set) var entities: [EntityWrite] = []
    /// Final head of every changed bucket; those in `newBuckets` have no row yet.
    public private(set) var buckets: [BucketRecord] = []
    /// Number and bytes of the changes that are added to each of `buckets`, in the same order.
    public private(set) var news: [BucketNews] = []
    /// Buckets whose row this batch creates.
    public private(set) var newBuckets: Set<BucketRow> = []
    /// Runs of ccids of older changes, archived in the same transaction.
    public private(set) var changeIDRuns: [MaintenanceBatch.ChangeIDRun] = []
    /// The nodes of trees that the batch writes, moves or removes; each node once.
    public package(set) var nodes: [NodeWrite] = []
    /// Answers of batches that are part of this one, to be repeated.
    public private(set) var answers: [BatchAnswer] = []
    /// Policies of inboxes, in the order in which they were set.
    public private(set) var policies: [PolicyWrite] = []
    /// What guests write by these changes.
    public private(set) var guests: [GuestUse] = []
    private var entityPlaces = [EntityPlace: Int]()
    private var bucketPlaces = [BucketRow: Int]()

    /// Number of changes of one bucket, and the bytes of their diffs and bodies.
    public struct BucketNews: Sendable, Hashable {
        /// Number of changes.
        public var changes = 0
        /// Bytes of diffs and keyframes.
        public var bytes = 0

        mutating func add(_ change: borrowing ChangeRecord) {
            changes += 1
            bytes += change.diff.count + (change.keyframe?.count ?? 0)
        }
    }

    /// The new head of one entity.
    public struct EntityWrite: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// The head after the change.
        public var record: EntityRecord
    }

    /// The new row of one node of a tree.
    public struct NodeWrite: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// The node.
        public let node: NodeID
        /// The row after the change; nil: the node is removed.
        public let row: NodeRow?

        /// A node's row after the batch.
        public init(bucket: BucketRow, node: NodeID, row: NodeRow?) {
            (self.bucket, self.node, self.row) = (bucket, node, row)
        }
    }

    /// The new policy of one inbox.
    public struct PolicyWrite: Sendable, Hashable {
        /// The app.
        public let app: AppID
        /// The owner of the inbox.
        public let user: UserID
        /// The policy.
        public let policy: InboxPolicy
    }

    private struct EntityPlace: Hashable {
        let bucket: BucketRow
        let key: EntityKey
    }

    /// Creates an empty batch.
    public init() {}

    /// Whether the batch has neither changes nor bucket heads nor policies.
    public var isEmpty: Bool { changes.isEmpty && buckets.isEmpty && policies.isEmpty }
    /// The time of its newest change, milliseconds since 1970; 0 without changes.
    var time: Int64 { changes.last?.timestamp ?? 0 }
    /// Number of changes.
    public var count: Int { changes.count }

    /// Adds one change and the heads after it.
    /// - Parameter isNewBucket: the bucket has no row yet; set with its first change in the batch.
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

    // A caller that tracks changed heads itself adds changes and heads separately, which avoids the look-ups above.

    /// Adds one change without heads.
    mutating func append(_ change: consuming ChangeRecord) { changes.append(change) }

    /// Removes the heads of an earlier attempt; called before heads are added.
    mutating func forgetHeads() {
        entities.removeAll(keepingCapacity: true)
        entities.reserveCapacity(changes.count)
        buckets.removeAll(keepingCapacity: true)
        news.removeAll(keepingCapacity: true)
        newBuckets.removeAll(keepingCapacity: true)
        changeIDRuns = []
        nodes = []
        answers = []
    }

    /// Adds a run of ccids to be archived, of changes that are durable already.
    mutating func append(_ run: MaintenanceBatch.ChangeIDRun) { changeIDRuns.append(run) }

    /// Adds the final row of a node.
    public mutating func append(_ node: NodeWrite) { nodes.append(node) }

    /// Adds the answer of a batch whose changes are in this one.
    public mutating func append(_ answer: BatchAnswer) { answers.append(answer) }

    /// Adds the policy of an inbox.
    mutating func append(_ policy: PolicyWrite) { policies.append(policy) }

    /// Adds what a guest writes.
    mutating func append(_ use: GuestUse) { guests.append(use) }

    /// Adds the final head of an entity.
    mutating func append(_ entity: EntityWrite) { entities.append(entity) }

    /// Adds the final head of a bucket, and the number and bytes of its added changes.
    mutating func append(_ bucket: BucketRecord, _ news: BucketNews, isNew: Bool) {
        buckets.append(bucket)
        self.news.append(news)
        if isNew { newBuckets.insert(bucket.row) }
    }

    /// Reserves capacity for `count` changes.
    mutating func reserve(changes count: Int) { changes.reserveCapacity(count) }

    /// Empties the batch; keeps the buffers by default.
    public mutating func removeAll(keepingCapacity: Bool = true) {
        changes.removeAll(keepingCapacity: keepingCapacity)
        entities.removeAll(keepingCapacity: keepingCapacity)
        buckets.removeAll(keepingCapacity: keepingCapacity)
        news.removeAll(keepingCapacity: keepingCapacity)
        newBuckets.removeAll(keepingCapacity: keepingCapacity)
        changeIDRuns = []
        nodes = []
        answers = []
        policies = []
        guests = []
        entityPlaces.removeAll(keepingCapacity: keepingCapacity)
        bucketPlaces.removeAll(keepingCapacity: keepingCapacity)
    }
}
