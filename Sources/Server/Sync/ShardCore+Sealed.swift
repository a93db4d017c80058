import ThicketProtocol
import ThicketSealedShape

/// Sealed buckets: their mode, and the way of their changes (decision 0045).
extension ShardCore {
    /// As the bucket's row says; without one as an operator has said of buckets of that name.
    func mode(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> BucketMode {
        if let record { return record.mode }
        return try reading { () throws(StoreError) in try store.mode(ofNew: id.name, in: id.app) }
    }

    /// Makes a bucket that has never held anything a sealed one, durably, before anybody writes to it. Of any other the
    /// answer is its mode.
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
            group.note(bucket.mode, of: bucket)
        } catch {
            group.noteModeUnknown(of: id, active: buckets[id])
        }
    }

    /// Decides a change of a sealed bucket whose shape is sound.
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
