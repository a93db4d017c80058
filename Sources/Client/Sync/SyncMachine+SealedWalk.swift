import Dispatch
import ThicketProtocol
import ThicketSealed

/// The first walk through a sealed bucket, on a device that has nothing of it.
extension SyncMachine {
    /// Objects that were never seen are opened many at once and go to the store as they came, past the cache, like those
    /// of open buckets. One that something is wrong with, or that the app must be told of, goes the way of all others.
    mutating func takeSealed(
        _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, _ sealing: Sealing, walk: Int64, on number: Int
    ) throws(ClientError) {
        let name: BucketName = channels[number].record.name
        var met: Set<EntityKey> = known
        let unseen: [IndexPage.Entry?] = entries.map { entry in
            let isUnseen: Bool = isUnseen(EntityAddress(bucket: name, key: entry.key))
            // One that a page lists twice is new once.
            return isUnseen && entry.key != sealing.headsKey && met.insert(entry.key).inserted ? entry : nil
        }
        for (entry, look): (IndexPage.Entry, FirstLook?) in zip(entries, FirstLook.all(unseen, sealing)) {
            guard let look, let body: JSONFragment = entry.data else {
                try indexed(entry, walk: walk, on: number)
                continue
            }
            let address: EntityAddress = EntityAddress(bucket: name, key: entry.key)
            arrive(
                NewObject(
                    address, version: entry.version, walk: walk, body: body, name: look.object.log.appKey,
                    isLive: look.object.log.object != nil))
            try wentOn(number, entry.key, look.object, isOwn: false, tail: look.tail)
        }
    }
}

/// What a sealed object that nothing is known of turns out to be.
private struct FirstLook: Sendable {
    let object: SealedObject
    /// Operations behind its snapshot.
    let tail: Int

    /// nil: it does not open, or opening it brings something to tell.
    init?(_ entry: IndexPage.Entry, _ sealing: Sealing) {
        guard let body: JSONObject = entry.data?.object, let entity: SealedEntity = try? SealedEntity(body),
            let sealer: ObjectSealer = try? sealing.keys.sealer(serverKey: entry.key.text),
            let opened: (object: SealedObject, events: [SealedEvent]) = try? SealedObject.open(
                entity, author: sealing.author, place: sealing.place(entry.key), with: sealer),
            opened.object.problem == nil, !opened.object.isStopped,
            opened.events.allSatisfy({ if case .changed = $0 { true } else { false } })
        else { return nil }
        (object, tail) = (opened.object, entity.tail.count)
    }

    /// Objects that one thread opens at a time; fewer are not worth waking another.
    private static let piece: Int = 64

    /// Opens them on all processors. What comes out does not depend on how the work was shared.
    static func all(_ entries: [IndexPage.Entry?], _ sealing: Sealing) -> [FirstLook?] {
        let pieces: Int = (entries.count + piece - 1) / piece
        guard pieces > 1 else { return entries.map { $0.flatMap { FirstLook($0, sealing) } } }
        return .init(unsafeUninitializedCapacity: entries.count) { room, count in
            // Each place is written once, by the one thread that has its piece.
            nonisolated(unsafe) let places: UnsafeMutableBufferPointer<FirstLook?> = room
            DispatchQueue.concurrentPerform(iterations: pieces) { number in
                for place: Int in number * piece..<min(entries.count, (number + 1) * piece) {
                    places.initializeElement(at: place, to: entries[place].flatMap { FirstLook($0, sealing) })
                }
            }
            count = entries.count
        }
    }
}
