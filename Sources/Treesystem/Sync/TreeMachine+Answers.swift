import ThicketClient
import ThicketProtocol
import ThicketTree
package import ThicketTreeShape

/// Answers to batches, and the device's own changes as they come back in the log.
extension TreeMachine {
    /// The answer to a batch arrived, or none can be expected.
    package mutating func batchAnswered(_ id: BatchID, _ reply: BatchReply) throws(TreeError) {
        guard push.inFlight?.id == id, let inFlight = push.inFlight else { return }
        switch reply {
        case .answer(.made(_, let results)):
            push.backoff.reset()
            try made(inFlight, results)
        case .answer(.refused(let refusal)): try refused(inFlight, refusal)
        case .unknown(_, let pause):
            push.inFlight?.isSent = false
            push.retryAt = time.monotonic + max(pause, push.backoff.next(random.next()))
        case .unauthorized:
            push.inFlight?.isSent = false
            tokenEnded("the token was refused")
        }
    }

    /// Ends the request in flight.
    ///
    /// - Returns: its operations as they were sent.
    private mutating func endRequest() throws(TreeError) -> [OperationID: TreeOperation] {
        var sent = [OperationID: TreeOperation]()
        for each in try store.sent()?.operations ?? [] { sent[each.operation] = each.parsed }
        push.inFlight = nil
        hasWritten = true
        try store.clearSent()
        return sent
    }

    // MARK: - Made

    private mutating func made(
        _ inFlight: PushState.InFlight, _ results: [TreeOperationResult]
    ) throws(TreeError) {
        let sent = try endRequest()
        for (id, result) in zip(inFlight.operations, results) {
            guard let operation = queue[id], let made = sent[id] else { continue }
            switch (made, result) {
            case (.put(let node, _, let record), .version(let version)):
                try confirm(operation, node, record, version)
            case (.deleteTree, .branch(let outcome)): try removedBranch(operation, outcome)
            default: try fail(operation, TreeError(.network, "the server's answer does not fit the request"))
            }
        }
    }

    private mutating func confirm(
        _ operation: PendingOperation, _ node: NodeID, _ record: NodeRecord, _ version: Version
    ) throws(TreeError) {
        guard let row = try store.row(node), row.version < version, let parent = try parentKeys(of: record.parent),
            let opened = try? keyring.opener.open(record, node, below: parent)
        else { return try drop(operation) }
        try confirm(operation, opened, version: version, row: row)
    }

    /// The server has what the operation wrote.
    mutating func confirm(
        _ operation: PendingOperation, _ opened: OpenedNode, version: Version, row: NodeRow?
    ) throws(TreeError) {
        let before = try row.flatMap { row throws(TreeError) in try shown(row) }
        try drop(operation)
        guard var row else { return }
        var record = opened.record
        if record.stamps.created == nil, let old = row.record.flatMap({ try? NodeRecord(parsing: $0, from: .server) }) {
            record.stamps.created = old.stamps.created
        }
        (row.version, row.record) = (version, record.object.serialized())
        row.changed = record.stamps.changed ?? time.unix
        view(opened, in: &row)
        row.state = try state(of: row)
        try write(row)
        try store.releaseQuarantine(row.id)
        try store.releaseKept(row.id)
        try stopWaiting(row.id, version)
        keyring.keep(opened.childKeys, of: row.id)
        guard row.state == .open, let (node, path) = try shown(row) else { return }
        if before == nil { try uncover(row, node, path) }
        if let before, before.node.parent != node.parent || before.node.name != node.name {
            // A later move of this device was given up meanwhile.
            try clearPlace(of: row)
            events.append(.moved(node, from: before.path, to: path))
        }
        if !queue.has(row.id) { events.append(.pushed(node, path)) }
    }

    /// The operation in flight that made this record; the nonce of the metadata is random, so equal bytes are proof.
    func sentOperation(of record: NodeRecord, _ id: NodeID) throws(TreeError) -> PendingOperation? {
        for operation in queue.operations(of: id) {
            guard case .put(_, _, let sent)? = try store.sent(operation.id)?.parsed, sent.metadata == record.metadata
            else { continue }
            return operation
        }
        return nil
    }

    private mutating func removedBranch(
        _ operation: PendingOperation, _ outcome: BranchOutcome
    ) throws(TreeError) {
        if outcome.hasMore {
            // The branch is larger than one batch: the same removal again, under another id.
            var again = operation
            again.state = .waiting
            return try write(again)
        }
        try drop(operation)
        // What is left is shown again at the end of the turn, and removed nodes disappear when the log arrives.
        guard outcome.left == 0 else { return }
        // The log removes the rows. A root that was created again meanwhile is covered, and so shown again.
        for id in try store.branch(of: operation.node) {
            guard var row = try store.row(id), row.state == .leaving, !queue.has(id) else { continue }
            row.state = .gone
            try write(row)
        }
    }

    // MARK: - Refused

    private mutating func refused(
        _ inFlight: PushState.InFlight, _ refusal: BatchRefusal
    ) throws(TreeError) {
        let sent = try endRequest()
        for id in inFlight.operations {
            guard var operation = queue[id] else { continue }
            if operation.isSending { operation.state = .waiting }
            try write(operation)
        }
        guard let index = refusal.operation, inFlight.operations.indices.contains(index) else {
            return try refusedWhole(inFlight, refusal)
        }
        let id = inFlight.operations[index]
        guard let operation = queue[id], operation.state == .waiting else { return }
        try refused(operation, refusal, sent[id])
    }

    /// The batch as such was refused: its operations are tried again, and wait for the app when that goes on.
    private mutating func refusedWhole(
        _ inFlight: PushState.InFlight, _ refusal: BatchRefusal
    ) throws(TreeError) {
        push.retryAt = time.monotonic + push.backoff.next(random.next())
        for id in inFlight.operations {
            guard let operation = queue[id], operation.state == .waiting else { continue }
            try tryAgain(operation, refusal)
        }
    }

    private mutating func refused(
        _ operation: PendingOperation, _ refusal: BatchRefusal, _ sent: TreeOperation?
    ) throws(TreeError) {
        switch refusal.reason {
        case .stale:
            guard let current = refusal.current, let row = try store.row(operation.node), current > row.version else {
                return try tryAgain(operation, refusal)
            }
            try want(operation.node, current)
            var waiting = operation
            waiting.waitsFor = current
            try write(waiting)
        case .nodeMissing where operation.isDelete:
            try removedBranch(operation, BranchOutcome(removed: 0, left: 0, kept: [], hasMore: false))
        case .nameTaken where operation.attempts >= PushState.nameAttemptsMax:
            try evade(operation)
            try tryAgain(queue[operation.id] ?? operation, refusal)
        case .cycle, .depth:
            guard operation.attempts >= PushState.nameAttemptsMax, !operation.isCreation else {
                return try tryAgain(operation, refusal)
            }
            try giveUpPlace(operation)
        case .badRecord, .record, .trunk, .leafOnly, .badBatch, .batch: try failForGood(operation, refusal)
        default: try tryAgain(operation, refusal)
        }
    }

    /// The name is taken by a node that this device does not show: the operation uses another one.
    private mutating func evade(_ operation: PendingOperation) throws(TreeError) {
        guard let target = operation.target, let row = try store.row(operation.node) else { return }
        if row.place == target { return try rename(row) }
        // A later operation moves the node on.
        let taken = try store.names(below: target.parent).union([target.folded])
        var operation = operation
        operation.target = Place(target.parent, target.name.free { taken.contains($0) })
        try write(operation)
    }

    /// The place became impossible by moves of other devices: the node stays where the server has it.
    mutating func giveUpPlace(_ operation: PendingOperation) throws(TreeError) {
        try drop(.place, of: operation)
        guard let row = try store.row(operation.node) else { return }
        try showServers(row)
        if let row = try store.row(operation.node), let (node, _) = try shown(row) {
            events.append(.conflict(.location(node)))
        }
    }

    /// The change that explains the refusal is on its way: tries again after a pause, a limited number of times.
    private mutating func tryAgain(_ operation: PendingOperation, _ refusal: BatchRefusal) throws(TreeError) {
        var operation = operation
        operation.attempts += 1
        push.pauses[operation.id] = time.monotonic + PushState.pause(after: operation.attempts, random.next())
        if operation.attempts >= PushState.attemptsMax { return try failForGood(operation, refusal) }
        try write(operation)
    }

    private mutating func failForGood(_ operation: PendingOperation, _ refusal: BatchRefusal) throws(TreeError) {
        if try isGivenUp(operation) { return }
        let word = refusal.reason?.rawValue ?? String(refusal.code.rawValue)
        try fail(operation, TreeError(.refused, "the server refuses the change (\(word))", reason: word))
    }

    /// This device has the version for which operations of the node waited.
    mutating func stopWaiting(_ id: NodeID, _ version: Version) throws(TreeError) {
        for operation in queue.operations(of: id) {
            guard let wanted = operation.waitsFor, wanted <= version else { continue }
            var operation = operation
            operation.waitsFor = nil
            try write(operation)
        }
    }
}

extension TreeStore.Sent {
    /// The operation; nil when the bytes are not one.
    var parsed: TreeOperation? { try? TreeOperation(parsing: body) }
}
