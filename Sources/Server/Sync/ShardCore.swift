import ThicketProtocol
import ThicketTreeShape

/// The owner of a set of buckets: decides every change against its newest state in memory and writes changes in groups.
///
/// Deterministic except for its calls to the store: requests carry the time. Used on one thread, which also owns the
/// `StoreWriter`; the simulation drives it directly. The cycle is: `receive` until `isFull` or no request waits, then
/// `commit`; immediately again while `hasBacklog`. No decision may be sent before the outcome of its `commit`.
///
/// When the store refuses a group, the memory state of its buckets is dropped, its changes are retried one by one or
/// refused (500 for a bad row, else 503), and the next group starts from the durable state: service resumes by itself
/// as soon as the store works again.
public final class ShardCore {
    let store: any StoreWriter
    let identity: StoreIdentity
    let codec: ChangeVersionCodec
    /// `StoreWriter.changeIDRunLength` of the store.
    let changeIDRunLength: Int?
    private(set) var settings: ShardSettings
    private(set) var engine: ChangeEngine

    var buckets = [BucketID: ActiveBucket]()
    let bucketRecency = RecencyList<ActiveBucket>()
    var objects = ObjectCache()
    var group = ShardGroup()
    /// Quota reservations of the changes received since the last commit.
    private var reservations = [QuotaReservation]()
    /// Dropped values that take long to deallocate.
    var garbage = [any Sendable]()
    /// Serial of the object loaded last.
    private var lastSerial: UInt64 = 0
    /// Next position of the log; nil when it must be read from the store.
    var nextGlobalID: GlobalID?
    /// Oldest first.
    var clearJobs = [ClearBucketJob]()
    /// Buckets to be dropped at the end of the group.
    var forgotten = [BucketID]()
    /// Options that the open group changes; the buckets they apply to are dropped at its end.
    var changedOptions = [(app: AppID, key: EntityKey)]()
    var endedUsers = EndedUsers()
    /// What accounts have sent into inboxes lately.
    var deliveries = DeliveryMeter()

    /// Creates a shard that takes over `store`; the store must not be used elsewhere.
    public init(store: any StoreWriter, settings: ShardSettings = ShardSettings()) {
        self.store = store
        self.settings = settings
        identity = store.identity
        changeIDRunLength = store.changeIDRunLength
        codec = ChangeVersionCodec(store.identity)
        engine = ChangeEngine(documentBytesMax: settings.documentBytesMax, versionBase: store.identity.versionBase)
    }

    /// Replaces the bounds. Only between two groups.
    public func use(_ settings: ShardSettings) {
        self.settings = settings
        engine.documentBytesMax = settings.documentBytesMax
    }

    /// Whether the open group is full: commit it before receiving more changes.
    public var isFull: Bool {
        group.requests.count >= settings.groupChangesMax || group.bytes >= settings.groupBytesMax
    }

    /// Whether to commit again even when no request was received: an `EMPTY` is in progress.
    public var hasBacklog: Bool { !clearJobs.isEmpty }

    /// Memory usage, for the metrics.
    public var memory: ShardMemory {
        ShardMemory(
            buckets: buckets.count, bucketBytes: bucketRecency.bytes, entities: objects.count,
            entityBytes: objects.bytes, changeIDBytes: store.changeIDBytes, shareEvictions: objects.shareEvictions)
    }

    /// Tests whether a store that refused a group accepts writes again.
    public func probe() throws(StoreError) { try store.probe() }

    /// Decides a request now, against everything received before it. The answer is part of the next `commit`.
    ///
    /// - Returns: nil, or a change that would take long (`ShardSettings.decidedHereMax`). The caller decides it on
    ///   another thread and passes the result as `.decided`; until then it must not pass later changes of the same
    ///   author.
    public func receive(_ request: ShardRequest) -> DeferredChange? {
        switch request {
        case .change(let submitted):
            return receive(submitted, nil)
        case .decided(let result):
            return receive(result.submitted, result)
        case .chooseMode(let request):
            if group.requests.isEmpty { store.beginReads() }
            chooseMode(request)
            return nil
        case .forget(let bucket):
            forgotten.append(bucket)
            return nil
        }
    }

    private func receive(_ submitted: SubmittedChange, _ result: DeferredChange.Result?) -> DeferredChange? {
        if group.requests.isEmpty { store.beginReads() }
        if let long = decide(submitted, result, mayTakeLong: false) { return long }
        reservations.append(submitted.reservation)
        group.requests.append(submitted)
        return nil
    }

    /// Writes the decided changes as one durable group.
    ///
    /// - Returns: every answer of the group, in order. Never throws: a failing store gives refusals (503 or 500).
    public func commit() -> CommitOutcome {
        let released = reservations
        var outcome = commitGroup()
        outcome.released = released
        // A retry one by one decides the same requests again and adds no reservations.
        reservations.removeAll(keepingCapacity: true)
        return outcome
    }

    private func commitGroup() -> CommitOutcome {
        advanceClearJobs()
        defer {
            store.endReads()
            forgetWhatWasAsked()
        }
        guard group.hasRows else { return publish() }
        do {
            group.finish(runsOf: changeIDRunLength)
            try store.commit(group.batch)
        } catch {
            return recover(from: error)
        }
        return publish()
    }

    /// Writes background work between two groups.
    ///
    /// - Throws: when the store refuses it; nothing has changed then.
    /// - Returns: the buckets whose marks it moved.
    public func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove] {
        precondition(group.requests.isEmpty, "background work belongs between groups, after a commit")
        for erasure in work.erasures { endUser(erasure) }
        let moves = try store.apply(work)
        for move in moves {
            guard let bucket = buckets.values.first(where: { $0.record?.row == move.bucket }) else {
                continue
            }
            // The chains of objects with cut rows may have a new end.
            for cut in work.cuts where cut.bucket == move.bucket {
                if bucket.record?.floor != move.floor { dropEntities(of: bucket, cut.keys) }
            }
            bucket.apply(move, by: work.changeIDRuns.first { $0.bucket == move.bucket })
            bucketRecency.touch(bucket, bytes: bucket.memory)
        }
        return moves
    }

    /// Dropped values that take long to deallocate; releasing the last reference takes that time.
    public func takeGarbage() -> [any Sendable] {
        let taken = garbage + objects.takeGarbage()
        garbage = []
        return taken
    }

    // MARK: Deciding

    /// - Parameters:
    ///   - result: the decision from another thread.
    ///   - mayTakeLong: decides on this thread regardless of the cost.
    func decide(
        _ submitted: SubmittedChange, _ result: DeferredChange.Result? = nil, mayTakeLong: Bool
    ) -> DeferredChange? {
        do {
            return try tryDeciding(submitted, result, mayTakeLong: mayTakeLong)
        } catch {
            refuse(submitted, error)
            return nil
        }
    }

    private func tryDeciding(
        _ submitted: SubmittedChange, _ result: DeferredChange.Result?, mayTakeLong: Bool
    ) throws(ChangeRejection) -> DeferredChange? {
        guard endedUsers.isEmpty || !endedUsers.contains(submitted.bucket) else {
            if submitted.batch?.member != nil { throw ChangeRejection(TreeRefusal.notPermitted(.noRead)) }
            throw ChangeRejection(.unauthorized, "the user's account has ended")
        }
        if let policy = submitted.policy {
            try Receivers(shard: self).set(policy, submitted)
            return nil
        }
        if let batch = submitted.batch {
            try decide(batch, submitted)
            return nil
        }
        let change = try CheckedChange(submitted)
        let bucket = try activeBucket(submitted.bucket)
        let shape = try ChangeShape(submitted, change, in: bucket.mode)
        let hash = identity.hash(of: change.changeID)
        guard try !isKnown(change.changeID, hash: hash, in: bucket) else {
            throw ChangeRejection(.duplicateChange, "this ccid was applied before")
        }
        if case .empty = change.intent {
            try enqueueEmpty(change, submitted, bucket)
            return nil
        }
        let entity: ActiveEntity?
        let found: ChangeEngine.Outcome
        let keyframe: [UInt8]?
        switch try consider(change, shape, submitted, in: bucket, result, mayTakeLong: mayTakeLong) {
        case .offloaded(let long): return long
        case .decided(let outcome, let target, let made): (found, entity, keyframe) = (outcome, target, made)
        }
        let decision = try found.get()
        if bucket.isOptions {
            if !decision.isRemoval { try BucketOptions.check(decision.state.value, of: change.key) }
            recordOptions(change.key, of: bucket.id.app)
        }
        if bucket.mayHoldNotes { try checkNote(decision, before: entity?.state, in: bucket) }
        let audience = try SingleChange.audience(of: decision, shape, in: bucket, of: self)
        try admit(bucket)
        let target = entity ?? newEntity(change.key, in: bucket)
        let isCreation = target.state.isDeleted
        write(
            decision, to: target, author: submitted, changeID: change.changeID, hash: hash, keyframe: keyframe,
            audience: audience)
        if case .tree(let tree) = shape { bucket.write(tree.node, at: NodePlace(of: decision.state.value)) }
        if isCreation, bucket.capacity != nil { evict(in: bucket, now: submitted.now) }
        return nil
    }

    /// A new serial for an object that is loaded.
    func nextSerial() -> UInt64 {
        lastSerial += 1
        return lastSerial
    }

    func isKnown(
        _ changeID: ChangeID, hash: UInt64, in bucket: ActiveBucket
    ) throws(ChangeRejection) -> Bool {
        switch bucket.sighting(ofHash: hash) {
        case .new:
            return false
        case .known:
            return true
        case .perhaps(let gid):
            if !group.batch.isEmpty, gid >= group.firstGlobalID {
                return group.batch.changes[Int(gid - group.firstGlobalID)].changeID == changeID
            }
            return try reading { () throws(StoreError) in try store.confirms(changeID, at: gid) }
        case .notInTail:
            guard let record = bucket.record else { return false }
            return try reading { () throws(StoreError) in
                guard let gid = try store.archivedChange(hash: hash, in: record) else { return false }
                if gid == 0 { return true }
                return try store.confirms(changeID, at: gid)
            }
        }
    }

    /// Creates a bucket's row before its first change.
    func admit(_ bucket: ActiveBucket) throws(ChangeRejection) {
        try ensurePosition()
        guard bucket.record == nil else { return }
        let id = bucket.id
        guard try BucketSpace(of: self).has(bucket) else {
            throw ChangeRejection(.serverError, "the user has \(settings.bucketsPerUserMax) buckets, the maximum")
        }
        bucket.record = BucketRecord(row: store.newBucketRow(), id: id, mode: bucket.mode)
        bucket.isNew = true
    }

    /// Ensures that the next position of the log is known.
    func ensurePosition() throws(ChangeRejection) {
        guard nextGlobalID == nil else { return }
        nextGlobalID = try reading { () throws(StoreError) in try store.lastGlobalID() } + 1
    }

    /// Adds the row of a decided change, and its answer, to the group.
    func write(
        _ decision: Decision, to entity: ActiveEntity, author: SubmittedChange, changeID: ChangeID, hash: UInt64,
        keyframe made: [UInt8]? = nil, audience: ChangeAudience? = nil, isStep: Bool = false
    ) {
        let bucket = entity.bucket
        guard let gid = nextGlobalID, let record = bucket.record else {
            preconditionFailure("a change is written before its bucket was admitted")
        }
        nextGlobalID = gid + 1
        if group.batch.isEmpty { group.firstGlobalID = gid }
        let diff = decision.diffText
        let isEntry = audience?.isEntry ?? false
        let body =
            made
            ?? (isEntry
                ? decision.state.value.serialized() : keyframe(after: decision, of: entity, diffBytes: diff.count))
        let row = ChangeRecord(
            gid: gid, bucket: record.row, key: entity.key, kind: decision.isRemoval ? .remove : .modify,
            sourceVersion: decision.source, endVersion: decision.state.version, previousOfEntity: entity.gid,
            previousKeyframe: entity.keyframe, previousOfBucket: record.head, clientID: author.clientID,
            changeID: changeID, timestamp: author.now, diff: diff, keyframe: body, audience: audience)
        let element = ChangeElement.encode(row, codec, tag: bucket.tag)
        let delivery =
            audience == nil
            ? nil : BranchDelivery(row, decision.isRemoval ? nil : decision.state.value, codec, tag: bucket.tag)
        if bucket.capacity != nil {
            bucket.capacity?.count += (entity.state.isDeleted ? 1 : 0) - (decision.state.isDeleted ? 1 : 0)
        }
        if let count = bucket.noteCount {
            bucket.noteCount = count + (entity.state.isDeleted ? 1 : 0) - (decision.state.isDeleted ? 1 : 0)
        }
        let before = entity.state.memory
        entity.apply(decision, gid: gid, diffBytes: diff.count, isKeyframe: body != nil)
        bucket.record?.head = gid
        bucket.recordChangeID(hash: hash, gid: gid)
        if let sent = author.request.sv, let source = decision.source, sent != source {
            group.rebasedCount += 1
        }
        if body != nil { group.keyframeCount += 1 }
        let event = ChangeOutcome.applied(
            AppliedOutcome(
                gid: gid, origin: author.origin, key: entity.key, version: decision.state.version, isStep: isStep,
                isRemoval: decision.isRemoval, element: element, branch: delivery))
        group.add(row: row, entity: entity, before: before, event: event)
    }

    private func keyframe(after decision: Decision, of entity: ActiveEntity, diffBytes: Int) -> [UInt8]? {
        guard !decision.isRemoval,
            settings.keyframes.isDue(
                diffs: entity.diffsSinceKeyframe + 1, diffBytes: entity.diffBytesSinceKeyframe + diffBytes,
                bodyBytes: decision.state.size)
        else { return nil }
        return decision.state.value.serialized()
    }

    /// - Parameter operation: index of the operation of a batch that is refused.
    func refuse(_ submitted: SubmittedChange, _ reason: ChangeRejection, at operation: Int? = nil) {
        var refused = RefusedOutcome(submitted, reason)
        refused.operation = operation
        let event = ChangeOutcome.refused(refused)
        group.add(event, of: submitted.bucket, active: buckets[submitted.bucket])
    }
}

/// The memory usage of a shard.
public struct ShardMemory: Sendable, Equatable {
    /// Number of buckets in memory.
    public let buckets: Int
    /// Approximate bytes of these buckets, without their objects.
    public let bucketBytes: Int
    /// Number of objects in memory.
    public let entities: Int
    /// Approximate bytes of these objects.
    public let entityBytes: Int
    /// Bytes of archived ccids that the store caches for its writer.
    public let changeIDBytes: Int
    /// Number of objects evicted since the start because their user exceeded its share.
    public let shareEvictions: Int
}

extension RefusedOutcome {
    init(_ submitted: SubmittedChange, _ reason: ChangeRejection) {
        self.init(
            origin: submitted.origin, clientID: submitted.clientID, key: submitted.request.key, code: reason.code,
            changeIDs: submitted.request.ccid.isEmpty ? [] : [submitted.request.ccid], detail: reason.detail,
            sealedFault: reason.sealedFault, tree: reason.tree)
    }
}
