import ThicketProtocol
import ThicketTreeShape
import ThicketSealedShape

/// Sealed buckets and trees: their mode, and the decisions on their changes (decisions 0045 and 0093).
extension ShardCore {
    /// The mode from the bucket's row; without a row, the mode that an operator set for new buckets of that name.
    func mode(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> BucketMode {
        if let record { return record.mode }
        return try reading { () throws(StoreError) in try store.mode(ofNew: id.name, in: id.app) }
    }

    /// Gives a bucket that has never held an object its mode, durably, before the first write. For any other bucket the
    /// answer is its existing mode.
    func chooseMode(_ request: ModeRequest) {
        let (id, mode) = (request.bucket, request.mode)
        do {
            guard endedUsers.isEmpty || !endedUsers.contains(id) else {
                throw ChangeRejection(.unauthorized, "the user's account has ended")
            }
            let bucket = try activeBucket(id)
            if bucket.record == nil, bucket.mode == .open || bucket.mode == mode, mode.mayBeChosen(for: id.name) {
                try admit(bucket)
                bucket.choose(mode)
                group.add(newRowOf: bucket)
            }
            group.recordMode(bucket.mode, of: bucket)
        } catch {
            group.recordModeUnknown(of: id, active: buckets[id])
        }
    }

    /// Decides a change of a sealed bucket whose shape has been checked.
    func decide(
        _ shape: SealedShape.Change, _ change: CheckedChange, on entity: ActiveEntity?
    ) throws(ChangeRejection) -> ChangeEngine.Outcome {
        let engine = SealedEngine(
            snapshotBytesMax: settings.documentBytesMax, versionBase: identity.versionBase)
        return try engine.decide(
            shape, source: change.source, isWhole: change.isWhole, state: entity?.state, born: entity?.born
        ) { (version) throws(ChangeRejection) in
            guard let entity else { return nil }
            return try laterChanges(of: entity, after: version)?.base
        }
    }

    /// Decides a change of a tree whose form has been checked.
    func decide(
        _ tree: TreeChange, _ change: CheckedChange, on entity: ActiveEntity?, in bucket: ActiveBucket, now: Int64
    ) throws(ChangeRejection) -> ChangeEngine.Outcome {
        let engine = TreeEngine(
            documentBytesMax: settings.documentBytesMax, versionBase: identity.versionBase, now: now)
        let view = ShardTree(shard: self, bucket: bucket)
        let outcome = try engine.decide(tree, source: change.source, state: entity?.state, in: view)
        if case .success(let decision) = outcome {
            try checkSingle(decision, of: tree.node, in: view)
            try checkBlob(of: decision, in: bucket)
        }
        return outcome
    }

    /// A single change is not verified before it is decided: it writes nothing into a shared branch, and nothing that
    /// was in one. Its owner may remove a node from it.
    private func checkSingle(
        _ decision: Decision, of node: NodeID, in view: ShardTree
    ) throws(ChangeRejection) {
        guard !decision.isRemoval else { return }
        let hasList = decision.state.value.contains(RecordKey.shareList.rawValue)
        guard hasList || !view.listRoots.isEmpty else { return }
        var isInside = try BranchCheck.audience(of: node, in: view) != nil
        if case .node(let parent)? = NodePlace(of: decision.state.value)?.parent, !isInside {
            isInside = try BranchCheck.audience(of: parent, in: view) != nil
        }
        guard !hasList, !isInside else { throw ChangeRejection(TreeRefusal.badSignature) }
    }

    /// The branch of a node that a single change has removed.
    func audience(
        of decision: Decision, _ shape: ChangeShape, in bucket: ActiveBucket
    ) throws(ChangeRejection) -> ChangeAudience? {
        guard case .tree(let tree) = shape, decision.isRemoval, !bucket.tree.shared.isEmpty else { return nil }
        let before = try BranchCheck.audience(of: tree.node, in: ShardTree(shard: self, bucket: bucket))
        return ChangeAudience(BranchChange(before: before), isRemoval: true, isNew: false)
    }

    /// Refuses a record whose blob is not there for it (treesystem 4.8, rule 7). Blobs are removed only while no node
    /// refers to them; the writer checks once more in its transaction.
    func checkBlob(of decision: Decision, in bucket: ActiveBucket) throws(ChangeRejection) {
        try checkBlob(of: decision, by: bucket.id.user, in: bucket)
    }

    /// - Parameter user: the account that has uploaded it; a record of its own tree may also refer to a blob that the
    ///   tree has.
    func checkBlob(of decision: Decision, by user: UserID, in bucket: ActiveBucket) throws(ChangeRejection) {
        guard !decision.isRemoval, let reference = BlobReference(of: decision.state.value) else { return }
        var length = try length(of: reference.blob, by: user, for: bucket)
        if length == nil {
            // The group may read a state from before the upload was completed.
            store.refreshReads()
            length = try self.length(of: reference.blob, by: user, for: bucket)
        }
        guard length == reference.length else { throw ChangeRejection(TreeRefusal.blobMissing) }
    }

    private func length(
        of blob: BlobID, by user: UserID, for bucket: ActiveBucket
    ) throws(ChangeRejection) -> Int64? {
        let isOwner = user == bucket.id.user
        let uploader = isOwner ? bucket.id : BucketID(app: bucket.id.app, user: user, name: bucket.id.name)
        return try reading { () throws(StoreError) in
            try store.length(of: blob, by: uploader, in: isOwner ? bucket.record?.row : nil)
        }
    }
}
