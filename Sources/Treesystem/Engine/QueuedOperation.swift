public import ThicketProtocol
public import ThicketTreeShape

/// A local change that the server has not confirmed, as the app sees it.
public struct QueuedOperation: Sendable, Hashable, Identifiable {
    /// What the operation does.
    public enum Kind: Sendable, Hashable {
        /// Makes the node.
        case create
        /// Changes it.
        case change
        /// Removes it and everything below it.
        case delete
        /// Sends it to the inbox of another account.
        case copy(to: UserID)
        /// Removes it from the inbox of another account.
        case burn(sentTo: UserID)
    }

    /// Where it is.
    public enum State: Sendable, Hashable {
        /// Waits for earlier operations, its content, or the connection.
        case waiting
        /// Its content is being uploaded.
        case uploading
        /// Is in a request to the server.
        case sending
        /// Another device changed the content too; waits for `retry` or `discard`.
        case conflict
        /// Another device removed the node; `retry` creates it again.
        case removedElsewhere
        /// The app could not provide the content; `retry` asks again.
        case contentUnavailable
        /// There are no keys of the receiver that may be used: `reason` is a `KeyTrouble`. `retry` looks again.
        case keysUnavailable(reason: String)
        /// The server refuses it, with its word; waits for `retry` or `discard`.
        case failed(reason: String)
    }

    /// The operation.
    public let id: OperationID
    /// The node.
    public let node: NodeID
    /// What it does.
    public let kind: Kind
    /// Where it is.
    public let state: State
    /// The progress of the upload of its content; nil without one.
    public let progress: TransferProgress?
    /// Why the server did not accept it at the last attempt, also of an earlier run of the program, as a text for
    /// people; nil while nothing is known to be wrong.
    public let trouble: String?
    /// Refusals in a row that may be temporary.
    public let attempts: Int
    /// Whether it writes the content of the node.
    public let writesContent: Bool

    /// Whether it waits for the app.
    public var needsApp: Bool {
        switch state {
        case .waiting, .uploading, .sending: false
        case .conflict, .removedElsewhere, .contentUnavailable, .keysUnavailable, .failed: true
        }
    }

    init(_ operation: PendingOperation, _ board: ProgressBoard) {
        (id, node, progress) = (operation.id, operation.node, board[operation.id])
        trouble = operation.trouble
        kind =
            switch operation.kind {
            case .write: operation.isCreation ? .create : .change
            case .delete: .delete
            case .copy(let receiver, _): .copy(to: receiver)
            case .burn(let receiver): .burn(sentTo: receiver)
            }
        attempts = Int(clamping: operation.attempts)
        writesContent = operation.fields.contains(.content)
        state =
            switch operation.state {
            case .waiting: operation.content == .spooled && progress != nil ? .uploading : .waiting
            case .sending: .sending
            case .held(.data): .conflict
            case .held(.removed): .removedElsewhere
            case .held(.content): .contentUnavailable
            case .held(.keys): .keysUnavailable(reason: operation.trouble ?? "")
            case .failed(let reason): .failed(reason: reason)
            }
    }
}
