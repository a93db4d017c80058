package import ThicketClient
package import ThicketTreeShape

/// What the push side knows beside the queue. Only `inFlight` is in the store.
package struct PushState: Sendable {
    /// A batch that was sent and is not answered. It is sent again unchanged until it is: the server makes it once.
    package struct InFlight: Sendable, Equatable {
        package let id: BatchID
        /// The operations in the order of the batch, also those that were confirmed by the log meanwhile.
        package var operations: [OperationID]
        /// Whether the request is on its way now.
        package var isSent = false

        package init(id: BatchID, operations: [OperationID]) { (self.id, self.operations) = (id, operations) }
    }

    package var inFlight: InFlight?
    /// No batch is sent before this time.
    package var retryAt: Int64?
    package var backoff = Backoff(
        shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    /// The server refused the token; nothing is sent until there is another.
    package var waitsForToken = false
    /// The app paused sending.
    package var isPaused = false

    /// Contents in preparation or upload at a time.
    package static let contentsMax = 4
    /// Milliseconds after which a content that could not be uploaded is tried again.
    static let contentPause: Int64 = 60_000
    /// Operations of one batch, except that a local batch is never divided.
    package static let operationsMax = 200
    /// Operations in the form of the server after which a batch ends: a message has one for each of its nodes and
    /// recipients, at most `CopyDraft.recordsMax` more.
    static let sentMax = 200
    /// Bytes of the records after which a batch ends.
    package static let bytesMax = 1 << 20
    /// Equal refusals of one operation, after which it waits for the app (treesystem 4.7).
    package static let attemptsMax: Int64 = 10
    /// Refusals for a taken name after which the local node is renamed, although the other node has not arrived.
    package static let nameAttemptsMax: Int64 = 3

    package init() {}

    /// All chosen operations were dropped, as those of a re-key that have nothing left to do: the next ones follow at
    /// once.
    mutating func sentNothing(_ skeleton: TreeSkeleton) {
        if !skeleton.branches.rekeys.isEmpty { retryAt = skeleton.time.monotonic }
    }

    /// The pause of an operation after refusals, in milliseconds: 0.5 to 1 s, doubling up to a minute.
    static func pause(after attempts: Int64, _ random: UInt64) -> Int64 {
        let longest = min(SyncLimits.backoffMaxMilliseconds, SyncLimits.retryMinMilliseconds << min(attempts, 10))
        return longest / 2 + Int64(random % UInt64(longest / 2 + 1))
    }
}

extension PushState {
    /// Whether nothing keeps an operation from the next request.
    static func mayBeSent(_ operation: PendingOperation, _ skeleton: TreeSkeleton) -> Bool {
        operation.content.isReady && operation.waitsFor == nil && !skeleton.merges.blocks(operation)
            && skeleton.queue.pauses[operation.id] == nil && KeyQuestions.isAnswered(for: operation, skeleton)
    }

    /// Whether the content of an operation has to be made before it is sent.
    static func lacksContent(_ operation: PendingOperation, _ skeleton: TreeSkeleton) -> Bool {
        operation.state == .waiting && !operation.content.isReady
            && (operation.content != .spooled || !skeleton.merges.blocks(operation))
    }
}
