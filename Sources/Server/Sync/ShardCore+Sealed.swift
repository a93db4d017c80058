import ThicketProtocol
import ThicketSealedShape

/// Sealed buckets: their mode, and the decisions on their changes (decision 0045).
extension ShardCore {
    /// The mode from the bucket's row; without a row, the mode that an operator set for new buckets of that name.
    func mode(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> BucketMode {
        if let record { return record.mode }
        return try reading { () throws(StoreError) in try store.mode(ofNew: id.name, in: id.app) }
    }

    /// Makes a bucket that has never held an object sealed, durably, before the first write. For any other bucket the
    /// answer is its existing mode.
    func seal(_ id: BucketID) {
        do {
            guard endedUsers.isEmpty || !endedUsers.contains(id) else {
                throw ChangeRejection(.unauthorized, "the user's account has ended")
            }
            let bucket = try activeBucket(id)
            if bucket.record == nil, !bucket.isOptions {
                try admit(bucket)
                bucket.seal()
                bucket.record?.mode = .sealed
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
}
