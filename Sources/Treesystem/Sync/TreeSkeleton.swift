import ThicketTree
import ThicketTreeShape

/// What a device knows and shows of a tree, and the changes that it queues: the rules without the network.
///
/// Pure, a part of `TreeMachine`, which runs it inside of its turns. What a turn does is collected in `actions` and
/// `events` until the machine returns it.
struct TreeSkeleton {
    let store: TreeStore
    let nameConflicts: NameConflictPolicy
    var queue = OperationQueue()
    var keyring: TreeKeyring
    var time = TreeTime(monotonic: 0, unix: 0)
    var actions = [TreeAction]()
    /// What the turn tells the app, in order: first inside of the transaction, then as `TreeAction.event`.
    var events = [TreeEvent]()
    /// Whether the turn has written to the store.
    var hasWritten = false
    /// Whether records may be quarantined; asked for every node that arrives.
    var hasQuarantined = true
    /// Whether only a part of the tree is known.
    var isLazy = false
    /// The number of the listing of all nodes in progress: each row of the server that is written gets it.
    var listing: Int64?
    /// Whether this device has every node that can be the parent of a record that arrives.
    var hasAllParents: Bool { isChannelWhole && !isLazy }
    /// Whether everything up to the channel's position is in the store.
    var isChannelWhole = false
    /// Whether records may name parents that do not exist: searched at the end of a turn only then.
    var mayLackParents = true
    /// Nodes that are elsewhere on this device than their newest records say, by the parents that are waited for.
    var strayed = [NodeID: Set<NodeID>]()
    /// Most operations that wait (`OperationQueue.operationsMax`).
    var operationsMax = OperationQueue.operationsMax
    /// Local containers that are in the request in flight, and the nodes of other devices that have their names. Not in
    /// the store: after a restart such a container keeps its free name.
    var adoptions = [NodeID: NodeID]()
    /// Whether nodes may be concealed although no waiting removal conceals them: searched at the end of a turn only
    /// then, because that reads all concealed nodes.
    var mayBeStranded = true
    /// What is known for messages.
    var messages: MessageState
    /// Contents that may have to be merged.
    var merges = MergeState()
    /// What is known of shared branches.
    var branches: BranchBook

    init(
        _ store: TreeStore, _ keys: TreeKeys, _ nameConflicts: NameConflictPolicy, _ random: TreeRandom,
        _ identity: MessageIdentity?, name: String? = nil, branch root: NodeID? = nil, since invite: BranchInvite? = nil
    ) {
        (self.store, self.nameConflicts, messages) = (store, nameConflicts, MessageState(identity, name: name))
        branches = BranchBook(memberRoot: root, invite: invite)
        keyring = TreeKeyring(keys, random: random, identity: identity, branch: root)
    }

    /// Reads from the store what is kept in memory.
    mutating func read() throws(TreeError) {
        var fresh = OperationQueue()
        for operation in try store.operations() { fresh.add(operation) }
        // What was asked for is asked for again; a pause goes on.
        adoptions = [:]
        fresh.pauses = queue.pauses.filter { fresh[$0.key] != nil }
        queue = fresh
        (hasQuarantined, mayBeStranded, mayLackParents) = (try store.hasQuarantined(), true, true)
        strayed = try MissingParents.strayed(in: store)
        messages.awaiting = try store.awaiting()
        merges = try MergeState(store)
        try Branches.read(&self)
        keyring.forgetAll()
    }

    /// The turn is over, or nothing of it has happened.
    mutating func endTurn() { (actions, events) = ([], []) }

    // MARK: - Rows

    /// Writes a row and notes that the turn has written.
    mutating func write(_ row: NodeRow) throws(TreeError) {
        hasWritten = true
        if row.state.isConcealed { mayBeStranded = true }
        if row.state == .unopened { mayLackParents = true }
        try store.write(row)
    }

    mutating func write(_ operation: PendingOperation) throws(TreeError) {
        hasWritten = true
        queue.replace(operation)
        try store.write(queue[operation.id] ?? operation)
    }

    mutating func removeRow(_ id: NodeID) throws(TreeError) {
        hasWritten = true
        try store.removeRow(id)
        if isLazy { try store.setListed(.node(id), false) }
        if !branches.isEmpty { try Branches.removed(id, &self) }
        keyring.forget(id)
    }

    /// Whether all children of a place are known.
    func isListed(_ parent: NodeParent) throws(TreeError) -> Bool {
        if !isLazy { return true }
        return try store.isListed(parent)
    }

    /// The node with its path, as the app sees it; nil when it is not shown.
    func shown(_ row: NodeRow) throws(TreeError) -> (node: Node, path: TreePath)? {
        guard let node = row.node(isPending: queue.has(row.id)), let path = try store.path(of: .node(row.id)) else {
            return nil
        }
        return (node, path)
    }

    func shownRow(_ id: NodeID) throws(TreeError) -> NodeRow {
        guard let row = try store.row(id), row.state == .open else { throw .missing(id) }
        return row
    }
}
