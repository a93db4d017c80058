import ThicketProtocol
import ThicketSealed

/// The first scan of a sealed bucket, on a device that has none of its objects.
extension SealedRules {
    /// New objects are opened many at a time and stored as received, bypassing the cache, as in open buckets. An object
    /// with a problem, or with something to report to the app, is processed like all others.
    static func receiveNew(
        _ bucket: inout BucketMachine, _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, scanID: Int64,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let name = bucket.record.name
        var looks = firstLooks(&bucket, entries, known, &turn)
        for (place, entry) in entries.enumerated() {
            // `take` moves the element out, so that no reference in memory written by another thread is counted.
            guard let look = looks[place].take(), let body = entry.data,
                // An object that a page lists twice is new only once.
                turn.arriveIfUnseen(
                    NewObject(
                        EntityAddress(bucket: name, key: entry.key), version: entry.version, scanID: scanID, body: body,
                        packed: look.packed, name: look.appKey, isLive: look.isLive))
            else {
                try bucket.indexed(entry, scanID: scanID, &turn)
                continue
            }
            if look.isLive { SealedUpkeep.grew(&bucket, entry.key, ownPosition: nil, tail: look.tail, &turn) }
        }
    }

    /// Opens each unknown object. A separate function, because a living copy of `Sealing` would cause its tables to be
    /// copied at the next change.
    private static func firstLooks(
        _ bucket: inout BucketMachine, _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, _ turn: inout SyncTurn
    ) -> [FirstLook?] {
        let name = bucket.record.name
        guard let sealing = bucket.sealing else { return entries.map { _ in nil } }
        let unseen: [IndexPage.Entry?] = entries.map { entry in
            guard !known.contains(entry.key), entry.key != sealing.headsKey,
                turn.isUnseen(EntityAddress(bucket: name, key: entry.key))
            else { return nil }
            return entry
        }
        return FirstLook.all(unseen, sealing.keys, sealing.author)
    }
}
