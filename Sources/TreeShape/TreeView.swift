public import ThicketProtocol

/// What the checks of a write need to know about a tree: rows of a server's transaction, or a model in memory.
public protocol TreeView {
    /// Why the tree could not be read.
    associatedtype Failure: Error

    /// The current version of a node; 0 when it does not exist.
    func version(of node: NodeID) throws(Failure) -> Version
    /// The place below which a node is; nil when it does not exist.
    func parent(of node: NodeID) throws(Failure) -> NodeParent?
    /// The node with this tag below a parent; nil when the tag is free.
    func child(of parent: NodeParent, tagged tag: NodeTag) throws(Failure) -> NodeID?
    /// Levels of nodes below a node: 0 when it has no children.
    ///
    /// - Parameters:
    ///   - node: the node.
    ///   - bound: the caller compares the result with it only. Any number on the same side of the bound may be
    ///     returned.
    func height(of node: NodeID, upTo bound: Int) throws(Failure) -> Int
}
