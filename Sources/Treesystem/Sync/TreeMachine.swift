package import ThicketClient
import ThicketProtocol
package import ThicketTree
package import ThicketTreeShape

/// A device's side of one tree: the skeleton, the queue of local changes, and the connection over which changes of
/// other devices arrive.
///
/// Pure: times, randomness and the store are passed in, and actions are returned. Each call is a turn: everything that
/// it decides is one transaction of the store, in which the app's delegate writes too. Only then are its actions
/// returned. If the transaction fails, the machine forgets the turn, reads the store again and hangs up.
///
/// Local changes are made in the store at once (`TreeSkeleton`) and wait in the queue. They are sent in batches, one at
/// a time (`TreeMachine+Push`). Changes of the server arrive on the socket (`TreeMachine+Channel`, `TreeMachine+Pull`),
/// with the device's own ones among them, and the skeleton shows them.
package struct TreeMachine {
    package let options: TreeOptions
    /// What this device shows, and its queue.
    var skeleton: TreeSkeleton
    package internal(set) var status: SyncStatus
    var link: SyncLink
    var channel = TreeChannel() {
        didSet { (skeleton.listing, skeleton.isChannelWhole) = (channel.scanID, channel.isWhole) }
    }
    var push = PushState()
    /// Lists of children that are read, in a lazy skeleton.
    package internal(set) var lists = ChildListing()
    var random: any RandomNumberGenerator & Sendable
    var delegate: (any TreeDelegate)?
    /// A turn failed: what is kept in memory is read again before the next one, which fails if that does.
    private var mustRead = false
    /// Whether the transaction must be on disk before the actions are performed.
    var isSending = false

    /// - Parameters:
    ///   - store: the tree's store. It belongs to one tree for good.
    ///   - keys: the keys of the account.
    ///   - delegate: called inside of the transactions; nil: no one.
    /// - Throws: `store`, also for a store of another tree.
    package init(
        store: TreeStore, keys: TreeKeys, options: TreeOptions, treeRandom: TreeRandom = .system,
        random: any RandomNumberGenerator & Sendable, delegate: (any TreeDelegate)? = nil
    ) throws(TreeError) {
        (self.options, self.delegate, self.random) = (options, delegate, random)
        skeleton = TreeSkeleton(
            store, keys, options.nameConflicts, treeRandom, options.identity, name: options.userName,
            branch: options.branch?.root, since: options.invite)
        try store.claim(keys.tree, options.branch)
        link = SyncLink(options.sync, try store.clientID(&self.random))
        skeleton.isLazy = try store.adopt(options.skeleton)
        status = options.sync.startsOnline ? .connecting : .offline(.requested)
        try read()
    }

    /// Reads from the store what is kept in memory.
    mutating func read() throws(TreeError) {
        try skeleton.read()
        channel.position = try store.namedValue("cv").flatMap { try? ChangeVersion($0) }
        push.inFlight = try store.sent().flatMap { sent in
            BatchID(text: sent.request).map { PushState.InFlight(id: $0, operations: sent.operations.map(\.operation)) }
        }
        lists.forgetRequest()
        mustRead = false
    }

    /// The tree.
    package var tree: TreePlace { skeleton.keyring.keys.tree }
    package var store: TreeStore { skeleton.store }
    package var queue: OperationQueue { skeleton.queue }

    // MARK: - Turns

    /// Runs a turn; if it fails, nothing has happened.
    package mutating func turn<Value>(
        _ time: TreeTime, _ body: (inout TreeMachine) throws(TreeError) -> Value
    ) throws(TreeError) -> (value: Value, actions: [TreeAction]) {
        begin(time)
        let before = status
        do throws(TreeError) {
            try store.begin()
            if mustRead { try read() }
            let value = try body(&self)
            try finish()
            defer { skeleton.endTurn() }
            return (value, skeleton.actions)
        } catch {
            store.rollback()
            skeleton.endTurn()
            status = before
            // Also a turn that wrote nothing may have begun something: a request, a question for a content.
            if skeleton.hasWritten || error.code == .store { forgetTurn() }
            throw error
        }
    }

    /// As `turn`, for what comes from outside: a failure causes actions, not an error.
    package mutating func quietTurn(
        _ time: TreeTime, _ body: (inout TreeMachine) throws(TreeError) -> Void
    ) -> [TreeAction] {
        do {
            return try turn(time) { machine throws(TreeError) in try body(&machine) }.actions
        } catch {
            return fail(error)
        }
    }

    /// Reads again what is kept in memory, now or before the next turn.
    private mutating func forgetTurn() {
        do { try read() } catch { mustRead = true }
    }

    private mutating func begin(_ time: TreeTime) {
        skeleton.time = TreeTime(monotonic: max(time.monotonic, skeleton.time.monotonic), unix: time.unix)
        (skeleton.hasWritten, isSending) = (false, false)
    }

    private mutating func finish() throws(TreeError) {
        try Letters.verify(&skeleton, isReading: channel.isReading)
        try skeleton.revealStranded()
        try pump()
        if link.isOpen { KeyQuestions.ask(&skeleton) }
        try skeleton.revealStranded()
        try MissingParents.report(&skeleton)
        pumpLists()
        try CaughtUp.report(&self)
        try callDelegate()
        updateStatus()
        try store.commit()
        if isSending { flushBeforeSending() }
        skeleton.actions += skeleton.events.map { .event($0) }
        channel.failures = 0
    }

    /// The turn is made. If it is not safe from a power failure, its request waits, so that the server never confirms
    /// what this device may forget.
    private mutating func flushBeforeSending() {
        do { try store.flush() } catch {
            skeleton.actions.removeAll { if case .batch = $0 { true } else { false } }
            push.inFlight?.isSent = false
            push.retryAt = skeleton.time.monotonic + push.backoff.next(random.next())
        }
    }

    /// The store or the delegate did not accept a turn of the network: its messages are lost, so the connection is made
    /// again and continues from the stored position.
    private mutating func fail(_ error: TreeError) -> [TreeAction] {
        channel.failures += 1
        let reason = OfflineReason.storeFailed(error.detail)
        // The turn's own actions are lost, perhaps a disconnection or the report of an ended token among them.
        skeleton.actions.append(.disconnect)
        link.endedToken = nil
        channel.disconnected()
        if case .parked = link.state {
        } else if channel.failures >= TreeChannel.failuresMax {
            link.state = .parked(reason)
        } else {
            lose(reason)
        }
        forgetTurn()
        updateStatus()
        defer { skeleton.endTurn() }
        return skeleton.actions
    }

    private mutating func callDelegate() throws(TreeError) {
        guard let delegate, !skeleton.events.isEmpty else { return }
        var transaction = TreeTransaction(skeleton)
        for event in skeleton.events {
            do { try delegate.apply(event, in: &transaction) } catch {
                throw TreeError(.store, "the app did not accept a change of the tree: \(type(of: error))")
            }
        }
    }

    mutating func updateStatus() {
        let next = currentStatus
        guard next != status else { return }
        status = next
        skeleton.actions.append(.status(next))
    }

    private var currentStatus: SyncStatus {
        switch link.state {
        case .parked(let reason), .waiting(_, let reason): return .offline(reason)
        case .connecting: return .connecting
        case .open: break
        }
        switch channel.phase {
        case .closed, .opening: return .connecting
        case .scanning(let scan), .listing(let scan): return .indexing(done: scan.read, of: scan.total)
        case .refused(_, let detail): return .offline(.unreachable(detail))
        case .catchingUp, .live: return queue.isEmpty ? .upToDate : .syncing(pending: queue.count)
        }
    }
}

/// Settings of a tree.
package struct TreeOptions: Sendable {
    /// How the connection is made.
    package var sync: SyncOptions
    /// What happens when a local node and another device's have one name.
    package var nameConflicts = NameConflictPolicy.rename
    /// How much a new device reads.
    package var skeleton = SkeletonPolicy.full
    /// The owner's keys for messages; nil: none are sent or opened.
    package var identity: MessageIdentity?
    /// The branch of another account that the tree is; nil: the own tree.
    package var branch: BranchName?
    /// The invitation to the branch: no older list is believed.
    package var invite: BranchInvite?
    /// The server's name for the account, where it is not the id.
    package var userName: String?

    package init(_ sync: SyncOptions) { self.sync = sync }
}

/// What happens when a node that is not uploaded yet has the name of another device's node.
public enum NameConflictPolicy: Sendable, Hashable {
    /// The local node gets a free name: `note 2.txt`.
    case rename
    /// Of two containers the local one is given up, and its children become children of the other one. A node with
    /// content, pairs or a burn time is never given up: it is renamed, and so is every node whose name a node with
    /// content has.
    case adopt
}
