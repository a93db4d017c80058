package import ThicketProtocol
import ThicketSealed

/// The client's side of the protocol for one account: several buckets over one connection.
///
/// Pure: time (milliseconds of a clock that never goes back), randomness and the store are passed in, and what to do
/// comes out as actions. Everything a turn decides is kept in the store, in one transaction, before its actions are
/// returned; if that fails the machine forgets the turn, goes offline and reads the store again.
///
/// For each object it keeps the ghost (the last agreed state), the change in flight (`pending`), and what was done
/// since (`later`). What the app sees is always ghost, then pending, then later; edits are carried over foreign
/// changes by exact transformation and never found again by comparing texts (docs/decisions/0005).
package struct SyncMachine {
    /// State of the connection.
    enum Link: Equatable {
        /// The app does not want one.
        case parked(OfflineReason)
        /// The next attempt is at this moment.
        case waiting(until: Int64, OfflineReason)
        case connecting(since: Int64)
        case open
    }

    /// An object with what follows from its record.
    struct Entity {
        var record: EntityRecord
        /// Ghost and pending.
        var base: JSONObject?
        /// Ghost, pending and later: what the app sees.
        var local: JSONObject?
        /// In a sealed bucket: all that follows from the record.
        var sealed: SealedObject?
        /// What the app wanted by pending and by later edits that are whole, before anything of others moved them; nil:
        /// nothing did. Not kept: after a restart the edits stand as they were carried.
        var wanted = Wanted()
    }

    /// Objects that edits of whole objects lead to.
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
    /// When bytes of something larger last moved, in or out.
    var lastMoved = Int64.min
    var lastReceived: Int64 = 0
    var heartbeat: Int64 = 0
    var heartbeatSentAt: Int64?
    var logLevel = 0
    var logLines = 0
    /// The last token whose end was told, and the last that was told to be good.
    var endedToken: Int?
    var provenToken: Int?
    /// Counts everything the app sees change; never goes back within one session.
    package internal(set) var revision: Int64 = 0
    package internal(set) var status: SyncStatus
    /// Buckets whose events somebody wants; nil: all. Of the others nobody is told what happens to their objects.
    package var heardBuckets: Set<BucketName>?

    // The turn being taken.
    var now: Int64 = 0
    var actions = [SyncAction]()
    var cache = [EntityAddress: Entity]()
    private var touched = [EntityAddress: Touch]()
    /// Objects of this turn that go to the store as they came. What is read before it ends is taken out of here.
    private var arrivals = Arrivals()
    private var touchedChannels = Set<Int>()
    /// Buckets whose removals, as far as they are known, another store has made.
    var forgottenRemovals = Set<BucketName>()
    /// Conflicts and alarms of this turn, and buckets of whose earlier ones somebody has been told.
    var untoldWrites = [UntoldWrite]()
    var toldBuckets = Set<BucketName>()
    /// What this turn forgets, as it was, by channel: it is so again if the store does not take the turn.
    var forgotten = [Int: UntoldEvents]()
    /// The connection as it was when the turn began.
    private var linkBefore = Link.parked(.requested)
    /// The turn sends a change for the first time.
    var sendsNewChange = false
    /// What the store holds could not be read after a failure: no connection before that.
    private var mustReload = false
    /// Actions of a turn that could not be returned because the turn threw.
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
            throw ClientError(.invalidName, "a made client id was refused")
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
        try readUntold(&channel)
        channelNumbers[record.name] = channels.count
        channels.append(channel)
    }

    // MARK: - Turns

    /// Runs `body`, keeps what it decided, and returns what to do.
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
            // Only now is the connection worth anything: a server that hangs up before is not called at full pace.
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

    /// As `turn`, for what comes from outside: a failing store becomes actions, not an error.
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

    /// There is something to keep.
    private var hasDecided: Bool {
        !touched.isEmpty || !touchedChannels.isEmpty || !arrivals.isEmpty || !untoldWrites.isEmpty
            || !toldBuckets.isEmpty || !forgottenRemovals.isEmpty
    }

    private mutating func keep() throws(ClientError) {
        guard hasDecided else { return }
        var batch = LocalBatch()
        batch.arrivals = arrivals.objects
        // In order: a turn writes the same pages each time it is taken.
        for (address, touch) in touched.sorted(by: { $0.key < $1.key }) {
            guard let entity = cache[address] else { continue }
            batch.entities.append(touch.write(address, entity.record))
        }
        for number in touchedChannels.sorted() { batch.buckets.append(channels[number].record) }
        (batch.told, batch.untold) = (toldBuckets, untoldWrites)
        batch.forgottenRemovals = forgottenRemovals
        batch.isOnDisk = sendsNewChange
        try store.commit(batch)
        storeBackoff.reset()
        touched.removeAll(keepingCapacity: true)
        touchedChannels.removeAll(keepingCapacity: true)
        arrivals.removeAll()
        (toldBuckets, untoldWrites, forgotten) = ([], [], [:])
        if cache.count > SyncLimits.cachedObjectsMax || !forgottenRemovals.isEmpty {
            cache.removeAll(keepingCapacity: true)
        }
        forgottenRemovals = []
    }

    /// An input was refused before it changed anything: nothing to undo but the reads.
    private mutating func forgetTurn() {
        overdue = actions
        actions = []
        guard hasDecided else { return }
        fail(ClientError(.store, "a turn was given up half way"))
    }

    /// The store did not take the turn: the same as a crash and a restart.
    private mutating func fail(_ error: ClientError) {
        touched.removeAll()
        touchedChannels.removeAll()
        arrivals.removeAll()
        for (number, known) in forgotten where channels.indices.contains(number) {
            channels[number].untold = known
        }
        (toldBuckets, untoldWrites, forgotten) = ([], [], [:])
        forgottenRemovals = []
        cache.removeAll()
        var undone = [SyncAction]()
        if linkBefore == .open || link == .open || isConnecting { undone.append(.disconnect) }
        var reason = OfflineReason.storeFailed(error.detail)
        // A session that shall not connect still shall not.
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

    /// Reads the buckets as the store has them; returns why it cannot.
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
                try readUntold(&renewed[number])
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

    /// Every bucket is caught up, as far as the server opens it.
    var isSettled: Bool { link == .open && !channels.isEmpty && channels.allSatisfy(\.isSettled) }

    var isFirstAttempt: Bool { backoff.failures == 0 && storeBackoff.failures == 0 }

    var isConnecting: Bool {
        if case .connecting = link { return true }
        return false
    }

    // MARK: - Objects

    /// Objects held in memory.
    package var cachedObjects: Int { cache.count }

    /// The object's record with what follows from it; an empty one when nothing is kept.
    mutating func entity(_ number: Int, _ key: EntityKey) throws(ClientError) -> Entity {
        let address = address(number, key)
        if let entity = cache[address] { return entity }
        // Reading alone must not fill the memory either; within a turn nothing is forgotten.
        if touched.isEmpty, cache.count >= SyncLimits.cachedObjectsMax { cache.removeAll(keepingCapacity: true) }
        let record: EntityRecord
        if let arrived = arrivals.remove(address) {
            record = try arrived.record()
            // Kept as any other object of the turn from now on.
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
            throw ClientError(.store, "the edits kept for an object do not fit it")
        }
        cache[address] = entity
        return entity
    }

    /// Takes the object's new state into the turn.
    ///
    /// - Parameters:
    ///   - ghostStep: all that happened to the ghost since the last `put`; nil: it is another one.
    ///   - laterStep: all that happened to the edits since the last `put`; nil: they are others.
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

    /// Nothing is known here of the object, whatever the store knows.
    func isUnseen(_ address: EntityAddress) -> Bool { cache[address] == nil && !arrivals.contains(address) }

    /// Takes an object into the turn that neither the store nor anything here knows.
    mutating func arrive(_ object: NewObject) {
        arrivals.append(object)
        revision += 1
    }

    /// The same, where a page may list an object twice.
    /// - Returns: false when something is known of it here.
    mutating func arriveIfUnseen(_ object: consuming NewObject) -> Bool {
        guard cache[object.address] == nil, arrivals.appendIfNew(object) else { return false }
        revision += 1
        return true
    }

    /// Somebody wants to be told what happens in the bucket.
    func isHeard(_ bucket: BucketName) -> Bool { heardBuckets?.contains(bucket) ?? true }

    mutating func touchChannel(_ number: Int) { touchedChannels.insert(number) }

    mutating func adoptLink(_ link: Link) { self.link = link }
}

/// Sixteen lower-case hex digits.
func hexText(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
