import ThicketProtocol

/// The rules of sealed buckets: the server stores `{z,s,d}` and orders operations; the client decrypts and merges
/// (docs/decisions/0044).
///
/// The ghost is the server's state, as far as this device has read and verified it; the object's log is derived from
/// it. The record also holds the bytes of the change in flight, and `EditState.sealed`.
enum SealedRules: ObjectRules {
    /// An honest removal has a tombstone among the changes since the position.
    static let keepsLostPosition = true

    static func forgetProof(_ entity: inout LocalEntity) -> EntityParts { .edits }

    static func unlisted(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let version = try bucket.entity(key, &turn).record.ghost.version
        try bucket.jump(key, to: Ghost(version: version, object: nil), &turn)
    }

    static func indexedElsewhere(
        _ bucket: inout BucketMachine, _ object: IndexPage.Entry, scanID: Int64, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let (entity, wasMet) = try bucket.meet(object.key, scanID, &turn)
        // A change that arrived during the scan is newer than the scan's snapshot.
        if wasMet, object.version <= entity.newest.version { return }
        guard let value = object.data?.object else {
            return try bucket.want(object.key, object.version, &turn)
        }
        let next = Ghost(version: object.version, object: value)
        if entity.record.ghost == next, entity.record.edits.held == nil { return }
        try bucket.jump(object.key, to: next, &turn)
    }

    static func refusedUpkeep(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, changeIDs: [String], _ turn: inout SyncTurn
    ) -> Bool {
        SealedUpkeep.refused(&bucket, key, code: code, changeIDs: changeIDs, &turn)
    }

    static func pump(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        try SealedUpkeep.pump(&bucket, &turn)
    }

    static func caughtUp(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        try SealedUpkeep.caughtUp(&bucket, &turn)
    }
}
