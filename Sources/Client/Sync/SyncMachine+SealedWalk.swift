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
                    address, version: entry.version, walk: walk, body: body, packed: look.packed, name: look.appKey,
                    isLive: look.isLive))
            if look.isLive { grew(number, entry.key, ownPosition: nil, tail: look.tail) }
        }
    }
}

/// An object as an index brings it, in memory of its own.
private struct Unopened: Sendable {
    let key: String
    let body: [UInt8]

    init?(_ entry: IndexPage.Entry) {
        switch entry.data {
        case .node(let node): body = Array(node.rawBytes)
        case nil: return nil
        case let other?: body = other.bytes
        }
        key = entry.key.text
    }
}

/// What a sealed object that nothing is known of turns out to be.
private struct FirstLook: Sendable {
    let appKey: String
    let isLive: Bool
    /// Operations behind its snapshot.
    let tail: Int
    let packed: [UInt8]

    /// nil: it does not open, or opening it brings something to tell.
    init?(_ entry: Unopened, _ keys: SealedBucketKeys, _ author: AuthorID) {
        guard let body: JSONValue = try? JSONValue(parsing: entry.body, maxDepth: JSONDocument.depthCeiling),
            let entity: SealedEntity = body.objectValue.flatMap({ try? SealedEntity($0) }),
            let values: PackedEntity.Values = .init(entity),
            let newest: (position: Int, sealed: [UInt8]) = values.snapshots.last,
            let sealer: ObjectSealer = try? keys.sealer(serverKey: entry.key),
            let log: SealedLog = Self.log(newest, values.tail, author, keys.place(serverKey: entry.key), sealer),
            Sealing.isNamed(log, entry.key, by: keys)
        else { return nil }
        (appKey, isLive) = (log.appKey, log.object != nil)
        (tail, packed) = (values.tail.count, PackedEntity.pack(values))
    }

    /// nil: something is wrong with it, or is to be told.
    private static func log(
        _ newest: (position: Int, sealed: [UInt8]), _ tail: [[UInt8]], _ author: AuthorID, _ place: SealedPlace,
        _ sealer: ObjectSealer
    ) -> SealedLog? {
        guard !tail.isEmpty else { return SealedObject.log(of: newest.sealed, at: newest.position, place, sealer) }
        guard
            let opened: (object: SealedObject, events: [SealedEvent]) = try? SealedObject.open(
                newest.sealed, at: newest.position, tail: tail, author: author, place: place, with: sealer),
            opened.object.problem == nil, !opened.object.isStopped,
            opened.events.allSatisfy({ if case .changed = $0 { true } else { false } })
        else { return nil }
        return opened.object.log
    }

    /// Objects that one thread opens at a time; fewer are not worth waking another.
    private static let piece: Int = 64

    /// Opens them on all processors. What comes out does not depend on how the work was shared.
    ///
    /// Each thread has keys and texts of its own, so that none waits for another at a count of references.
    static func all(_ entries: [IndexPage.Entry?], _ sealing: Sealing) -> [FirstLook?] {
        let unopened: [Unopened?] = entries.map { $0.flatMap(Unopened.init) }
        let pieces: Int = (entries.count + piece - 1) / piece
        let (keys, author): (SealedBucketKeys, AuthorID) = (sealing.keys, sealing.author)
        guard pieces > 1 else { return unopened.map { $0.flatMap { FirstLook($0, keys, author) } } }
        return .init(unsafeUninitializedCapacity: entries.count) { room, count in
            // Each place is written once, by the one thread that has its piece.
            nonisolated(unsafe) let places: UnsafeMutableBufferPointer<FirstLook?> = room
            DispatchQueue.concurrentPerform(iterations: pieces) { number in
                let own: SealedBucketKeys = keys.copied
                for place: Int in number * piece..<min(unopened.count, (number + 1) * piece) {
                    places.initializeElement(at: place, to: unopened[place].flatMap { FirstLook($0, own, author) })
                }
            }
            count = entries.count
        }
    }
}
