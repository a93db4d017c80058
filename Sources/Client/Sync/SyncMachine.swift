package import ThicketProtocol
import ThicketSealed

/// The client's side of the protocol for one account: several buckets over one connection.
///
/// Pure: the time (milliseconds of a monotonic clock), randomness and the store are passed in, and actions are
/// returned. Everything a turn decides is stored, in one transaction, before its actions are returned; if that fails,
/// the machine drops the turn, goes offline and reads the store again.
///
/// For each object it holds the ghost (the newest state known to be on the server), the change in flight (`pending`),
/// and the edits made since (`later`). The app always sees the ghost with `pending` and `later` applied, in this order.
/// Edits are rebased over foreign changes by exact transformation, never by comparing texts (docs/decisions/0005).
package struct SyncMachine {
    /// The state of the connection.
    enum Link: Equatable {
        /// The app does not want a connection, or the client must not make one.
        case parked(OfflineReason)
        /// The next attempt is at this time.
        case waiting(until: Int64, OfflineReason)
        case connecting(since: Int64)
        case open
    }

    /// An object's record with the values derived from it.
    struct Entity {
        var record: EntityRecord
        /// The ghost with `pending` applied.
        var base: JSONObject?
        /// The ghost with `pending` and `later` applied: what the app sees.
        var local: JSONObject?
        /// In a sealed bucket: the state derived from the record.
        var sealed: SealedObject?
        /// The states that the app wanted by pending and by later edits that replace the whole object, before changes
        /// of others moved them; nil: no change did. Not stored: after a restart the rebased edits are used.
        var wanted = Wanted()
    }

    /// The objects that result from edits of whole objects.
    struct Wanted {
        var pending: JSONObject?
        var later: JSONObject?
    }

    package var options: SyncOptions
    let store: any LocalStore
    var random: any RandomNumberGenerator & Sendable
    package private(set) var clientID: ClientID

    var link: Link
    var channels = [Channel]()
    var channelNumbers = [BucketName: Int]()
    var backoff = Backoff(
        shortest: SyncLimits.backoffMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    private var storeBackoff = Backoff(
        shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    var lastSent: Int64 = 0
    /// When bytes of an incomplete message were last sent or received.
    var lastMoved = Int64.min
    var lastReceived: Int64 = 0
    var heartbeat: Int64 = 0
    var heartbeatSentAt: Int64?
    var logLevel = 0
    var logLines = 0
    /// The last token reported as expired, and the last one reported as valid.
    var endedToken: Int?
    var provenToken: Int?
    /// Counts every change that the app sees; never decreases within a session.
    package internal(set) var revision: Int64 = 0
    package internal(set) var status: SyncStatus
    /// The buckets whose events have a reader; nil: all. Changes of objects are not reported for other buckets.
    package var heardBuckets: Set<BucketName>?

    // State of the current turn.
    var now: Int64 = 0
    var actions = [SyncAction]()
    var cache = [EntityAddress: Entity]()
    private var touched = [EntityAddress: Touch]()
    /// Objects of this turn that are stored as received. An object that is read before the turn ends is taken out.
    private var arrivals = Arrivals()
    private var touchedChannels = Set<Int>()
    /// Buckets whose known removals belong to another store.
    var forgottenRemovals = Set<BucketName>()
    /// The conflicts and integrity reports of this turn, and the buckets whose earlier ones have been delivered.
    var undeliveredWrites = [UndeliveredWrite]()
    var toldBuckets = Set<BucketName>()
    /// The undelivered events that this turn drops, by channel; restored if the store does not accept the turn.
    var forgotten = [Int: UndeliveredEvents]()
    /// The connection at the beginning of the turn.
    private var linkBefore = Link.parked(.requested)
    /// Whether the turn sends a change for the first time.
    var sendsNewChange = false
    /// The store could not be read after a failure: no connection is made before it can.
    private var mustReload = false
    /// Actions that could not be returned because their turn threw.
    private var overdue = [SyncAction]()

    /// - Throws: `store` when the store cannot be read.
    package init(
        options: SyncOptions, store: any LocalStore, random: any RandomNumberGenerator & Sendable
    ) throws(ClientError) {
        self.options = options
        self.store = store
        var random = random
        let fresh = "thicket-" + hexText(random.next()) + hexText(random.next())
        guard let freshID = try? ClientID(fresh) else {
            throw ClientError(.invalidName, "the generated client id is invalid")
        }
        clientID = try store.clientID(fresh: freshID)
        self.random = random
        let reason = OfflineReason.requested
        link = options.startsOnline ? .waiting(until: 0, .unreachable("not yet tried")) : .parked(reason)
        status = options.startsOnline ? .connecting : .offline(reason)
        for record in try store.buckets() { try addChannel(record) }
    }

    mutating func addChannel(_ record: BucketRecord) throws(ClientError) {
        var channel = Channel(record: record)
        try readEdited(&channel)
        try readUndelivered(&channel)
        channelNumbers[record.name] = channels.count
        channels.append(channel)
    }

    // MARK: - Turns

    /// Runs `body`, stores what it decided, and returns the actions.
    mutating func turn(
        _ now: Int64, _ body: (inout SyncMachine) throws(ClientError) -> Void
    ) throws(ClientError) -> [SyncAction] {
        self.now = max(self.now, now)
        actions = overdue
        overdue = []
        linkBefore = link
        sendsNewChange = false
        do throws(ClientError) {
            let unread = mustReload ? reload() : nil
            try body(&self)
            if let unread, link == .open || isConnecting { throw unread }
            for number in channels.indices { try pump(number) }
            // The back-off is reset only now: a server that closes connections earlier must not be contacted at full
            // rate.
            if isSettled, !channels.contains(where: { !$0.inFlight.isEmpty }) { backoff.reset() }
            updateStatus()
            try keep()
        } catch {
            if error.code == .store { fail(error) } else { forgetTurn() }
            throw error
        }
        let done = actions
        actions = []
        return done
    }

    /// As `turn`, for external events: a failing store causes actions, not an error.
    mutating func quietTurn(
        _ now: Int64, _ body: (inout SyncMachine) throws(ClientError) -> Void
    ) -> [SyncAction] {
        do {
            return try turn(now, body)
        } catch {
            if error.code != .store { fail(error) }
            defer { overdue = [] }
            return overdue
        }
    }

    /// Whether the turn has something to store.
    private var hasDecided: Bool {
        !touched.isEmpty || !touchedChannels.isEmpty || !arrivals.isEmpty || !undeliveredWrites.isEmpty
            || !toldBuckets.isEmpty || !forgottenRemovals.isEmpty
    }

    private mutating func keep() throws(ClientError) {
        guard hasDecided else { return }
        var batch = LocalBatch()
        batch.arrivals = arrivals.objects
        // Sorted, so that a repeated turn writes the same pages.
        for (address, touch) in touched.sorted(by: { $0.key < $1.key }) {
            guard let entity = cache[address] else { continue }
            batch.entities.append(touch.write(address, entity.record))
        }
        for number in touchedChannels.sorted() { batch.buckets.append(channels[number].record) }
        (batch.told, batch.undelivered) = (toldBuckets, undeliveredWrites)
        batch.forgottenRemovals = forgottenRemovals
        batch.isOnDisk = sendsNewChange
        try store.commit(batch)
        storeBackoff.reset()
        touched.removeAll(keepingCapacity: true)
        touchedChannels.removeAll(keepingCapacity: true)
        arrivals.removeAll()
        (toldBuckets, undeliveredWrites, forgotten) = ([], [], [:])
        if cache.count > SyncLimits.cachedObjectsMax || !forgottenRemovals.isEmpty {
            cache.removeAll(keepingCapacity: true)
        }
        forgottenRemovals = []
    }

    /// An input was rejected before it changed anything: only reads need undoing.
    private mutating func forgetTurn() {
        overdue = actions
        actions = []
        guard hasDecided else { return }
        fail(ClientError(.store, "a turn was aborted"))
    }

    /// The store did not accept the turn: handled like a crash and a restart.
    private mutating func fail(_ error: ClientError) {
        touched.removeAll()
        touchedChannels.removeAll()
        arrivals.removeAll()
        for (number, known) in forgotten where channels.indices.contains(number) {
            channels[number].undelivered = known
        }
        (toldBuckets, undeliveredWrites, forgotten) = ([], [], [:])
        forgottenRemovals = []
        cache.removeAll()
        var undone = [SyncAction]()
        if linkBefore == .open || link == .open || isConnecting { undone.append(.disconnect) }
        var reason = OfflineReason.storeFailed(error.detail)
        // A session that must not connect stays offline.
        if case .parked(let parked) = link {
            reason = parked
        } else {
            link = .waiting(until: now + storeBackoff.next(random.next()), reason)
        }
        for number in channels.indices {
            channels[number].disconnected()
            channels[number].sealing?.hasReadOn = false
        }
        _ = reload()
        if status != .offline(reason) {
            status = .offline(reason)
            undone.append(.status(status))
        }
        overdue = undone
        actions = []
    }

    /// Reads the buckets from the store; returns the error when that fails.
    private mutating func reload() -> ClientError? {
        var renewed = channels
        mustReload = true
        do throws(ClientError) {
            let records = try store.buckets()
            for number in renewed.indices {
                let name = renewed[number].record.name
                renewed[number].record =
                    records.first { $0.name == name }
                    ?? BucketRecord(name: name, isSealed: renewed[number].record.isSealed)
                if !renewed[number].record.isSealed { renewed[number].sealing = nil }
                try readEdited(&renewed[number])
                try readUndelivered(&renewed[number])
            }
        } catch {
            return error
        }
        channels = renewed
        mustReload = false
        return nil
    }

    private func readEdited(_ channel: inout Channel) throws(ClientError) {
        channel.forgetNotes()
        for object in try store.edited(channel.record.name) { channel.note(object) }
    }

    /// Whether every bucket has caught up, as far as the server opens it.
    var isSettled: Bool { link == .open && !channels.isEmpty && channels.allSatisfy(\.isSettled) }

    var isFirstAttempt: Bool { backoff.failures == 0 && storeBackoff.failures == 0 }

    var isConnecting: Bool {
        if case .connecting = link { return true }
        return false
    }

    // MARK: - Objects

    /// Number of objects in memory.
    package var cachedObjects: Int { cache.count }

    /// The object's record with derived values; an empty record when the store has none.
    mutating func entity(_ number: Int, _ key: EntityKey) throws(ClientError) -> Entity {
        let address = address(number, key)
        if let entity = cache[address] { return entity }
        // Reads alone must not fill the memory either; within a turn nothing is dropped.
        if touched.isEmpty, cache.count >= SyncLimits.cachedObjectsMax { cache.removeAll(keepingCapacity: true) }
        let record: EntityRecord
        if let arrived = arrivals.remove(address) {
            record = try arrived.record()
            // From now on stored like any other object of the turn.
            touched[address, default: Touch()].add([.ghost, .marks], nil, nil)
        } else {
            record = try store.entity(address) ?? EntityRecord()
        }
        let entity: Entity
        if let sealing = channels[number].sealing {
            entity = try sealedEntity(record, key, sealing)
            cache[address] = entity
            return entity
        }
        do {
            let base = try Edits.apply(record.edits.pending?.edit, to: record.ghost.object)
            entity = Entity(record: record, base: base, local: try Edits.apply(record.edits.later, to: base))
        } catch {
            throw ClientError(.store, "the stored edits of an object do not fit it")
        }
        cache[address] = entity
        return entity
    }

    /// Records the object's new state in the turn.
    ///
    /// - Parameters:
    ///   - ghostStep: the only change of the ghost since the last `put`; nil: it changed in another way.
    ///   - laterStep: the only change of the edits since the last `put`; nil: they changed in another way.
    mutating func put(
        _ number: Int, _ key: EntityKey, _ entity: Entity, _ parts: EntityParts, ghostStep: GhostStep? = nil,
        laterStep: ObjectDiff? = nil
    ) {
        let address = address(number, key)
        var entity = entity
        var parts = parts
        if entity.record.isLive != (entity.local != nil) {
            entity.record.isLive = entity.local != nil
            parts.insert(.marks)
        }
        cache[address] = entity
        touched[address, default: Touch()].add(parts, ghostStep, laterStep)
        guard parts.contains(.edits) else { return }
        channels[number].note(EditedKey(key, entity.record.edits))
    }

    func address(_ number: Int, _ key: EntityKey) -> EntityAddress {
        EntityAddress(bucket: channels[number].record.name, key: key)
    }

    /// Whether the object is not in memory, whatever the store has.
    func isUnseen(_ address: EntityAddress) -> Bool { cache[address] == nil && !arrivals.contains(address) }

    /// Adds an object to the turn that is neither in the store nor in memory.
    mutating func arrive(_ object: NewObject) {
        arrivals.append(object)
        revision += 1
    }

    /// As above, for pages that may list an object twice.
    ///
    /// - Returns: false when the object is already in memory.
    mutating func arriveIfUnseen(_ object: consuming NewObject) -> Bool {
        guard cache[object.address] == nil, arrivals.appendIfNew(object) else { return false }
        revision += 1
        return true
    }

    /// Whether the bucket has a reader.
    func isHeard(_ bucket: BucketName) -> Bool { heardBuckets?.contains(bucket) ?? true }

    mutating func touchChannel(_ number: Int) { touchedChannels.insert(number) }

    mutating func adoptLink(_ link: Link) { self.link = link }
}

/// Sixteen lower-case hexadecimal digits.
func hexText(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
