import ThicketProtocol
import ThicketSealed

/// The additional state of a sealed bucket's channel: its keys, and the tasks for all of its objects.
struct Sealing {
    let keys: SealedBucketKeys
    /// This device's id, as its operations carry it.
    let author: AuthorID
    /// The server's key of the object `heads`.
    let headsKey: EntityKey?
    /// The objects to compact, and when.
    var compactions = [EntityKey: Int64]()
    /// The compactions in flight, with their ccids.
    var compacting = [EntityKey: String]()
    /// Objects that have advanced since this device last wrote the object `heads`.
    var changed = ChangedKeys()
    /// Objects whose user took the server's state before everything was read; only afterwards can `heads` be compared
    /// with them.
    var corrections = ChangedKeys()
    /// When `heads` may be written next; nil: nothing has changed.
    var headsDue: Int64?
    /// The content of `heads` that was checked last.
    var headsSeen: JSONObject?
    /// The server reported the bucket as open, and the app was notified.
    var isModeReported = false
    /// The server reported the bucket as sealed.
    var isServed = false
    /// Objects that an older program could not read have been checked.
    var hasReadOn = false
    /// Objects that the last index does not list although no removal is known: the changes up to that index may contain
    /// one.
    var missing = Set<EntityKey>()
    private var sealers = [EntityKey: ObjectSealer]()

    /// Longest time in milliseconds that a device waits before it compacts in place of another device.
    static let compactionWaitMilliseconds: Int64 = 30_000
    /// Most objects whose keys are held; all are dropped when the number is exceeded.
    private static let sealersMax = 1_024

    init(keys: SealedBucketKeys, author: AuthorID) {
        self.keys = keys
        self.author = author
        headsKey = try? EntityKey(keys.serverKey(of: SealedHeads.appKey))
    }

    /// When the next task is due; nil: none is.
    var due: Int64? {
        let compaction: Int64? = compactions.values.min()
        guard let headsDue else { return compaction }
        return min(headsDue, compaction ?? headsDue)
    }

    func place(_ key: EntityKey) -> SealedPlace { keys.place(serverKey: key.text) }

    /// Whether an object's own name is a valid app key and matches the server's key of the object. A holder of the keys
    /// can write anything into a snapshot; a wrong name would present one object as another.
    static func isNamed(_ log: SealedLog, _ serverKey: String, by keys: SealedBucketKeys) -> Bool {
        guard (try? EntityKey(log.appKey)) != nil else { return false }
        return keys.serverKey(of: log.appKey).utf8.elementsEqual(serverKey.utf8)
    }

    func sealer(_ key: EntityKey) throws(ClientError) -> ObjectSealer {
        if let known = sealers[key] { return known }
        do { return try keys.sealer(serverKey: key.text) } catch {
            throw ClientError(.sealed, "an object's key could not be derived: \(error)")
        }
    }

    /// As `sealer`, and holds the sealer. Call it in place: with a second copy of this struct alive, each call would
    /// copy the table.
    mutating func keptSealer(_ key: EntityKey) throws(ClientError) -> ObjectSealer {
        if let known = sealers[key] { return known }
        let made = try sealer(key)
        if sealers.count >= Self.sealersMax { sealers.removeAll(keepingCapacity: true) }
        sealers[key] = made
        return made
    }

    /// Compactions in flight get no answer on this connection any more.
    mutating func disconnected() {
        compacting.removeAll()
        missing = []
    }

    mutating func recordChanged(_ key: EntityKey) { changed.insert(key) }

    /// Includes the object in the next write of `heads`.
    mutating func includeInHeads(
        _ key: EntityKey, now: Int64, _ random: inout any RandomNumberGenerator & Sendable
    ) {
        recordChanged(key)
        guard headsDue == nil else { return }
        let interval = SealedHeads.intervalSeconds * 1_000
        // The first write happens within the hour, at a random time so that devices do not coincide.
        headsDue = now + interval / 4 + Int64(random.next() % UInt64(interval / 2))
    }

    /// Plans a compaction for an object with this many operations after its snapshot.
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

/// The content of a sealed bucket's change, parsed from its stored bytes.
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

    /// The sealed operation, if the diff is exactly one insertion at index 0.
    static func insertion(_ diff: ObjectDiff) -> [UInt8]? {
        guard diff.operations.count == 1, case .list(let list)? = diff["d"], list.operations.count == 1,
            list.operations[0].index == 0, case .insert(.string(let text)) = list.operations[0].operation
        else { return nil }
        return SealedObject.bytes(of: text)
    }
}
