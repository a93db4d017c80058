import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Local changes: made in the store at once, and queued for the server.
extension TreeSkeleton {
    /// A place for a node that is new there.
    private func freePlace(at path: TreePath, for node: NodeID?) throws(TreeError) -> Place {
        guard let name = path.name, let above = path.parent else {
            throw TreeError(.trunk, "a trunk cannot be written, moved or removed")
        }
        guard path.depth <= TreeLimits.depthMax else {
            throw TreeError(.depth, "a tree has at most \(TreeLimits.depthMax) levels")
        }
        guard let parent = try store.place(at: above) else {
            throw TreeError(.parentMissing, "the parent does not exist: create it first")
        }
        if let node { try Branches.checkMovable(node, branches) }
        if branches.memberRoot != nil, case .trunk = parent { throw Branches.fixed }
        let place = Place(parent, name)
        guard try store.rows(at: place).allSatisfy({ $0.id == node }) else {
            throw TreeError(.nameTaken, "another node has this name")
        }
        return place
    }

    // MARK: - Changing

    /// Creates a node.
    ///
    /// - Parameters:
    ///   - path: its parent exists, its name is free.
    ///   - id: nil for a random one.
    /// - Throws: `nameTaken`, `parentMissing`, `depth`, `trunk`, `limit`, `store`.
    mutating func create(
        at path: TreePath, id: NodeID? = nil, content: LocalContent = .ask, tags: [NodeMetadata.AppTag] = [],
        modified: Int64? = nil, burnTime: Int64? = nil, queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> NodeRow {
        try checkLimit()
        let place = try freePlace(at: path, for: nil)
        let id = id ?? NodeID.random(keyring.random.bytes)
        guard try store.row(id) == nil else { throw TreeError(.nameTaken, "a node with this id exists") }
        var row = NodeRow(id, parent: place.parent, name: place.name, state: .open)
        (row.tags, row.modified, row.burnTime, row.changed) = (tags, modified, burnTime, time.unix)
        var fields: WriteFields = [.creation, .place]
        if case .none = content {} else { fields.insert(.content) }
        try write(row)
        if isLazy { try store.setListed(.node(id), true) }
        try enqueue(id, .write(fields), target: place, content: content, queueing)
        return row
    }

    /// Moves a node, or gives it another name.
    ///
    /// - Throws: `notFound`, `nameTaken`, `parentMissing`, `cycle`, `depth`, `trunk`, `limit`, `store`.
    mutating func move(
        _ id: NodeID, to path: TreePath, queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> NodeRow {
        try checkLimit()
        var row = try shownRow(id)
        let place = try freePlace(at: path, for: id)
        guard let old = row.place, old.parent != place.parent || old.name != place.name else { return row }
        guard try !store.ancestors(of: place.parent).contains(id) else {
            throw TreeError(.cycle, "a node cannot be moved below itself")
        }
        let room = TreeLimits.depthMax - path.depth
        guard try store.height(of: id, upTo: room + 1) <= room else {
            throw TreeError(.depth, "what is below the node would be deeper than \(TreeLimits.depthMax) levels")
        }
        (row.parent, row.name) = (place.parent, place.name)
        try write(row)
        try enqueue(id, .write(.place), origin: old == place ? nil : old, target: place, content: .none, queueing)
        return row
    }

    /// Replaces the content of a node.
    mutating func setContent(
        of id: NodeID, _ content: LocalContent, modified: Int64? = nil,
        queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> NodeRow {
        try checkLimit()
        var row = try shownRow(id)
        row.modified = modified ?? time.unix
        try ContentMerges.begin(row, &self)
        try write(row)
        try enqueue(id, .write(.content), content: content, queueing)
        return row
    }

    /// Replaces the pairs of the app.
    mutating func setTags(
        of id: NodeID, _ tags: [NodeMetadata.AppTag], queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> NodeRow {
        try checkLimit()
        var row = try shownRow(id)
        guard row.tags != tags else { return row }
        row.tags = tags
        try write(row)
        try enqueue(id, .write(.tags), content: .none, queueing)
        return row
    }

    /// Sets the time at which the server removes the node; nil: never.
    mutating func setBurnTime(
        of id: NodeID, _ time: Int64?, queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> NodeRow {
        try checkLimit()
        var row = try shownRow(id)
        guard row.burnTime != time else { return row }
        row.burnTime = time
        try write(row)
        try enqueue(id, .write(.burnTime), content: .none, queueing)
        return row
    }

    // MARK: - Queueing

    /// Refuses a change before it writes anything: the app may catch the error and go on with the turn. What the server
    /// causes is queued all the same.
    func checkLimit() throws(TreeError) {
        guard queue.count < operationsMax else {
            throw TreeError(.limit, "\(operationsMax) changes wait for the server")
        }
    }

    @discardableResult
    mutating func enqueue(
        _ node: NodeID, _ kind: PendingOperation.Kind, origin: Place? = nil, target: Place? = nil,
        content: LocalContent = .none, _ queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> OperationID {
        var new = PendingOperation(try store.nextOperation(), node, kind)
        (new.origin, new.target, new.group) = (origin, target, queueing.group)
        (new.priority, new.isKept) = (queueing.priority, queueing.isKept)
        new.dependencies = try queue.dependencies(of: new) { () throws(TreeError) in
            try store.branch(of: node)
        } ancestors: { place throws(TreeError) in
            try store.ancestors(of: place)
        }
        new.dependencies.formUnion(queueing.after.filter { queue[$0] != nil })
        hasWritten = true
        if let earlier = queue.mergeTarget(of: new) {
            let merged = merging(new, into: earlier)
            queue.replace(merged)
            return try keep(merged, new.fields.contains(.content) ? content : nil)
        }
        queue.add(new)
        return try keep(new, content)
    }

    private func merging(_ new: PendingOperation, into earlier: PendingOperation) -> PendingOperation {
        var merged = earlier
        merged.kind = .write(earlier.fields.union(new.fields))
        if let target = new.target {
            if !earlier.isCreation, earlier.origin == nil { merged.origin = new.origin }
            merged.target = target
        }
        merged.dependencies.formUnion(new.dependencies.subtracting([earlier.id]))
        merged.priority = max(earlier.priority, new.priority)
        return merged
    }

    /// Stores an operation that is in the queue, and its content.
    ///
    /// - Parameter content: nil leaves the content as it is.
    private mutating func keep(
        _ operation: PendingOperation, _ content: LocalContent?
    ) throws(TreeError) -> OperationID {
        var operation = operation
        if content != nil, operation.content != .none, operation.content != .held {
            actions.append(.forget(operation.id))
            try store.setSpool(operation.id, nil)
        }
        switch content {
        case nil: break
        case .some(.none): operation.content = .none
        case .ask: operation.content = .ask
        case .held: operation.content = .held
        case .source: operation.content = .source
        }
        queue.asked.remove(operation.id)
        try write(operation)
        switch content {
        case .held(let content): try store.setHeldContent(operation.id, HeldContent.octets(content))
        case .source(let path): try store.setHeldContent(operation.id, Array(path.utf8))
        case .ask, .some(.none), nil: break
        }
        return operation.id
    }

    /// Takes an operation out of the queue: it is confirmed, or no longer wanted.
    mutating func drop(_ operation: PendingOperation) throws(TreeError) {
        hasWritten = true
        if operation.isDelete { mayBeStranded = true }
        if !operation.fields.isDisjoint(with: [.content, .rekey]) { actions.append(.forget(operation.id)) }
        for follower in queue.remove(operation.id) {
            if let operation = queue[follower] { try store.write(operation) }
        }
        try store.removeOperation(operation.id)
        try ContentMerges.ended(operation, &self)
    }
}

/// The stored form of a content that fits into a record: lengths of metadata and thumbnail, then the sections.
enum HeldContent {
    static func octets(_ content: NodeContent) -> [UInt8] {
        var bytes = [UInt8]()
        for length in [content.metadata.count, content.thumbnail.count] {
            withUnsafeBytes(of: UInt32(length).bigEndian) { bytes += $0 }
        }
        return bytes + content.metadata + content.thumbnail + content.data
    }

    static func content(_ bytes: [UInt8]) -> NodeContent? {
        guard bytes.count >= 8 else { return nil }
        let lengths = [0, 4].map { start in bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (metadata, thumbnail) = (8 + lengths[0], 8 + lengths[0] + lengths[1])
        guard thumbnail <= bytes.count else { return nil }
        return NodeContent(
            metadata: Array(bytes[8..<metadata]), thumbnail: Array(bytes[metadata..<thumbnail]),
            data: Array(bytes[thumbnail...]))
    }
}
