public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// Reacts to changes of the tree inside of the local transaction, so that what the app keeps beside the tree never
/// disagrees with it, not even after a crash.
///
/// Calls come from the tree's thread, in order, once for each change. If one throws, the transaction is undone and the
/// change is offered again; after three failures in a row the tree stops to sync, which its status reports. Keep the
/// calls short, and do not call the tree from them.
public protocol TreeDelegate: Sendable {
    /// A node of another device appeared.
    func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws
    /// Another device changed a node.
    func didDiscoverModifiedNode(
        _ node: Node, with change: NodeChange, at path: TreePath, in transaction: inout TreeTransaction) throws
    /// Another device moved or renamed a node.
    func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction) throws
    /// Another device removed a node, or its burn time came.
    func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws
    /// A local change met one of another device.
    func didDiscoverConflict(_ conflict: TreeConflict, in transaction: inout TreeTransaction) throws
    /// The data of a node, asked for when the queue is ready to upload it. An error leaves the change waiting; it never
    /// becomes an empty content. This call and the next two are outside of transactions, and may call the tree.
    func data(for node: Node, at path: TreePath) async throws -> NodeData
    /// The metadata section, as `data(for:at:)`.
    func metadata(for node: Node, at path: TreePath) async throws -> NodeData
    /// The thumbnail, as `data(for:at:)`.
    func thumbnail(for node: Node, at path: TreePath) async throws -> NodeData
    /// How the content of a node is merged that this device and another one have changed. Outside of transactions;
    /// asked before each merge of contents of at most `MergeLimits.contentBytesMax`. By default `json`.
    func mergeRule(for node: Node, at path: TreePath) -> MergeRule
    /// The server has confirmed local changes of a node.
    func didPushNodeData(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws
    /// The server has put a copy of a node into the inbox of another account.
    func didDeliver(_ node: NodeID, to receiver: UserID, in transaction: inout TreeTransaction) throws
}

extension TreeDelegate {
    /// No data.
    public func data(for node: Node, at path: TreePath) async throws -> NodeData { .none }
    /// No metadata.
    public func metadata(for node: Node, at path: TreePath) async throws -> NodeData { .none }
    /// No thumbnail.
    public func thumbnail(for node: Node, at path: TreePath) async throws -> NodeData { .none }
    /// JSON is merged; of other contents, and where only one change can stay, the local one waits for the app.
    public func mergeRule(for node: Node, at path: TreePath) -> MergeRule { .json }
    /// Does nothing.
    public func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {}
    /// Does nothing.
    public func didDiscoverModifiedNode(
        _ node: Node, with change: NodeChange, at path: TreePath, in transaction: inout TreeTransaction
    ) throws {}
    /// Does nothing.
    public func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction
    ) throws {}
    /// Does nothing.
    public func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {}
    /// Does nothing.
    public func didDiscoverConflict(_ conflict: TreeConflict, in transaction: inout TreeTransaction) throws {}
    /// Does nothing.
    public func didPushNodeData(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {}
    /// Does nothing.
    public func didDeliver(_ node: NodeID, to receiver: UserID, in transaction: inout TreeTransaction) throws {}

    func apply(_ event: TreeEvent, in transaction: inout TreeTransaction) throws {
        switch event {
        case .discovered(let node, let path): try didDiscoverNewNode(node, at: path, in: &transaction)
        case .modified(let node, let change, let path):
            try didDiscoverModifiedNode(node, with: change, at: path, in: &transaction)
        case .moved(let node, let from, let to):
            try didDiscoverMovedNode(node, from: from, to: to, in: &transaction)
        case .deleted(let node, let path): try didDiscoverDeletedNode(node, at: path, in: &transaction)
        case .conflict(let conflict): try didDiscoverConflict(conflict, in: &transaction)
        case .pushed(let node, let path): try didPushNodeData(node, at: path, in: &transaction)
        case .delivered(let node, let receiver): try didDeliver(node, to: receiver, in: &transaction)
        case .integrity, .operationFailed, .caughtUp, .gap: break
        }
    }
}
