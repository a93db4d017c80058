import ThicketTree
import ThicketTreeShape

/// Contents that this device and another one have changed (row Q17 of the specification).
///
/// While a change of a content waits, what it was made from is kept, the *base*. When another device's content arrives,
/// the node is *behind*: its changes are not sent before they are merged with that content, outside of the transaction
/// (`MergeJob`). What cannot be merged waits for the app, as `TreeConflict.data` says. A change that is being sent is
/// not merged: the answer shows whether the other device has seen it.
enum ContentMerges {
    // MARK: - The base

    /// A content is changed here: keeps the one that the server has as its base, unless an earlier change has one.
    static func begin(_ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard row.version > 0, contents(of: row.id, skeleton).isEmpty else { return }
        guard let opened = try skeleton.open(row) else { return try forget(row.id, &skeleton) }
        try keep(opened, &skeleton)
    }

    /// Keeps a content as the base of what waits, if it is not too large.
    private static func keep(_ opened: OpenedNode, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard let data = opened.record.data, isSmall(opened) else { return try forget(opened.id, &skeleton) }
        var base = MergeBase(data: data.id)
        switch data {
        case .inline: base.content = (try? opened.inlineContent()) ?? nil
        case .blob: base.plan = ContentSpool(sealedOf: opened)
        case .withheld: break
        }
        try keep(base, of: opened.id, &skeleton)
    }

    private static func keep(
        _ base: MergeBase, of id: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        let bytes = base.bytes
        let others = skeleton.merges.bytes - (skeleton.merges[id] ?? 0)
        guard bytes > 0, others + bytes <= Int64(MergeLimits.basesBytesMax) else {
            return try forget(id, &skeleton)
        }
        skeleton.hasWritten = true
        try skeleton.store.setBase(base, of: id)
        skeleton.merges[id] = bytes
        if !base.isBehind { skeleton.merges.behind.remove(id) }
        // The file is one of the cache, which may lose it.
        if base.content == nil { skeleton.actions.append(.merging(.keepBase(id))) }
    }

    /// The bytes of a base in a blob were read.
    static func keep(
        _ content: NodeContent, _ data: DataID, of id: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard var base = try skeleton.store.base(of: id), base.data == data, base.content == nil else { return }
        base.content = content
        skeleton.hasWritten = true
        try skeleton.store.setBase(base, of: id)
    }

    /// Nothing of the node waits that could be merged.
    static func forget(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard skeleton.merges[id] != nil else { return }
        skeleton.hasWritten = true
        try skeleton.store.setBase(nil, of: id)
        skeleton.merges[id] = nil
        skeleton.merges.behind.remove(id)
    }

    /// An operation is over.
    static func ended(_ operation: PendingOperation, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard skeleton.merges[operation.node] != nil, contents(of: operation.node, skeleton).isEmpty else { return }
        try forget(operation.node, &skeleton)
    }

    /// The server has a content of this device: later changes were made from it.
    static func confirmed(_ opened: OpenedNode, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        if contents(of: opened.id, skeleton).isEmpty { return }
        try keep(opened, &skeleton)
    }

    /// The server had a content of this device, and has a newer one, which was made from it: so were later changes that
    /// wait here.
    static func passed(
        _ operation: PendingOperation, _ record: NodeRecord, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard skeleton.merges.behind.contains(operation.node), operation.fields.contains(.content),
            let data = record.data?.id, contents(of: operation.node, skeleton).count > 1
        else { return }
        var base = MergeBase(data: data, isBehind: true)
        if let plan = try skeleton.store.plan(of: operation.id) {
            base.plan = plan.plan
        } else {
            base.content = try skeleton.store.heldContent(operation.id).flatMap(HeldContent.content)
        }
        try keep(base, of: operation.node, &skeleton)
    }

    // MARK: - The other content

    /// Another device has changed a content of which changes wait here: they are merged, or wait for the app.
    static func meet(_ opened: OpenedNode, _ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        let operations = contents(of: row.id, skeleton)
        let canBeMerged = operations.allSatisfy { operation in
            operation.content != .none && (operation.state == .waiting || operation.isSending)
        }
        guard canBeMerged, isSmall(opened), var base = try skeleton.store.base(of: row.id) else {
            return try hold(row, &skeleton)
        }
        base.isBehind = true
        try skeleton.store.setBase(base, of: row.id)
        skeleton.merges.behind.insert(row.id)
    }

    /// This device's content waits for the app, so that neither is lost.
    static func hold(_ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        for operation in contents(of: row.id, skeleton) {
            var operation = operation
            operation.state = .held(.data)
            try skeleton.write(operation)
        }
        // The app decides between the two that there are now; what arrives later is met by the one that stays.
        if let opened = try skeleton.open(row) { try keep(opened, &skeleton) } else { try forget(row.id, &skeleton) }
        if let (node, _) = try skeleton.shown(row) { skeleton.events.append(.conflict(.data(node))) }
    }

    static func contents(of id: NodeID, _ skeleton: TreeSkeleton) -> [PendingOperation] {
        skeleton.queue.operations(of: id).filter { $0.fields.contains(.content) }
    }

    /// Whether the content of a record is one that may be merged.
    private static func isSmall(_ opened: OpenedNode) -> Bool {
        guard let sizes = opened.metadata.content?.sizes, opened.record.data != nil else { return false }
        return sizes.length <= UInt64(MergeLimits.contentBytesMax)
    }

    // MARK: - Merging

    /// Starts merges that can be made now. Runs at the end of each turn while the tree is connected.
    static func start(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        for node in skeleton.merges.behind.subtracting(skeleton.merges.running).sorted() {
            if skeleton.merges.running.count >= MergeLimits.runningMax { return }
            guard let row = try skeleton.store.row(node), row.version > 0 else {
                try forget(node, &skeleton)
                continue
            }
            let operations = contents(of: node, skeleton)
            let isReady = operations.allSatisfy { operation in
                operation.state == .waiting && operation.content != .ask && operation.content != .source
                    && skeleton.queue.pauses[operation.id] == nil
            }
            guard isReady else { continue }
            if try isUnopened(row, &skeleton) {
                try holdUnopened(row, &skeleton)
                continue
            }
            guard row.state == .open else { continue }
            skeleton.merges.running.insert(node)
            skeleton.actions.append(.merging(.merge(node)))
        }
    }

    /// Whether the other content cannot be read: the newest record of the node, or of one above it, does not open. A
    /// node that waits for its parent is not one of these.
    private static func isUnopened(_ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) -> Bool {
        if row.state == .open { return try skeleton.open(row) == nil }
        if row.state == .quarantined { return true }
        guard row.state == .unopened else { return false }
        for id in try skeleton.store.ancestors(of: row.parent) where try skeleton.store.state(of: id) == .quarantined {
            return true
        }
        return false
    }

    /// Nothing can be merged: the app decides, and knows why.
    private static func holdUnopened(_ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        try hold(row, &skeleton)
        for operation in contents(of: row.id, skeleton) {
            var operation = operation
            operation.trouble = unopened
            try skeleton.write(operation)
            skeleton.events.append(.operationFailed(operation.id, row.id, TreeError(.quarantined, unopened)))
        }
    }

    /// Why a content is not merged.
    static let unopened = "the other device's content cannot be merged: a record of the server does not open"

    /// What is to be merged.
    ///
    /// - Returns: nil when that has changed meanwhile; then the merge is over.
    static func task(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) -> MergeTask? {
        guard skeleton.merges.behind.contains(id), let row = try skeleton.store.row(id),
            let (node, path) = try skeleton.shown(row), let opened = try skeleton.open(row),
            let theirs = opened.record.data?.id, let base = try skeleton.store.base(of: id)
        else {
            skeleton.merges.running.remove(id)
            return nil
        }
        let store = skeleton.store
        let own = try contents(of: id, skeleton).map { operation throws(TreeError) in
            MergeTask.Own(operation: operation.id, source: try source(of: operation, store))
        }
        return MergeTask(
            node: node, path: path, base: MergeTask.Source(base), theirs: theirs,
            theirContent: (try? opened.inlineContent()) ?? nil, own: own)
    }

    private static func source(
        of operation: PendingOperation, _ store: TreeStore
    ) throws(TreeError) -> MergeTask.Source {
        switch operation.content {
        case .held: .content(try store.heldContent(operation.id).flatMap(HeldContent.content) ?? NodeContent())
        case .spooled, .uploaded: try store.plan(of: operation.id).map { .sealed($0.plan) } ?? .none
        case .none, .ask, .source: .none
        }
    }

    /// A merge cannot be made for now: it is tried again after a pause.
    static func postpone(_ id: NodeID, _ skeleton: inout TreeSkeleton) {
        skeleton.merges.running.remove(id)
        for operation in contents(of: id, skeleton) {
            skeleton.queue.pauses[operation.id] = skeleton.time.monotonic + PushState.contentPause
        }
    }

    /// A merge cannot be made: what waits here waits for the app.
    static func refuse(_ task: MergeTask, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.merges.running.remove(task.node.id)
        guard try isCurrent(task, &skeleton), let row = try skeleton.store.row(task.node.id) else { return }
        try hold(row, &skeleton)
    }

    /// A merge was made: its contents take the place of what waits here.
    ///
    /// - Returns: whether they did; otherwise something has changed meanwhile, and the merge is made again.
    static func adopt(
        _ result: MergeResult, of task: MergeTask, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        let id = task.node.id
        skeleton.merges.running.remove(id)
        guard try isCurrent(task, &skeleton), var row = try skeleton.store.row(id),
            let opened = try skeleton.open(row)
        else { return false }
        row.modified = skeleton.time.unix
        try skeleton.write(row)
        for (own, merged) in zip(task.own, result.contents) {
            guard let operation = skeleton.queue[own.operation] else { continue }
            try replace(operation, merged, &skeleton)
        }
        if contents(of: id, skeleton).isEmpty {
            skeleton.view(opened, in: &row)
            try skeleton.write(row)
        } else if result.lacksChanges {
            try hold(row, &skeleton)
            return true
        } else {
            try keep(opened, &skeleton)
        }
        if let (node, _) = try skeleton.shown(row) { skeleton.events.append(.conflict(.merged(node))) }
        return true
    }

    /// Whether the contents of a task are those that wait, and the other one is the server's.
    private static func isCurrent(_ task: MergeTask, _ skeleton: inout TreeSkeleton) throws(TreeError) -> Bool {
        guard let now = try self.task(task.node.id, &skeleton) else { return false }
        return now.theirs == task.theirs && now.own.elementsEqual(task.own, by: ==)
    }

    private static func replace(
        _ operation: PendingOperation, _ merged: MergeResult.Content, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        var operation = operation
        skeleton.actions.append(.forget(operation.id))
        skeleton.queue.asked.remove(operation.id)
        try skeleton.store.setSpool(operation.id, nil)
        switch merged {
        case .theirs:
            // The server has it.
            let fields = operation.fields.subtracting(.content)
            if fields.isEmpty { return try skeleton.drop(operation) }
            (operation.kind, operation.content) = (.write(fields), .none)
            try skeleton.store.setHeldContent(operation.id, nil)
            try skeleton.write(operation)
            return try ended(operation, &skeleton)
        case .held(let content):
            operation.content = .held
            try skeleton.store.setHeldContent(operation.id, HeldContent.octets(content))
        case .spooled(let record):
            operation.content = .spooled
            try skeleton.store.setHeldContent(operation.id, nil)
            try skeleton.store.setSpool(operation.id, record.octets)
        }
        try skeleton.write(operation)
    }
}
