internal import Synchronization

/// The progress of uploads, reported in any thread.
final class ProgressBoard: Sendable {
    private let values = Mutex([OperationID: TransferProgress]())

    subscript(id: OperationID) -> TransferProgress? { values.withLock { $0[id] } }

    func report(_ id: OperationID, _ progress: TransferProgress) { values.withLock { $0[id] = progress } }
    func remove(_ id: OperationID) { values.withLock { $0[id] = nil } }
}
