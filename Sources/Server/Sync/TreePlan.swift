import ThicketProtocol
import ThicketTreeShape

/// Changes of one tree that are decided in order, each on those before it, and not written yet: if one is refused,
/// nothing has to be undone.
struct TreePlan {
    /// One decided change.
    struct Step {
        let key: EntityKey
        /// The object as it was loaded; nil when the key never existed. It may have been evicted since.
        let entity: ActiveEntity?
        let decision: Decision
        /// The shared branches that the change belongs to.
        var audience: ChangeAudience?
    }

    /// The tree after the steps.
    private(set) var view: ShardTree
    private(set) var steps = [Step]()
    private var loaded = [NodeID: ActiveEntity]()
    private let engine: TreeEngine
    private let branches: BranchCheck
    /// Changes that the plan may make.
    var changesMax: Int
    /// Survivors that the answers of all removals may still list.
    private var listedRest = TreeLimits.batchSurvivorsMax

    /// A plan without steps.
    ///
    /// - Parameters:
    ///   - now: the time of the changes, milliseconds since 1970.
    ///   - actor: the account that changes the tree.
    ///   - changesMax: a removal of a branch ends there; other changes beyond it are refused.
    init(
        of bucket: ActiveBucket, in shard: ShardCore, now: Int64, by actor: TreeActor = .owner,
        changesMax: Int = TreeLimits.batchChangesMax
    ) {
        branches = BranchCheck(actor, in: TreePlace(app: bucket.id.app, owner: bucket.id.user))
        view = ShardTree(shard: shard, bucket: bucket, isPlan: true)
        engine = TreeEngine(
            documentBytesMax: shard.settings.documentBytesMax, versionBase: shard.identity.versionBase, now: now)
        self.changesMax = changesMax
    }

    /// Adds the changes of an operation.
    ///
    /// - Parameters:
    ///   - proof: what is known of the signatures of a put.
    ///   - isOnly: whether the batch has no other operation: then a large branch is removed in parts.
    mutating func add(
        _ operation: TreeOperation, _ proof: PutProof, isOnly: Bool
    ) throws(ChangeRejection) -> TreeOperationResult {
        switch operation {
        case .put(let node, let source, let record):
            let audiences = try audiences(of: record, at: node, replacing: source, proof)
            return .version(try add(TreeChange(.whole(record), of: node), source: source, audiences))
        case .delete(let node, let source):
            return .version(try remove(node, source: source))
        case .deleteTree(let branch):
            // A member is answered what the visit of a branch finds: it must be the member's branch.
            if branches.actor.isMember { _ = try audiences(ofRemoved: branch.node) }
            let outcome = try remove(branch)
            guard !outcome.hasMore || (isOnly && outcome.removed > 0) else {
                throw ChangeRejection(TreeRefusal.batchTooLarge)
            }
            return .branch(outcome)
        // `BatchPlan` decides these: they are changes of other trees.
        case .copy: throw ChangeRejection(TreeRefusal.blocked)
        case .burn: throw ChangeRejection(TreeRefusal.nodeMissing)
        }
    }

    // MARK: Shared branches

    /// Whether the tree has shared branches, or is a member's to change. Nothing else needs their checks.
    private var hasBranches: Bool { !view.listRoots.isEmpty || branches.actor.isMember }

    private func audiences(
        of record: NodeRecord, at node: NodeID, replacing source: Version, _ proof: PutProof
    ) throws(ChangeRejection) -> BranchChange {
        guard hasBranches || record.shareList != nil else { return BranchChange() }
        return try Self.admitted(branches.put(record, at: node, replacing: source, proof, in: view))
    }

    private func audiences(ofRemoved node: NodeID) throws(ChangeRejection) -> BranchChange {
        guard hasBranches else { return BranchChange() }
        return try Self.admitted(branches.removal(of: node, in: view))
    }

    private static func admitted(_ verdict: BranchCheck.Verdict) throws(ChangeRejection) -> BranchChange {
        do throws(TreeRefusal) { return try verdict.get() } catch { throw ChangeRejection(error) }
    }

    /// A member's record refers to a blob that the member has uploaded, or that the node has already.
    private func checkBlob(of decision: Decision, before state: ObjectState?) throws(ChangeRejection) {
        guard case .member(let user, _) = branches.actor else {
            return try BlobClaim(shard: view.shard).check(decision, in: view.bucket)
        }
        if let state, !state.isDeleted, let blob = BlobReference(of: state.value),
            blob == BlobReference(of: decision.state.value)
        {
            return
        }
        try BlobClaim(shard: view.shard).check(decision, by: user, in: view.bucket)
    }

    // MARK: Changes

    private mutating func remove(_ node: NodeID, source: Version) throws(ChangeRejection) -> Version {
        let audiences = try audiences(ofRemoved: node)
        return try add(TreeChange(.removal, of: node), source: source, audiences)
    }

    /// - Returns: the node's version after the change.
    private mutating func add(
        _ change: TreeChange, source: Version, _ audiences: BranchChange
    ) throws(ChangeRejection) -> Version {
        guard steps.count < changesMax else { throw ChangeRejection(TreeRefusal.batchTooLarge) }
        let key = try Self.key(of: change.node)
        let state = try state(of: change.node, key, isParsed: !change.isRemoval)
        let decision = try engine.decide(change, source: source, state: state, in: view, from: audiences.creator).get()
        try checkBlob(of: decision, before: state)
        let audience = ChangeAudience(audiences, isRemoval: change.isRemoval, isNew: state?.isDeleted ?? true)
        steps.append(Step(key: key, entity: loaded[change.node], decision: decision, audience: audience))
        view.plan(decision.state, of: change.node)
        return decision.state.version
    }

    /// Writes a new node for another account, or for the owner as any other account would.
    ///
    /// - Parameters:
    ///   - sender: nil for the owner.
    ///   - author: the tree of the caller, which uploaded the blob of the record or refers to it.
    /// - Returns: the node's version.
    mutating func deliver(
        _ node: NodeID, _ record: NodeRecord, from sender: UserID?, blobsOf author: ActiveBucket
    ) throws(ChangeRejection) -> Version {
        guard steps.count < changesMax else { throw ChangeRejection(TreeRefusal.batchTooLarge) }
        let key = try Self.key(of: node)
        // Also a node that was removed has a state: what a receiver has removed is not delivered again.
        guard try state(of: node, key, isParsed: false) == nil else { throw ChangeRejection(TreeRefusal.repeated) }
        guard record.shareList == nil else { throw ChangeRejection(TreeRefusal.nestedShareList) }
        let decision = try engine.decide(
            TreeChange(.whole(record), of: node), source: nil, state: nil, in: view, from: sender
        ).get()
        try BlobClaim(shard: view.shard).check(decision, in: author)
        steps.append(Step(key: key, entity: nil, decision: decision))
        view.plan(decision.state, of: node)
        return decision.state.version
    }

    /// The newest state of a node; nil when it does not exist.
    mutating func live(_ node: NodeID) throws(ChangeRejection) -> ObjectState? {
        let state = try state(of: node, try Self.key(of: node), isParsed: true)
        return state.flatMap { $0.isDeleted ? nil : $0 }
    }

    private mutating func state(
        of node: NodeID, _ key: EntityKey, isParsed: Bool
    ) throws(ChangeRejection) -> ObjectState? {
        if let planned = view.planned[node] { return planned }
        let (shard, bucket) = (view.shard, view.bucket)
        let entity = isParsed ? try shard.activeEntity(key, in: bucket) : try shard.foundEntity(key, in: bucket)
        loaded[node] = entity
        return entity?.state
    }

    private static func key(of node: NodeID) throws(ChangeRejection) -> EntityKey {
        do throws(IdentifierError) { return try EntityKey(node.text) } catch {
            throw ChangeRejection(.serverError, error.description)
        }
    }

    // MARK: Branches

    /// The progress of a removal.
    private struct Visit {
        let branch: BranchRemoval
        var visitsLeft: Int
        var outcome = BranchOutcome(removed: 0, left: 0, kept: [], hasMore: false)
    }

    /// Removes a branch, leaves first, so that each state of the log is a tree.
    ///
    /// - Returns: what it has left; `hasMore` when the bounds of the plan, or of visited nodes, ended it.
    mutating func remove(_ branch: BranchRemoval) throws(ChangeRejection) -> BranchOutcome {
        guard try view.version(of: branch.node) > 0 else { throw ChangeRejection(TreeRefusal.nodeMissing) }
        var visit = Visit(branch: branch, visitsLeft: view.shard.settings.nodeVisitsMax)
        _ = try isRemoved(branch.node, &visit)
        listedRest -= visit.outcome.kept.count
        return visit.outcome
    }

    /// Visits a node after everything below it; the depth of the recursion is that of the tree.
    private mutating func isRemoved(_ node: NodeID, _ visit: inout Visit) throws(ChangeRejection) -> Bool {
        visit.visitsLeft -= 1
        var isLeaf = true
        // One more than can be visited, to see that there are more.
        for child in try view.children(of: .node(node), limit: max(1, visit.visitsLeft + 1)) {
            guard visit.visitsLeft > 0, steps.count < changesMax else {
                visit.outcome.hasMore = true
                return false
            }
            if try !isRemoved(child, &visit) { isLeaf = false }
            if visit.outcome.hasMore { return false }
        }
        let version = try view.version(of: node)
        guard isLeaf, visit.branch.removes(node, at: version) else {
            visit.outcome.left += 1
            if visit.outcome.kept.count < min(listedRest, TreeLimits.survivorsListedMax) {
                visit.outcome.kept.append(node)
            }
            return false
        }
        guard steps.count < changesMax else {
            visit.outcome.hasMore = true
            return false
        }
        _ = try remove(node, source: version)
        visit.outcome.removed += 1
        return true
    }
}

extension TreeChange {
    fileprivate var isRemoval: Bool { if case .removal = action { true } else { false } }
}
