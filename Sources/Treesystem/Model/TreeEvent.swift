public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// What changed in a modified node.
public struct NodeChange: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int
    /// Makes a set from its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The content.
    public static let data = NodeChange(rawValue: 1)
    /// Pairs of the app.
    public static let tags = NodeChange(rawValue: 2)
    /// The burn time.
    public static let burnTime = NodeChange(rawValue: 4)
    /// What is known of a message's origin.
    public static let origin = NodeChange(rawValue: 8)
}

/// A local change that met one of another device.
public enum TreeConflict: Sendable, Hashable {
    /// Another node has the name. The local node was renamed; the path is its new one.
    case name(Node, from: TreePath, to: TreePath)
    /// Another container has the name of a local one that was given up (`NameConflictPolicy.adopt`): its children are
    /// now below the other one. The paths differ if the local one had a free name meanwhile.
    case adopted(NodeID, by: Node, from: TreePath, to: TreePath)
    /// Both moved the node. The local place is sent again.
    case location(Node)
    /// Both changed the content, and it was not merged (`TreeDelegate.mergeRule`), or the merged content lacks a change
    /// of the other device. The local or merged content waits in the queue until `retry` or `discard`;
    /// `Treesystem.confirmedData` has the other one.
    case data(Node)
    /// Both changed the content. The local content has the other device's changes too now, and is sent.
    case merged(Node)
    /// The node was removed on another device while it had local changes, which wait in the queue.
    case removed(Node)
}

/// Something that happened to the tree.
public enum TreeEvent: Sendable, Equatable {
    /// A node of another device appeared.
    case discovered(Node, TreePath)
    /// Another device changed a node.
    case modified(Node, NodeChange, TreePath)
    /// Another device moved or renamed a node.
    case moved(Node, from: TreePath, to: TreePath)
    /// Another device removed a node, or its burn time came.
    case deleted(Node, TreePath)
    /// A local change met one of another device.
    case conflict(TreeConflict)
    /// The server has confirmed local changes of a node.
    case pushed(Node, TreePath)
    /// The server has put a copy of the node into the inbox of another account.
    case delivered(NodeID, to: UserID)
    /// A record is not genuine or does not open, and nothing of it is shown; or messages of an author are missing.
    case integrity(IntegrityFault)
    /// The server refuses an operation for good; it waits in the queue until `retry` or `discard`.
    case operationFailed(OperationID, NodeID, TreeError)
    /// The skeleton includes everything that the server had when it was asked.
    case caughtUp
    /// Events were dropped because the reader was too slow: read the tree again.
    case gap(missed: Int)
}

/// A record that is not shown as genuine.
public struct IntegrityFault: Sendable, Hashable {
    /// The node.
    public let node: NodeID
    /// What is wrong with its record.
    public let kind: Kind
    /// A text for people, without names.
    public let detail: String

    /// The kinds of faults.
    public enum Kind: String, Sendable, Hashable {
        /// The record does not have the form of a record.
        case form
        /// The record does not open, or its members do not belong together.
        case seal
        /// The name does not give the tag.
        case nameMismatch = "name-mismatch"
        /// No node of the tree is the parent that the record names, or the node would be below itself.
        case parentMissing = "parent-missing"
        /// The server shows an older version than this device knows.
        case rollback
        /// The message is not from the account that it names, or not for this one; it is not shown.
        case origin
        /// Messages before this one have not arrived. It is shown (`MessageOrigin.missing`).
        case messagesMissing = "messages-missing"
        /// The author's device has shown another message in place of this one, or of the one before it. It is shown.
        case messagesForked = "messages-forked"
        /// A record of a shared branch is not from an account that may write it, or its list is not one that the owner
        /// permits. It is not shown, and nothing is sealed for its readers.
        case sharing
        /// Keys of the author of a record in a shared branch are not known yet: it is shown when they are.
        case awaitingKeys = "awaiting-keys"
    }

    /// Makes a fault.
    public init(_ node: NodeID, _ kind: Kind, _ detail: String) {
        (self.node, self.kind, self.detail) = (node, kind, detail)
    }
}

/// The number of an operation in the queue of a tree; grows, and is never used again.
public struct OperationID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: Int64
    /// Makes an id from its number.
    public init(_ number: Int64) { self.number = number }
    /// The number as text.
    public var description: String { String(number) }
    /// Earlier operations are smaller.
    public static func < (left: OperationID, right: OperationID) -> Bool { left.number < right.number }
}
