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
/// Local changes are made in the store at once (`TreeMachine+Local`) and wait in the queue. They are sent in batches,
/// one at a time (`TreeMachine+Push`). Changes of the server arrive on the socket (`TreeMachine+Channel`,
/// `TreeMachine+Pull`), with the device's own ones among them.
package struct TreeMachine {
    package let store: TreeStore
    package let options: TreeOptions
    package internal(set) var queue = OperationQueue()
    package internal(set) var status: SyncStatus
    var link: SyncLink
    var keyring: TreeKeyring
    var channel = TreeChannel()
    var push = PushState()
    var random: any RandomNumberGenerator & Sendable
    var delegate: (any TreeDelegate)?
    var time = TreeTime(monotonic: 0, unix: 0)
    var actions = [TreeAction]()
    /// What the turn tells the app, in order: first inside of the transaction, then as `TreeAction.event`.
    var events = [TreeEvent]()
    /// A turn failed: what is kept in memory is read again before the next one, which fails if that does.
    private var mustRead = false
    /// Whether the turn has written to the store.
    var hasWritten = false
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
        (self.store, self.options, self.delegate, self.random) = (store, options, delegate, random)
        keyring = TreeKeyring(keys, random: treeRandom)
        try Self.claim(store, keys.tree)
        link = SyncLink(options.sync, try Self.clientID(store, &self.random))
        status = options.sync.startsOnline ? .connecting : .offline(.requested)
        try read()
    }

    /// A store belongs to one tree.
    private static func claim(_ store: TreeStore, _ tree: TreePlace) throws(TreeError) {
        let name = "\(tree.app.text)/\(tree.owner.text)"
        guard let known = try store.namedValue("tree") else { return try store.setNamedValue("tree", name) }
        guard known.utf8.elementsEqual(name.utf8) else {
            throw TreeError(.store, "the local tree belongs to another account or app")
        }
    }

    private static func clientID(
        _ store: TreeStore, _ random: inout any RandomNumberGenerator & Sendable
    ) throws(TreeError) -> ClientID {
        if let known = try store.namedValue("client"), let id = try? ClientID(known) { return id }
        let fresh = "thicket-tree-" + [random.next(), random.next()].map { String($0, radix: 16) }.joined()
        guard let id = try? ClientID(fresh) else { preconditionFailure("letters and digits are a client id") }
        try store.setNamedValue("client", fresh)
        return id
    }

    /// Reads from the store what is kept in memory.
    mutating func read() throws(TreeError) {
        queue = OperationQueue()
        for operation in try store.operations() { queue.add(operation) }
        channel.position = try store.namedValue("cv").flatMap { try? ChangeVersion($0) }
        push.inFlight = try store.sent().flatMap { sent in
            BatchID(text: sent.request).map { PushState.InFlight(id: $0, operations: sent.operations.map(\.operation)) }
        }
        push.asked = []
        keyring.forgetAll()
        mustRead = false
    }

    /// The tree.
    package var tree: TreePlace { keyring.keys.tree }

    // MARK: - Turns

    /// Runs a turn; if it fails, nothing has happened.
    package mutating func turn<Value>(
        _ time: TreeTime, _ body: (inout TreeMachine) throws(TreeError) -> Value
    ) throws(TreeError) -> (value: Value, actions: [TreeAction]) {
        begin(time)
        do throws(TreeError) {
            try store.begin()
            if mustRead { try read() }
            let value = try body(&self)
            try finish()
            defer { (actions, events) = ([], []) }
            return (value, actions)
        } catch {
            store.rollback()
            (actions, events) = ([], [])
            if hasWritten { forgetTurn() }
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
        self.time = TreeTime(monotonic: max(time.monotonic, self.time.monotonic), unix: time.unix)
        (hasWritten, isSending) = (false, false)
    }

    private mutating func finish() throws(TreeError) {
        try revealStranded()
        try pump()
        try revealStranded()
        try callDelegate()
        updateStatus()
        try store.commit(isOnDisk: isSending)
        actions += events.map { .event($0) }
        channel.failures = 0
    }

    /// The store or the delegate did not accept a turn of the network: its messages are lost, so the connection is made
    /// again and continues from the stored position.
    private mutating func fail(_ error: TreeError) -> [TreeAction] {
        channel.failures += 1
        let reason = OfflineReason.storeFailed(error.detail)
        if link.isOpen || link.isConnecting { actions.append(.disconnect) }
        channel.disconnected()
        if case .parked = link.state {
        } else if channel.failures >= TreeChannel.failuresMax {
            link.state = .parked(reason)
        } else {
            lose(reason)
        }
        forgetTurn()
        updateStatus()
        defer { actions = [] }
        return actions
    }

    private mutating func callDelegate() throws(TreeError) {
        guard let delegate, !events.isEmpty else { return }
        var transaction = TreeTransaction(store)
        for event in events {
            do { try delegate.apply(event, in: &transaction) } catch {
                throw TreeError(.store, "the app did not accept a change of the tree: \(type(of: error))")
            }
        }
    }

    mutating func updateStatus() {
        let next = currentStatus
        guard next != status else { return }
        status = next
        actions.append(.status(next))
    }

    private var currentStatus: SyncStatus {
        switch link.state {
        case .parked(let reason), .waiting(_, let reason): return .offline(reason)
        case .connecting: return .connecting
        case .open: break
        }
        switch channel.phase {
        case .closed, .opening: return .connecting
        case .scanning(let scan): return .indexing(done: scan.read, of: scan.total)
        case .refused(_, let detail): return .offline(.unreachable(detail))
        case .catchingUp, .live: return queue.isEmpty ? .upToDate : .syncing(pending: queue.count)
        }
    }

    /// Writes a row and notes that the turn has written.
    mutating func write(_ row: NodeRow) throws(TreeError) {
        hasWritten = true
        try store.write(row)
    }

    mutating func write(_ operation: PendingOperation) throws(TreeError) {
        hasWritten = true
        queue.replace(operation)
        try store.write(queue[operation.id] ?? operation)
    }

    /// The node with its path, as the app sees it; nil when it is not shown.
    func shown(_ row: NodeRow) throws(TreeError) -> (node: Node, path: TreePath)? {
        guard let node = row.node(isPending: queue.has(row.id)), let path = try store.path(of: .node(row.id)) else {
            return nil
        }
        return (node, path)
    }
}

/// Settings of a tree.
package struct TreeOptions: Sendable {
    /// How the connection is made.
    package var sync: SyncOptions
    /// What happens when a local node and another device's have one name.
    package var nameConflicts = NameConflictPolicy.rename
    /// The server's name for the owner, where it is not the id.
    package var userName: String?

    package init(_ sync: SyncOptions) { self.sync = sync }
}

/// What happens when a node that is not uploaded yet has the name of another device's node.
public enum NameConflictPolicy: Sendable, Hashable {
    /// The local node gets a free name: `note 2.txt`.
    case rename
    /// The local node is given up, and its children become children of the other node: for containers. A local node
    /// with content is renamed.
    case adopt
}
