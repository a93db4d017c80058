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
            try SingleChange.check(decision, of: tree.node, in: view)
            try BlobClaim(shard: self).check(decision, in: bucket)
        }
        return outcome
    }
}
