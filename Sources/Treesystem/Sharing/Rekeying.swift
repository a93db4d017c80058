import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Eager re-keys (treesystem 4.10; decision 0067): after a change of the list, each node of the branch gets another
/// key, and its content is sealed again under another one.
///
/// The nodes that are left are in the store, and a bounded number of them has an operation in the queue. Such an
/// operation writes nothing that a user sees: it is sealed from the newest record of its node, so that neither a change
/// of another device nor one of this device is lost. A node is done when the server has confirmed it.
enum Rekeying {
    /// Operations in the queue at a time.
    static let queuedMax = 200
    private static let name = "rekey"

    // MARK: - Beginning

    /// A re-key begins when the server has a change of the list.
    static func plan(_ root: NodeID, after operation: OperationID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        let epoch = skeleton.branches.known[root]?.state.list?.epoch ?? 0
        var state = skeleton.branches.rekeys[root] ?? RekeyState(operation: nil, epoch: epoch)
        // One that runs goes on behind the change, with all nodes.
        if state.operation == nil { state.epoch = epoch }
        state.operation = operation
        skeleton.branches.rekeys[root] = state
        try write(&skeleton)
    }

    private static func write(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        try skeleton.store.setNamedValue(name, RekeyState.stored(skeleton.branches.rekeys))
    }

    /// Reads from the store what is kept in memory.
    static func read(_ store: TreeStore) throws(TreeError) -> [NodeID: RekeyState] {
        var states = RekeyState.states(stored: try store.namedValue(name))
        for root in states.keys { states[root]?.left = try store.rekeys.count(of: root) }
        return states
    }

    /// Begins what can begin, and queues what is next. Runs at the end of each turn.
    static func advance(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        if skeleton.branches.rekeys.isEmpty { return }
        for (root, state) in skeleton.branches.rekeys.sorted(by: { $0.key < $1.key }) {
            guard let list = skeleton.branches.known[root]?.state.list else {
                if state.operation.map({ skeleton.queue[$0] == nil }) ?? true { try end(root, &skeleton) }
                continue
            }
            if let operation = state.operation {
                guard skeleton.queue[operation] == nil else { continue }
                // Without another epoch the change was given up.
                guard list.epoch > state.epoch else {
                    try goOn(root, state, &skeleton)
                    continue
                }
                try begin(root, list.epoch, &skeleton)
            }
            try queueNext(root, &skeleton)
        }
    }

    /// The change behind which a re-key was to begin again was given up: one that ran before goes on.
    private static func goOn(_ root: NodeID, _ state: RekeyState, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        if state.left == 0 { return try end(root, &skeleton) }
        skeleton.branches.rekeys[root]?.operation = nil
        try write(&skeleton)
    }

    private static func begin(_ root: NodeID, _ epoch: UInt32, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        for id in try skeleton.store.branch(of: root) {
            // What the server does not have yet is sealed with the new keys.
            guard let row = try skeleton.store.row(id), row.version > 0 else { continue }
            try skeleton.store.rekeys.add(id, of: root)
        }
        let count = try skeleton.store.rekeys.count(of: root)
        var state = RekeyState(operation: nil, epoch: epoch, total: count)
        state.left = count
        skeleton.branches.rekeys[root] = state
        try write(&skeleton)
        report(root, &skeleton)
    }

    /// Nothing is left, or the branch is not shared any more.
    private static func end(_ root: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.branches.rekeys[root] = nil
        try skeleton.store.rekeys.endAll(of: root)
        try write(&skeleton)
        skeleton.actions.append(.sharing(.rekeyed(root)))
    }

    private static func report(_ root: NodeID, _ skeleton: inout TreeSkeleton) {
        guard let state = skeleton.branches.rekeys[root] else { return }
        skeleton.actions.append(.sharing(.rekeying(root, left: state.left, of: state.total)))
    }

    // MARK: - Queueing

    private static func queueNext(_ root: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard var state = skeleton.branches.rekeys[root] else { return }
        if state.left == 0 { return try end(root, &skeleton) }
        // Not at each confirmed one.
        guard skeleton.queue.rekeys.count <= queuedMax / 2 else { return }
        while skeleton.queue.rekeys.count < queuedMax {
            let next = try skeleton.store.rekeys.nodes(of: root, after: state.place, limit: queuedMax)
            if next.isEmpty { break }
            for (place, id) in next {
                guard skeleton.queue.rekeys.count < queuedMax else { break }
                state.place = place
                guard skeleton.queue.operations(of: id).allSatisfy({ !$0.fields.contains(.rekey) }) else { continue }
                if try !queue(id, state.epoch, &skeleton) { state.stuck.insert(id) }
            }
        }
        if let now = skeleton.branches.rekeys[root] { (state.left, state.total) = (now.left, now.total) }
        skeleton.branches.rekeys[root] = state
        if state.left == 0 { try end(root, &skeleton) }
    }

    /// - Returns: false for a node that cannot be written now.
    private static func queue(
        _ id: NodeID, _ epoch: UInt32, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard let row = try skeleton.store.row(id), row.version > 0, row.state != .leaving else {
            try ended(id, &skeleton)
            return true
        }
        guard row.state == .open, let text = row.record,
            let record = try? NodeRecord(parsing: text, from: .server)
        else { return false }
        if record.data == nil, record.epoch >= epoch {
            try ended(id, &skeleton)
            return true
        }
        var queueing = OperationQueueing()
        queueing.isKept = true
        // Behind what users change.
        queueing.priority = -1
        let isInRecord = if case .inline? = record.data { true } else { record.data == nil }
        try skeleton.enqueue(id, .write(.rekey), content: isInRecord ? .none : .ask, queueing)
        return true
    }

    // MARK: - Nodes

    /// A node is done, or gone.
    static func ended(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        if skeleton.branches.rekeys.isEmpty { return }
        guard let root = try skeleton.store.rekeys.root(id) else { return }
        skeleton.hasWritten = true
        try skeleton.store.rekeys.end(id)
        guard let state = skeleton.branches.rekeys[root] else { return }
        skeleton.branches.rekeys[root]?.left = max(0, state.left - 1)
        skeleton.branches.rekeys[root]?.stuck.remove(id)
        report(root, &skeleton)
    }

    /// Another device has written a node with a key from before the re-key: it did not know the list.
    static func arrived(_ record: NodeRecord, _ id: NodeID, in root: NodeID, _ skeleton: inout TreeSkeleton)
        throws(TreeError)
    {
        guard let state = skeleton.branches.rekeys[root], state.operation == nil, id != root,
            record.epoch < state.epoch, try skeleton.store.rekeys.root(id) == nil
        else { return }
        skeleton.hasWritten = true
        try skeleton.store.rekeys.add(id, of: root)
        skeleton.branches.rekeys[root]?.total += 1
        skeleton.branches.rekeys[root]?.left += 1
        try write(&skeleton)
    }

    /// The content of a node cannot be had: the re-key goes on with the others.
    ///
    /// - Returns: whether the operation is one of a re-key, and is given up.
    static func givesUp(
        _ operation: PendingOperation, _ content: TreeMachine.Provided, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard operation.fields.contains(.rekey), case .unavailable = content else { return false }
        try giveUp(operation, &skeleton)
        return true
    }

    private static func giveUp(_ operation: PendingOperation, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        try skeleton.drop(operation)
        guard let root = try skeleton.store.rekeys.root(operation.node) else { return }
        skeleton.branches.rekeys[root]?.stuck.insert(operation.node)
        report(root, &skeleton)
        let error = TreeError(.content, "the content could not be read, and stays under its earlier key")
        skeleton.events.append(.operationFailed(operation.id, operation.node, error))
    }

    /// How far a re-key is; nil: none runs.
    static func progress(of root: NodeID, _ skeleton: TreeSkeleton) -> RekeyProgress? {
        guard let state = skeleton.branches.rekeys[root] else { return nil }
        var stuck = state.stuck
        for id in skeleton.queue.rekeys {
            guard let operation = skeleton.queue[id] else { continue }
            switch operation.state {
            case .failed, .held: stuck.insert(operation.node)
            case .waiting, .sending: break
            }
        }
        return RekeyProgress(total: state.total, left: state.left, stuck: min(stuck.count, state.left))
    }

    // MARK: - Sealing

    /// What is done with an operation when it is sealed.
    enum Step {
        case seal(DraftContent?)
        /// Its content was made from another one than the node has now: it waits for that.
        case again
        /// Nothing is left to do.
        case done
    }

    /// - Parameter base: the newest record of the node, opened.
    static func step(
        _ operation: PendingOperation, _ base: OpenedNode, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Step {
        guard let root = try skeleton.store.rekeys.root(operation.node), let state = skeleton.branches.rekeys[root]
        else { return .done }
        switch base.record.data {
        case nil: return base.record.epoch >= state.epoch && !base.hangsOnEarlierKey ? .done : .seal(nil)
        case .inline:
            guard let content = (try? base.inlineContent()) ?? nil else { return .done }
            return .seal(.inline(content))
        case .blob(let id, _, _), .withheld(let id, _, _):
            guard operation.content != .none, try skeleton.store.rekeys.source(operation.node) == id else {
                return .again
            }
            return .seal(try BatchDraft.content(of: operation, skeleton.store))
        }
    }

    /// The content is made again.
    static func prepareAgain(_ operation: PendingOperation, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        var operation = operation
        operation.content = .ask
        skeleton.queue.asked.remove(operation.id)
        skeleton.actions.append(.forget(operation.id))
        try skeleton.store.setSpool(operation.id, nil)
        try skeleton.store.setHeldContent(operation.id, nil)
        try skeleton.store.rekeys.setSource(operation.node, nil)
        try skeleton.write(operation)
    }
}
