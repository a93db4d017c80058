import ThicketProtocol
import ThicketSealed

/// The first walk through a sealed bucket, on a device that has nothing of it.
extension SyncMachine {
    /// Objects that were never seen are opened many at once and go to the store as they came, past the cache, like
    /// those of open buckets. One that something is wrong with, or that the app must be told of, goes the way of all
    /// others.
    mutating func takeSealed(
        _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, walk: Int64, on number: Int
    ) throws(ClientError) {
        let name = channels[number].record.name
        var looks = firstLooks(entries, known, number)
        for (place, entry) in entries.enumerated() {
            // Taken out: nothing is counted of memory that another thread has written.
            guard let look = looks[place].take(), let body = entry.data,
                // One that a page lists twice is new once.
                arriveIfUnseen(
                    NewObject(
                        EntityAddress(bucket: name, key: entry.key), version: entry.version, walk: walk, body: body,
                        packed: look.packed, name: look.appKey, isLive: look.isLive))
            else {
                try indexed(entry, walk: walk, on: number)
                continue
            }
            if look.isLive { grew(number, entry.key, ownPosition: nil, tail: look.tail) }
        }
    }

    /// A look at each object that is not known. In a function of its own: where a copy of `Sealing` lives on, its
    /// tables are copied at the next change.
    private func firstLooks(_ entries: [IndexPage.Entry], _ known: Set<EntityKey>, _ number: Int) -> [FirstLook?] {
        let name = channels[number].record.name
        guard let sealing = channels[number].sealing else { return entries.map { _ in nil } }
        let unseen: [IndexPage.Entry?] = entries.map { entry in
            guard !known.contains(entry.key), entry.key != sealing.headsKey,
                isUnseen(EntityAddress(bucket: name, key: entry.key))
            else { return nil }
            return entry
        }
        return FirstLook.all(unseen, sealing.keys, sealing.author)
    }
}
