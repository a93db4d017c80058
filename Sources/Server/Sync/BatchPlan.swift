import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

/// The changes of a batch, decided in order over the caller's tree and the trees of receivers, and not written yet
/// (decision 0067).
struct BatchPlan {
    /// One of the trees.
    struct Tree {
        let owner: UserID
        var plan: TreePlan
        /// Nodes that the batch has copied into it: parents of further copies.
        var copied = Set<NodeID>()
        /// Those of them directly in the inbox.
        var messages = 0

        var bucket: ActiveBucket { plan.view.bucket }
    }

    /// The caller's tree first, then the others in the order of their first operation.
    private(set) var trees: [Tree]
    private let shard: ShardCore
    private let request: TreeBatchRequest
    private let now: Int64
    private let isOnly: Bool

    init(of bucket: ActiveBucket, _ request: TreeBatchRequest, in shard: ShardCore, now: Int64) {
        (self.shard, self.request, self.now) = (shard, request, now)
        isOnly = request.batch.operations.count == 1
        trees = [Tree(owner: bucket.id.user, plan: TreePlan(of: bucket, in: shard, now: now, by: request.actor))]
    }

    private var caller: BucketID { trees[0].bucket.id }
    /// Changes in all trees.
    var count: Int { trees.reduce(0) { $0 + $1.plan.steps.count } }

    /// Adds the changes of an operation.
    ///
    /// - Parameter index: its place in the batch.
    mutating func add(_ operation: TreeOperation, at index: Int) throws(ChangeRejection) -> TreeOperationResult {
        switch operation {
        // Copies into a branch are puts; a member reaches no other tree through it.
        case .copy where request.member != nil: throw ChangeRejection(TreeRefusal.blocked)
        case .burn where request.member != nil: throw ChangeRejection(TreeRefusal.nodeMissing)
        case .copy(let copy): return .version(try add(copy))
        case .burn(let node, let receiver): return .branch(try burn(node, of: receiver))
        case .put, .delete, .deleteTree:
            bound(0)
            return try trees[0].plan.add(operation, request.proofs[index] ?? PutProof(), isOnly: isOnly)
        }
    }

    /// The bound of changes is that of the batch, whatever the number of trees.
    private mutating func bound(_ place: Int) {
        let others = count - trees[place].plan.steps.count
        trees[place].plan.changesMax = TreeLimits.batchChangesMax - others
    }

    // MARK: Copies

    private mutating func add(_ copy: TreeCopy) throws(ChangeRejection) -> Version {
        let place = try receiverPlace(copy.receiver)
        let isMessage = copy.record.parent == .trunk(.inbox)
        if case .node(let parent) = copy.record.parent, !trees[place].copied.contains(parent) {
            throw ChangeRejection(TreeRefusal.parentMissing)
        }
        try check(copy.source, copy.record)
        let isOther = copy.receiver != caller.user
        if isMessage, isOther { try checkRoom(in: trees[place]) }
        bound(place)
        let version = try trees[place].plan.deliver(
            copy.node, copy.record, from: isOther ? caller.user : nil, blobsOf: trees[0].bucket)
        trees[place].copied.insert(copy.node)
        if isMessage, isOther { trees[place].messages += 1 }
        return version
    }

    /// The tree of a receiver that admits the caller. Everything else is one refusal: the caller does not learn whether
    /// the receiver exists.
    private mutating func receiverPlace(_ receiver: UserID) throws(ChangeRejection) -> Int {
        if let known = trees.firstIndex(where: { $0.owner == receiver }) { return known }
        guard !receiver.isGuest, request.copies.receivers.contains(receiver),
            let bucket = try Receivers(shard: shard).tree(of: receiver, in: caller.app),
            try Receivers(shard: shard).policy(of: bucket).admits(caller.user)
        else { throw ChangeRejection(TreeRefusal.blocked) }
        // A receiver without a tree gets one, if it may have one more bucket.
        guard try BucketSpace(of: shard).has(bucket) else { throw ChangeRejection(TreeRefusal.inboxFull) }
        trees.append(Tree(owner: receiver, plan: TreePlan(of: bucket, in: shard, now: now)))
        return trees.count - 1
    }

    /// Checks the node that is copied: the caller knows its newest version, and the copy has its blob.
    private mutating func check(_ source: CopySource?, _ record: NodeRecord) throws(ChangeRejection) {
        guard let source else { return }
        guard let state = try trees[0].plan.live(source.node) else { throw ChangeRejection(TreeRefusal.nodeMissing) }
        guard state.version == source.version else { throw ChangeRejection(TreeRefusal.stale(current: state.version)) }
        guard case .blob(_, _, let blob)? = record.data else { return }
        guard BlobReference(of: state.value)?.blob == blob else { throw ChangeRejection(TreeRefusal.blobMissing) }
    }

    /// Checks the bounds of an inbox. Removals of the open group are not subtracted: at a bound, a message may be
    /// refused that the next group admits.
    private func checkRoom(in tree: Tree) throws(ChangeRejection) {
        let (shard, sender) = (shard, caller.user)
        let decided = tree.bucket.tree.delivered
        var (all, own) = (tree.messages + decided.values.reduce(0, +), tree.messages + (decided[sender] ?? 0))
        if let row = tree.bucket.record?.row {
            let stored = try shard.reading { () throws(StoreError) in
                try shard.store.inboxCount(of: sender, in: row)
            }
            (all, own) = (all + stored.all, own + stored.ofSender)
        }
        guard all < shard.settings.inboxNodesMax, own < shard.settings.inboxNodesPerSenderMax else {
            throw ChangeRejection(TreeRefusal.inboxFull)
        }
        let recent = shard.deliveries.count(of: pair(tree), at: now)
        guard recent + tree.messages < shard.settings.messagesPerMinuteMax else {
            throw ChangeRejection(TreeRefusal.tooFrequent)
        }
    }

    func pair(_ tree: Tree) -> DeliveryMeter.Pair {
        DeliveryMeter.Pair(app: caller.app, sender: caller.user, receiver: tree.owner)
    }

    // MARK: Burning

    /// Removes what the caller has sent and the receiver has left in the inbox. Everything else is one refusal.
    private mutating func burn(_ node: NodeID, of receiver: UserID) throws(ChangeRejection) -> BranchOutcome {
        let place: Int
        if let known = trees.firstIndex(where: { $0.owner == receiver }) {
            place = known
        } else {
            guard let bucket = try Receivers(shard: shard).tree(of: receiver, in: caller.app), bucket.record != nil
            else {
                throw ChangeRejection(TreeRefusal.nodeMissing)
            }
            trees.append(Tree(owner: receiver, plan: TreePlan(of: bucket, in: shard, now: now)))
            place = trees.count - 1
        }
        guard let state = try trees[place].plan.live(node),
            state.value[RecordKey.parent.rawValue]?.stringValue == Trunk.inbox.rawValue,
            state.value[RecordKey.sender.rawValue]?.stringValue == caller.user.text
        else { throw ChangeRejection(TreeRefusal.nodeMissing) }
        bound(place)
        let outcome = try trees[place].plan.remove(
            BranchRemoval(node, source: 1, includesOutdated: true, includesUnknown: true))
        guard !outcome.hasMore || (isOnly && outcome.removed > 0) else {
            throw ChangeRejection(TreeRefusal.batchTooLarge)
        }
        return outcome
    }

    // MARK: Marks

    /// The ccids of a tree's changes.
    static func changeIDs(_ batch: BatchID, _ count: Int) throws(ChangeRejection) -> [ChangeID] {
        var changeIDs = [ChangeID]()
        changeIDs.reserveCapacity(count)
        for index in 0..<count {
            changeIDs.append(try ShardCore.changeID(BatchMark(batch, index: index, of: count).ccid))
        }
        return changeIDs
    }

    /// The id under which the changes of a tree are marked: the batch's own in the caller's tree. In another tree it is
    /// derived from sender, receiver and batch, so that no sender can choose a mark that a receiver's log has, or that
    /// another sender uses.
    func mark(of tree: Tree) -> BatchID {
        guard tree.owner != caller.user else { return request.batch.id }
        var bytes = LabelledBytes("thicket/delivery/1")
        for field in [caller.app.text, caller.user.text, tree.owner.text] { try? bytes.add(field.utf8) }
        try? bytes.add(request.batch.id.octets)
        guard let id = BatchID(octets: Hash.sha256(bytes.octets).prefix(BatchID.bytesCount)) else {
            preconditionFailure("a digest has more bytes than an id")
        }
        return id
    }
}
