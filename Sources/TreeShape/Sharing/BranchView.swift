public import ThicketProtocol

/// What the checks of shared branches need to know about a tree, beside its shape.
public protocol BranchView: TreeView {
    /// The nodes with a list: roots of shared branches. At most `TreeLimits.shareListsMax`.
    var listRoots: Set<NodeID> { get }

    /// The stored record of a node, with stamps; nil when it does not exist.
    func record(of node: NodeID) throws(Failure) -> NodeRecord?
    /// Whether an account has created a node that is directly below a parent.
    func hasChild(of parent: NodeID, by user: UserID) throws(Failure) -> Bool
}

extension TreeLimits {
    /// Lists in a tree. A new list, and a move of a node with children into a branch, visit all of them.
    public static let shareListsMax = 1_000
}

/// The account that changes a tree.
public enum TreeActor: Sendable, Hashable {
    /// The owner of the tree.
    case owner
    /// A member of a shared branch, in the branch below a root.
    case member(UserID, root: NodeID)

    /// Whether it is a member: the shape of the tree alone does not decide what it may do.
    public var isMember: Bool { if case .member = self { true } else { false } }
}

/// What is known of the signatures of one put before the tree is looked at.
public struct PutProof: Sendable, Hashable {
    /// Whether the record is signed by the actor with its newest keys.
    public var isSigned: Bool
    /// What is wrong with the signatures of the record's list, or of its grants; nil: they verify.
    public var listFault: ShareListError?

    /// A proof; without arguments nothing was verified.
    public init(isSigned: Bool = false, listFault: ShareListError? = .notSigned) {
        (self.isSigned, self.listFault) = (isSigned, listFault)
    }
}

/// The audiences of a node around one change of it: roots of the nearest lists at or above it.
public struct BranchChange: Sendable, Hashable {
    /// The root before the change; nil for a new node, and outside of shared branches.
    public var before: NodeID?
    /// The root after the change; nil outside of shared branches, and after a removal.
    public var after: NodeID?
    /// The member that has created the node in its branch; nil for the owner.
    public var creator: UserID?

    /// A change; without arguments one that touches no shared branch.
    public init(before: NodeID? = nil, after: NodeID? = nil, creator: UserID? = nil) {
        (self.before, self.after, self.creator) = (before, after, creator)
    }
}
