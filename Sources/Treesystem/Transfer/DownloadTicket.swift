internal import Synchronization

/// Options of one caller of a download.
public struct DownloadOptions: Sendable, Hashable {
    /// How the file is stored; it is persistent if any caller of the transfer asks for that.
    public var disk: DiskOptions
    /// Requests with the same text for the same transfer have one ticket, so that a place in the app that asks
    /// again and again is called back once.
    public var coalesceKey: String?

    /// Options; by default a file of the cache.
    public init(disk: DiskOptions = .cache, coalesceKey: String? = nil) {
        (self.disk, self.coalesceKey) = (disk, coalesceKey)
    }
}

/// One caller's interest in a download.
public final class DownloadTicket: Sendable {
    private struct State {
        var result: Result<RetainedFile?, ContentError>?
        var waiters = [CheckedContinuation<Result<RetainedFile?, ContentError>, Never>]()
        var progress: AsyncStream<TransferProgress>.Continuation?
    }

    private let state = Mutex(State())
    /// How far the transfer is. The stream ends with it, and keeps the newest value only.
    public let progress: AsyncStream<TransferProgress>
    private let leave: @Sendable (DownloadTicket, _ isDetaching: Bool) -> Void

    /// - Parameter leave: ends the caller's interest.
    init(leave: @escaping @Sendable (DownloadTicket, _ isDetaching: Bool) -> Void) {
        self.leave = leave
        let (stream, continuation) = AsyncStream.makeStream(
            of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        progress = stream
        state.withLock { $0.progress = continuation }
    }

    /// Waits for the file, which the store keeps while the result exists.
    ///
    /// - Returns: nil when the sections are empty or known not to exist.
    /// - Throws: `cancelled` after `cancel`, `detach` or the cancellation of the task, which is a `cancel`;
    ///   `contentDamaged`, `contentMismatch`, `notFound`, `refused`, `unreachable`, `diskFull`, `disk`, `index`.
    public func value() async throws(ContentError) -> RetainedFile? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state in
                    if state.result == nil { state.waiters.append(continuation) }
                    return state.result
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Ends the caller's interest. The last interested caller stops the transfer, which keeps its verified chunks.
    public func cancel() { end(isDetaching: false) }

    /// Ends the caller's interest and lets the transfer finish, to fill the cache.
    public func detach() { end(isDetaching: true) }

    private func end(isDetaching: Bool) {
        if finish(.failure(.cancelled)) { leave(self, isDetaching) }
    }

    /// Whether the ticket has no result yet.
    var isOpen: Bool { state.withLock { $0.result == nil } }

    /// Delivers the result, once.
    ///
    /// - Returns: whether it was the first.
    @discardableResult
    func finish(_ result: Result<RetainedFile?, ContentError>) -> Bool {
        let before: State? = state.withLock { state in
            guard state.result == nil else { return nil }
            defer { state = State(result: result) }
            return state
        }
        guard let before else { return false }
        for waiter in before.waiters { waiter.resume(returning: result) }
        before.progress?.finish()
        return true
    }

    func report(_ progress: TransferProgress) {
        _ = state.withLock { $0.progress }?.yield(progress)
    }
}
