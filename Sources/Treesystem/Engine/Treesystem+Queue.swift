import ThicketClient
public import ThicketTreeShape

/// The queue of changes that the server has not confirmed.
extension Treesystem {
    /// The waiting operations, in the order in which they were made.
    ///
    /// - Throws: `closed`.
    public var queue: [QueuedOperation] {
        get throws(TreeError) {
            let progress = progress
            return try read { machine throws(TreeError) in
                machine.queue.ids.compactMap { id in
                    machine.queue[id].map { QueuedOperation($0, progress) }
                }
            }
        }
    }

    /// The waiting operations of a node.
    ///
    /// - Throws: `closed`.
    public func operations(of node: NodeID) throws(TreeError) -> [QueuedOperation] {
        let progress = progress
        return try read { machine throws(TreeError) in
            machine.queue.operations(of: node).map { QueuedOperation($0, progress) }
        }
    }

    /// The progress of the upload of an operation's content. The stream keeps the newest value only, and ends with the
    /// operation; it is empty for one that is not in the queue.
    public func uploadProgress(of id: OperationID) -> AsyncStream<TransferProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        if core?.machine.queue[id] == nil { continuation.finish() } else { progress.add(continuation, of: id) }
        return stream
    }

    /// Sends an operation again that waits for the app: its content is asked for again, a node that was removed
    /// elsewhere is created again, and in a conflict this device's content is kept.
    ///
    /// - Throws: `notFound`, `store`, `closed`.
    public func retry(_ id: OperationID) throws(TreeError) {
        try act { machine throws(TreeError) in try machine.retry(id) }
    }

    /// Gives up an operation: the node is again as the server has it; a node that the server never had is removed.
    ///
    /// - Throws: `notFound`; `limit` for an operation that is being sent; `store`, `closed`.
    public func discard(_ id: OperationID) throws(TreeError) {
        try act { machine throws(TreeError) in try machine.discard(id) }
        waiters.end(TreeError(.cancelled, "the operation was discarded"), of: id)
    }

    /// Sends no more changes and contents until `resumePush`.
    ///
    /// - Parameter abort: whether the request in flight is given up too. The server may have made it: it stays
    ///   `sending` and is repeated unchanged after `resumePush`, and is made once. Without it, the request goes on.
    /// - Throws: `store`, `closed`.
    public func pausePush(abort: Bool = false) throws(TreeError) {
        try act { machine throws(TreeError) in machine.pausePush(abort: abort) }
        for job in jobs.values { job.control.pause() }
        if abort { batchTask?.cancel() }
    }

    /// Sends again.
    ///
    /// - Throws: `store`, `closed`.
    public func resumePush() throws(TreeError) {
        for job in jobs.values { job.control.resume() }
        try act { machine throws(TreeError) in machine.resumePush() }
    }

    /// The nodes that are not as the server has them: those with waiting changes, and all above them.
    ///
    /// - Throws: `store`, `closed`.
    public func syncingNodes() throws(TreeError) -> Set<NodeID> {
        try read { machine throws(TreeError) in try machine.syncingNodes() }
    }

    /// Whether sending is paused.
    public var isPushPaused: Bool { core?.machine.push.isPaused ?? false }

    // MARK: - Waiting

    /// Waits until the server has confirmed an operation, or it is no longer needed because a later change replaced it.
    ///
    /// - Throws: `cancelled` after `discard` or the cancellation of the task; `refused`, `content` when the operation
    ///   waits for the app; `deadline`, `closed`.
    public func wait(for id: OperationID, timeout: Duration = .seconds(60)) async throws(TreeError) {
        try await wait(operation: id, timeout)
    }

    /// Waits until the tree is connected, has everything that the server had then, and all operations are confirmed.
    ///
    /// - Throws: as `wait(for:)`; `refused` or `content` when an operation waits for the app.
    public func waitUntilSynced(timeout: Duration = .seconds(60)) async throws(TreeError) {
        try await wait(operation: nil, timeout)
    }

    func wait(list: NodeParent, _ timeout: Duration) async throws(TreeError) {
        try await wait(operation: nil, list: list, timeout)
    }

    func wait(rekey root: NodeID, _ timeout: Duration) async throws(TreeError) {
        try await wait(operation: nil, rekey: root, timeout)
    }

    private func wait(
        operation: OperationID?, list: NodeParent? = nil, rekey root: NodeID? = nil, _ timeout: Duration
    ) async throws(TreeError) {
        if core == nil { throw .closed }
        counter += 1
        let id = counter
        let deadline = monotonicMilliseconds() + Int64(min(max(0, timeout / .milliseconds(1)), 1e15).rounded(.up))
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiters.add(id, operation, list: list, rekey: root, deadline: deadline, continuation)
                if Task.isCancelled { cancelWaiter(id) }
                resumeWaiters(monotonicMilliseconds())
            }
        } onCancel: {
            Task { await self.cancelWaiter(id) }
        }
        try result.get()
    }

    private func cancelWaiter(_ id: UInt64) { waiters.cancel(id) }

    /// Answers the calls whose operations are over, or whose time is.
    func resumeWaiters(_ now: Int64) {
        guard waiters.deadline != nil, let machine = core?.machine else { return }
        waiters.resume(machine, now)
    }
}
