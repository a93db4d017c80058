internal import Synchronization

/// The progress of uploads, reported in any thread.
final class ProgressBoard: Sendable {
    private struct State {
        var values = [OperationID: TransferProgress]()
        var readers = [OperationID: [AsyncStream<TransferProgress>.Continuation]]()
    }

    private let state = Mutex(State())

    subscript(id: OperationID) -> TransferProgress? { state.withLock { $0.values[id] } }

    func report(_ id: OperationID, _ progress: TransferProgress) {
        let readers = state.withLock { state in
            state.values[id] = progress
            return state.readers[id] ?? []
        }
        for reader in readers { reader.yield(progress) }
    }

    func add(_ reader: AsyncStream<TransferProgress>.Continuation, of id: OperationID) {
        state.withLock { state in
            if let value = state.values[id] { reader.yield(value) }
            state.readers[id, default: []].append(reader)
        }
    }

    /// The operation is over: its streams end.
    func remove(_ id: OperationID) {
        let readers = state.withLock { state in
            state.values[id] = nil
            return state.readers.removeValue(forKey: id) ?? []
        }
        for reader in readers { reader.finish() }
    }

    /// All streams end.
    func removeAll() {
        let readers = state.withLock { state in
            defer { state = State() }
            return state.readers.values.flatMap { $0 }
        }
        for reader in readers { reader.finish() }
    }
}
