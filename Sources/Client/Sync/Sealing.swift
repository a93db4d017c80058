import ThicketProtocol
import ThicketSealed

/// What a channel of a sealed bucket has besides: its keys, and what is to be done for all of its objects.
struct Sealing {
    let keys: SealedBucketKeys
    /// This device, as it signs its operations.
    let author: AuthorID
    /// The key under which the server knows `heads`.
    let headsKey: EntityKey?
    /// Objects to compact: when.
    var compactions = [EntityKey: Int64]()
    /// Compactions on their way: their ccids.
    var compacting = [EntityKey: String]()
    /// Objects that went on since this device last wrote into the object `heads`.
    var changed = ChangedKeys()
    /// Objects whose user took what the server showed before all was read: whether `heads` contradicts that, shows
    /// then.
    var corrections = ChangedKeys()
    /// When `heads` may be written next; nil: nothing has changed.
    var headsDue: Int64?
    /// The content of `heads` that was looked at last.
    var headsSeen: JSONObject?
    /// The server said that the bucket is open, and the app was told.
    var isModeTold = false
    /// The server said that the bucket is sealed.
    var isServed = false
    /// What earlier programs had to leave was looked at.
    var hasReadOn = false
    /// Objects that the last index does not list, and that nobody is known to have deleted: the changes that led there
    /// may still tell.
    var missing = Set<EntityKey>()
    private var sealers = [EntityKey: ObjectSealer]()

    /// Milliseconds that a device waits at most before it compacts in the place of others.
    static let compactionWaitMilliseconds: Int64 = 30_000
    /// Objects whose keys are held; forgotten all at once when there are more.
    private static let sealersMax = 1_024

    init(keys: SealedBucketKeys, author: AuthorID) {
        self.keys = keys
        self.author = author
        headsKey = try? EntityKey(keys.serverKey(of: SealedHeads.appKey))
    }

    /// When something is due by itself; nil: nothing is.
    var due: Int64? {
        let compaction: Int64? = compactions.values.min()
        guard let headsDue else { return compaction }
        return min(headsDue, compaction ?? headsDue)
    }

    func place(_ key: EntityKey) -> SealedPlace { keys.place(serverKey: key.text) }

    /// Whether what an object calls itself is a key that an app may use, and the one by which the server knows the
    /// object. Whoever has the keys may write anything into a snapshot; another name in it would show one object as
    /// another.
    static func isNamed(_ log: SealedLog, _ serverKey: String, by keys: SealedBucketKeys) -> Bool {
        guard (try? EntityKey(log.appKey)) != nil else { return false }
        return keys.serverKey(of: log.appKey).utf8.elementsEqual(serverKey.utf8)
    }

    func sealer(_ key: EntityKey) throws(ClientError) -> ObjectSealer {
        if let known = sealers[key] { return known }
        do { return try keys.sealer(serverKey: key.text) } catch {
            throw ClientError(.sealed, "an object's key could not be made: \(error)")
        }
    }

    /// The same, kept for the next time. In its place: a copy of this struct beside it would make each call copy the
    /// table.
    mutating func keptSealer(_ key: EntityKey) throws(ClientError) -> ObjectSealer {
        if let known = sealers[key] { return known }
        let made = try sealer(key)
        if sealers.count >= Self.sealersMax { sealers.removeAll(keepingCapacity: true) }
        sealers[key] = made
        return made
    }

    /// What was on its way is not heard of again on this connection.
    mutating func disconnected() {
        compacting.removeAll()
        missing = []
    }

    mutating func noteChanged(_ key: EntityKey) { changed.insert(key) }

    /// The object is to be told of in `heads`.
    mutating func noteForHeads(
        _ key: EntityKey, now: Int64, _ random: inout any RandomNumberGenerator & Sendable
    ) {
        noteChanged(key)
        guard headsDue == nil else { return }
        let interval = SealedHeads.intervalSeconds * 1_000
        // The first within the hour, at no moment that devices share.
        headsDue = now + interval / 4 + Int64(random.next() % UInt64(interval / 2))
    }

    /// An object has so many operations behind its snapshot.
    mutating func planCompaction(
        _ key: EntityKey, ownPosition: Int?, tail: Int, now: Int64,
        _ random: inout any RandomNumberGenerator & Sendable
    ) {
        switch SealedObject.compaction(ownPosition: ownPosition, tail: tail) {
        case .none: if tail < SealedLimits.windowPositions, !compactions.isEmpty { compactions[key] = nil }
        case .now: compactions[key] = now
        case .afterRandomWait:
            guard compactions[key] == nil else { break }
            compactions[key] = now + 1 + Int64(random.next() % UInt64(Self.compactionWaitMilliseconds))
        }
    }
}

/// What a change of a sealed bucket says, read back from the bytes that were kept of it.
struct SealedChange {
    /// The sealed operation of an insertion.
    let operation: [UInt8]?
    /// The sealed snapshot of a creation, as text.
    let snapshot: String?

    init(_ bytes: [UInt8]) {
        let diff = (try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling))?["v"]
        operation = diff?["d"]?["v"]?["0"]?["v"]?.stringValue.map { SealedObject.bytes(of: $0) }
        snapshot = diff?["s"]?["v"]?["0"]?.stringValue
    }

    /// The sealed operation, if the diff is one insertion at index 0 and nothing else.
    static func insertion(_ diff: ObjectDiff) -> [UInt8]? {
        guard diff.operations.count == 1, case .list(let list)? = diff["d"], list.operations.count == 1,
            list.operations[0].index == 0, case .insert(.string(let text)) = list.operations[0].operation
        else { return nil }
        return SealedObject.bytes(of: text)
    }
}
