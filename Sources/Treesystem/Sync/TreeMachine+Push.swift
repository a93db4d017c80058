import ThicketClient
import ThicketProtocol
import ThicketTree
package import ThicketTreeShape

/// Sending the queue (treesystem 4.7). One batch is in flight at a time; it holds everything that is ready, in an order
/// that respects the dependencies, because the server makes the operations of a batch in order.
extension TreeMachine {
    /// Starts what can be started. Runs at the end of each turn.
    mutating func pump() throws(TreeError) {
        guard link.isOpen, channel.phase == .live, !push.isPaused, !push.waitsForToken else { return }
        try ContentMerges.start(&skeleton)
        try prepareContents()
        guard push.retryAt == nil else { return }
        if push.inFlight != nil { return try sendAgain() }
        guard !queue.isEmpty else { return }
        let chosen = queue.next(max: PushState.operationsMax) { PushState.mayBeSent($0, skeleton) }
        if !chosen.isEmpty { try send(chosen) }
    }

    /// Sends nothing until `push.isPaused` is false again.
    ///
    /// - Parameter abort: whether the request in flight is not awaited any more. It stays sent in the store, and is
    ///   repeated unchanged; an answer that arrives all the same counts.
    package mutating func pausePush(abort: Bool = false) {
        push.isPaused = true
        if abort { push.inFlight?.isSent = false }
    }

    package mutating func resumePush() { push.isPaused = false }

    /// The nodes with waiting operations, and the nodes above them.
    package func syncingNodes() throws(TreeError) -> Set<NodeID> {
        var nodes = Set<NodeID>()
        for id in queue.ids {
            guard let node = queue[id]?.node, nodes.insert(node).inserted, let row = try store.row(node) else {
                continue
            }
            nodes.formUnion(try store.ancestors(of: row.parent))
        }
        return nodes
    }

    // MARK: - Contents

    /// Asks for the contents of the first operations that need one.
    private mutating func prepareContents() throws(TreeError) {
        guard skeleton.queue.asked.count < PushState.contentsMax else { return }
        for id in queue.ids where !skeleton.queue.asked.contains(id) && skeleton.queue.pauses[id] == nil {
            guard let operation = queue[id], PushState.lacksContent(operation, skeleton) else { continue }
            if try store.row(operation.node)?.state == .leaving {
                try sendEmpty(operation)
            } else if try prepareContent(of: operation) {
                skeleton.queue.asked.insert(id)
            }
            if skeleton.queue.asked.count >= PushState.contentsMax { return }
        }
    }

    /// The node is removed here; it is created only because others depend on it.
    private mutating func sendEmpty(_ operation: PendingOperation) throws(TreeError) {
        var operation = operation
        operation.content = .none
        try skeleton.write(operation)
    }

    private mutating func prepareContent(of operation: PendingOperation) throws(TreeError) -> Bool {
        switch operation.content {
        case .ask:
            guard let row = try store.row(operation.node), let (node, path) = try skeleton.shown(row) else {
                _ = try skeleton.replaceLostPlace(of: operation)
                return false
            }
            skeleton.actions.append(.ask(operation.id, node, path))
        case .source:
            guard let path = try store.heldContent(operation.id) else { return false }
            skeleton.actions.append(.spool(operation.id, path: String(decoding: path, as: UTF8.self)))
        case .spooled: skeleton.actions.append(.upload(operation.id))
        case .none, .held, .uploaded: return false
        }
        return true
    }

    /// What the app, or the disk, gave as the content of an operation.
    package enum Provided: Sendable {
        case none
        /// Content for the record.
        case held(NodeContent)
        /// The state of an upload, for `TreeStore.spool`; nothing is uploaded yet.
        case spooled([UInt8])
        /// A file of the app that is to be spooled.
        case source(path: String)
        /// The content cannot be provided now; the operation waits for the app.
        case unavailable
    }

    package mutating func provided(_ id: OperationID, _ content: Provided) throws(TreeError) {
        skeleton.queue.asked.remove(id)
        guard var operation = queue[id], !operation.content.isReady else { return }
        if try Rekeying.givesUp(operation, content, &skeleton) { return }
        skeleton.hasWritten = true
        let content = try LostContents.provided(content, id, store)
        switch content {
        case .none: operation.content = .none
        case .held(let content):
            operation.content = .held
            try store.setHeldContent(id, HeldContent.octets(content))
        case .spooled(let state):
            operation.content = .spooled
            try store.setSpool(id, state)
        case .source(let path):
            operation.content = .source
            try store.setHeldContent(id, Array(path.utf8))
        case .unavailable: operation.state = .held(.content)
        }
        try skeleton.write(operation)
        if case .unavailable = content {
            skeleton.events.append(.operationFailed(id, operation.node, LostContents.missing(id, store)))
        }
    }

    /// The content of an operation cannot be uploaded for now. It waits without a place among `PushState.contentsMax`.
    package mutating func uploadFailed(_ id: OperationID) {
        skeleton.queue.asked.remove(id)
        if queue[id] != nil { skeleton.queue.pauses[id] = skeleton.time.monotonic + PushState.contentPause }
    }

    /// The blob of an operation is complete at the server.
    package mutating func uploaded(_ id: OperationID, _ state: [UInt8]) throws(TreeError) {
        skeleton.queue.asked.remove(id)
        guard var operation = queue[id], operation.content == .spooled else { return }
        (operation.content, operation.trouble) = (.uploaded, nil)
        try store.setSpool(id, state)
        try skeleton.write(operation)
    }

    // MARK: - Sending

    private mutating func send(_ chosen: [OperationID]) throws(TreeError) {
        var draft = BatchDraft()
        for unit in units(chosen) {
            if draft.bytes > PushState.bytesMax || draft.sent.count >= PushState.sentMax { break }
            try draft.seal(unit, &skeleton)
        }
        guard !draft.sent.isEmpty else { return push.sentNothing(skeleton) }
        try store.setOwnNext(draft.chains)
        let id = BatchID.random(skeleton.keyring.random.bytes)
        for (place, sent) in draft.sent.enumerated() {
            guard var operation = queue[sent.operation] else { continue }
            operation.state = .sending
            try skeleton.write(operation)
            try store.setSent(sent, request: id.text, place: place)
        }
        push.inFlight = PushState.InFlight(id: id, operations: draft.sent.map(\.operation))
        try sendAgain()
    }

    /// What is sent together or not at all: single operations, and groups.
    private func units(_ chosen: [OperationID]) -> [[OperationID]] {
        var units = [[OperationID]]()
        for id in chosen {
            if let group = queue[id]?.group, let last = units.last?.last, queue[last]?.group == group {
                units[units.count - 1].append(id)
            } else {
                units.append([id])
            }
        }
        return units
    }

    private mutating func sendAgain() throws(TreeError) {
        guard let inFlight = push.inFlight, !inFlight.isSent else { return }
        guard let sent = try store.sent() else {
            push.inFlight = nil
            return
        }
        var body = Array("{\"id\":\"\(inFlight.id.text)\",\"ops\":[".utf8)
        for (place, operation) in sent.operations.enumerated() {
            if place > 0 { body.append(0x2C) }
            body += operation.body
        }
        body += Array("]}".utf8)
        push.inFlight?.isSent = true
        isSending = true
        skeleton.actions.append(.batch(inFlight.id, body))
    }
}
