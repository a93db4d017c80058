import ThicketProtocol

/// What a turn of the machine works with, and everything that it decides.
///
/// The machine keeps it between turns: the connection, the objects in memory and the random numbers outlive a turn;
/// the decisions are taken out when the store has accepted them. A bucket gets it `inout` with every call.
struct SyncTurn {
    let store: any LocalStore
    var random: any RandomNumberGenerator & Sendable
    var link: SyncLink
    /// The time on the machine's clock.
    var now: Int64 = 0
    var actions = [SyncAction]()
    /// Counts every change that the app sees; never decreases within a session.
    var revision: Int64 = 0
    /// The buckets whose events have a reader; nil: all. Changes of objects are not reported for other buckets.
    var bucketsWithReaders: Set<BucketName>?
    /// The objects in memory.
    var entities = [EntityAddress: LocalEntity]()
    private var touched = [EntityAddress: Touch]()
    /// Objects of this turn that are stored as received. An object that is read before the turn ends is taken out.
    private var arrivals = Arrivals()
    private var touchedBuckets = Set<Int>()
    /// Buckets whose known removals belong to another store.
    var forgottenRemovals = Set<BucketName>()
    /// The conflicts and integrity reports of this turn, and the buckets whose earlier ones have been delivered.
    var undeliveredWrites = [UndeliveredWrite]()
    var deliveredBuckets = Set<BucketName>()
    /// The undelivered events that this turn drops, by bucket; restored if the store does not accept the turn.
    var forgotten = [Int: UndeliveredEvents]()
    /// Whether the turn sends a change for the first time.
    var sendsNewChange = false
    /// A bucket that has caught up got the answer to a change: if all others have too, the connection works.
    var provesLink = false

    init(_ link: SyncLink, store: any LocalStore, random: any RandomNumberGenerator & Sendable) {
        (self.link, self.store, self.random) = (link, store, random)
    }

    // MARK: - Objects

    /// Whether the object is not in memory, whatever the store has.
    func isUnseen(_ address: EntityAddress) -> Bool { entities[address] == nil && !arrivals.contains(address) }

    /// The record of an object that is not in `entities`; an empty one when the store has none.
    mutating func record(_ address: EntityAddress) throws(ClientError) -> EntityRecord {
        // Reads alone must not fill the memory either; within a turn nothing is dropped.
        if touched.isEmpty, entities.count >= SyncLimits.cachedObjectsMax { entities.removeAll(keepingCapacity: true) }
        guard let arrived = arrivals.remove(address) else { return try store.entity(address) ?? EntityRecord() }
        let record = try arrived.record()
        // From now on stored like any other object of the turn.
        touch(address, EntityChange(parts: [.ghost, .marks]))
        return record
    }

    /// Adds what the turn did to an object in memory.
    mutating func touch(_ address: EntityAddress, _ change: EntityChange) {
        touched[address, default: Touch()].add(change)
    }

    /// Adds an object to the turn that is neither in the store nor in memory.
    mutating func arrive(_ object: NewObject) {
        arrivals.append(object)
        revision += 1
    }

    /// As above, for pages that may list an object twice.
    ///
    /// - Returns: false when the object is already in memory.
    mutating func arriveIfUnseen(_ object: consuming NewObject) -> Bool {
        guard entities[object.address] == nil, arrivals.appendIfNew(object) else { return false }
        revision += 1
        return true
    }

    /// The bucket's record has changed.
    mutating func touch(_ bucket: Int) { touchedBuckets.insert(bucket) }

    /// Whether the bucket has a reader.
    func hasReader(_ bucket: BucketName) -> Bool { bucketsWithReaders?.contains(bucket) ?? true }

    /// Random bytes, eight of each drawn number.
    mutating func randomBytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8]()
        while bytes.count < count {
            var word = random.next()
            for _ in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return Array(bytes.prefix(count))
    }

    // MARK: - Decisions

    /// Whether the turn has something to store.
    var hasDecided: Bool {
        !touched.isEmpty || !touchedBuckets.isEmpty || !arrivals.isEmpty || !undeliveredWrites.isEmpty
            || !deliveredBuckets.isEmpty || !forgottenRemovals.isEmpty
    }

    /// Everything that the turn stores.
    func batch(_ buckets: [BucketMachine]) -> LocalBatch {
        var batch = LocalBatch()
        batch.arrivals = arrivals.objects
        // Sorted, so that a repeated turn writes the same pages.
        for (address, touch) in touched.sorted(by: { $0.key < $1.key }) {
            guard let entity = entities[address] else { continue }
            batch.entities.append(touch.write(address, entity.record))
        }
        for number in touchedBuckets.sorted() { batch.buckets.append(buckets[number].record) }
        (batch.delivered, batch.undelivered) = (deliveredBuckets, undeliveredWrites)
        batch.forgottenRemovals = forgottenRemovals
        batch.isOnDisk = sendsNewChange
        return batch
    }

    /// The store has accepted the batch.
    mutating func stored() {
        touched.removeAll(keepingCapacity: true)
        touchedBuckets.removeAll(keepingCapacity: true)
        arrivals.removeAll()
        (deliveredBuckets, undeliveredWrites, forgotten) = ([], [], [:])
        if entities.count > SyncLimits.cachedObjectsMax || !forgottenRemovals.isEmpty {
            entities.removeAll(keepingCapacity: true)
        }
        forgottenRemovals = []
    }

    /// The store did not accept the turn: drops its decisions and everything in memory.
    mutating func drop() {
        touched.removeAll()
        touchedBuckets.removeAll()
        arrivals.removeAll()
        (deliveredBuckets, undeliveredWrites, forgotten) = ([], [], [:])
        forgottenRemovals = []
        entities.removeAll()
    }
}
