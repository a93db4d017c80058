import ThicketClient
import ThicketProtocol
import ThicketTree
package import ThicketTreeShape

/// Answers to batches, and the device's own changes as they come back in the log.
extension TreeMachine {
    /// The answer to a batch arrived, or none can be expected.
    package mutating func batchAnswered(_ id: BatchID, _ reply: BatchReply) throws(TreeError) {
        guard push.inFlight?.id == id, let inFlight = push.inFlight else { return }
        // A reading may have passed a node's place before the batch was made, or may begin after the node was removed
        // again. The log comes first, and the request is repeated.
        if channel.isReading, case .answer = reply {
            push.inFlight?.isSent = false
            return
        }
        switch reply {
        case .answer(.made(_, let results)):
            push.backoff.reset()
            try made(inFlight, results)
        case .answer(.refused(let refusal)): try refused(inFlight, refusal)
        case .unknown(let trouble, let pause):
            for id in inFlight.operations where queue[id]?.isSending == true { try report(trouble, of: id) }
            push.inFlight?.isSent = false
            push.retryAt = skeleton.time.monotonic + max(pause, push.backoff.next(random.next()))
        case .unauthorized:
            push.inFlight?.isSent = false
            tokenEnded("the token was refused")
        }
    }

    /// Why the server does not accept an operation for now; nil when it does again.
    mutating func report(_ trouble: String?, of id: OperationID) throws(TreeError) {
        guard var operation = queue[id], operation.trouble != trouble else { return }
        operation.trouble = trouble
        try skeleton.write(operation)
    }

    /// Ends the request in flight.
    ///
    /// - Parameter isMade: whether the server has made it.
    /// - Returns: its operations as they were sent.
    private mutating func endRequest(isMade: Bool) throws(TreeError) -> [OperationID: TreeOperation] {
        var sent = [OperationID: TreeOperation]()
        for each in try store.sent()?.operations ?? [] { sent[each.operation] = each.parsed }
        push.inFlight = nil
        skeleton.hasWritten = true
        try store.clearSent()
        try store.endOwnNext(isMade: isMade)
        return sent
    }

    // MARK: - Made

    private mutating func made(
        _ inFlight: PushState.InFlight, _ results: [TreeOperationResult]
    ) throws(TreeError) {
        let sent = try endRequest(isMade: true)
        let isOpen = inFlight.operations.contains { queue[$0] != nil }
        for (id, result) in zip(inFlight.operations, results) {
            guard let operation = queue[id], let made = sent[id] else { continue }
            switch (made, result) {
            case (.put(let node, _, let record), .version(let version)):
                try skeleton.confirm(operation, node, record, version)
            case (.deleteTree, .branch(let outcome)): try skeleton.removedBranch(operation, outcome)
            case (.copy, .version), (.burn, _): try CopyDraft.delivered(operation, &skeleton)
            default: try skeleton.fail(operation, TreeError(.network, "the server's answer does not fit the request"))
            }
        }
        guard try store.namedValue("unsure") == inFlight.id.text else { return }
        // The answer may be older than the reading: another one shows which of the nodes still exist.
        try store.setNamedValue("unsure", nil)
        if isOpen { try scanAgain() }
    }

    /// A reading has shown what answered removals have left: they wait for the log no longer.
    mutating func endAnsweredRemovals() throws(TreeError) {
        let inFlight = Set(push.inFlight?.operations ?? [])
        for id in queue.ids where !inFlight.contains(id) {
            if let operation = queue[id], operation.isDelete, operation.isSending { try skeleton.drop(operation) }
        }
    }

    // MARK: - Refused

    private mutating func refused(
        _ inFlight: PushState.InFlight, _ refusal: BatchRefusal
    ) throws(TreeError) {
        let sent = try endRequest(isMade: false)
        for id in inFlight.operations {
            guard var operation = queue[id] else { continue }
            if operation.isSending { (operation.state, operation.trouble) = (.waiting, nil) }
            try skeleton.write(operation)
        }
        try AdoptedContainers.endRefused(inFlight.operations, &skeleton)
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
        let mayNotWrite = refusal.code == .unauthorized
        if !mayNotWrite { push.retryAt = skeleton.time.monotonic + push.backoff.next(random.next()) }
        for id in inFlight.operations {
            guard let operation = queue[id], operation.state == .waiting else { continue }
            if mayNotWrite { try failReadOnly(operation) } else { try tryAgain(operation, refusal) }
        }
    }

    /// The token is valid and may not write: sending again cannot help.
    private mutating func failReadOnly(_ operation: PendingOperation) throws(TreeError) {
        try skeleton.fail(
            operation, TreeError(.refused, "the token does not allow changes", reason: Self.readOnlyReason))
    }

    /// The reason of operations that failed because the token may only read.
    static let readOnlyReason = "read-only"

    private mutating func refused(
        _ operation: PendingOperation, _ refusal: BatchRefusal, _ sent: TreeOperation?
    ) throws(TreeError) {
        if refusal.reason == .signature, try KeyRenewal.retries(operation, &skeleton) { return }
        switch refusal.reason {
        case .stale:
            guard let current = refusal.current, let row = try store.row(operation.node), current > row.version else {
                return try tryAgain(operation, refusal)
            }
            try want(operation.node, current)
            var waiting = operation
            waiting.waitsFor = current
            try skeleton.write(waiting)
        case .nameTaken where operation.attempts >= PushState.nameAttemptsMax:
            try skeleton.evade(operation)
            try tryAgain(queue[operation.id] ?? operation, refusal)
        case .cycle, .depth:
            guard operation.attempts >= PushState.nameAttemptsMax, !operation.isCreation else {
                return try tryAgain(operation, refusal)
            }
            try skeleton.giveUpPlace(operation)
        case .blobMissing where operation.content == .uploaded:
            try LostContents.loseBlob(of: operation, &skeleton)
            try tryAgain(queue[operation.id] ?? operation, refusal)
        // The branch was shared, or its list changed, after the record was sealed: the log brings that.
        case .signature where operation.isWrite: try tryAgain(operation, refusal)
        case let reason? where reason.isFinal(for: operation): try failForGood(operation, refusal)
        default: try tryAgain(operation, refusal)
        }
    }

    /// The change that explains the refusal is on its way: tries again after a pause, a limited number of times.
    private mutating func tryAgain(_ operation: PendingOperation, _ refusal: BatchRefusal) throws(TreeError) {
        var operation = operation
        operation.attempts += 1
        operation.trouble = "the server refuses it for now (\(refusal.word))"
        skeleton.queue.pauses[operation.id] =
            skeleton.time.monotonic + PushState.pause(after: operation.attempts, random.next())
        if operation.attempts >= PushState.attemptsMax { return try failForGood(operation, refusal) }
        try skeleton.write(operation)
    }

    private mutating func failForGood(_ operation: PendingOperation, _ refusal: BatchRefusal) throws(TreeError) {
        let word = refusal.word
        let error = TreeError(.refused, "the server refuses the change (\(word))", reason: word)
        if try !Renewals.end(operation, error, &skeleton) { try skeleton.fail(operation, error) }
    }
}

extension BatchRefusal {
    /// The server's word, or its number.
    fileprivate var word: String { reason?.rawValue ?? String(code.rawValue) }
}

extension TreeStore.Sent {
    /// The operation; nil when the bytes are not one.
    var parsed: TreeOperation? { try? TreeOperation(parsing: body) }
}

extension RefusalReason {
    /// Whether the same operation would be refused for the same reason again, whatever others change.
    fileprivate func isFinal(for operation: PendingOperation) -> Bool {
        switch self {
        // Burnt already, or moved by its receiver.
        case .nodeMissing: operation.isBurn
        case .badRecord, .record, .trunk, .leafOnly, .badBatch, .batch, .blocked, .signature, .inboxFull, .repeated,
            .permission, .shareList, .nestedList:
            true
        default: false
        }
    }
}
