public import ThicketProtocol

/// Why a change cannot be made in a tree, or a key does not name a node. Contains no user content.
public enum TreeRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The key is the name of a trunk, which cannot be written, moved, renamed or removed.
    case trunkIsFixed
    /// The key is not the id of a node.
    case badKey
    /// The record names another base version than its change.
    case otherBase
    /// The node has another version, which is given.
    case stale(current: Version)
    /// The record replaces a version of a node that does not exist.
    case nodeMissing
    /// The parent does not exist.
    case parentMissing
    /// The parent is the node itself or below it.
    case cycle
    /// The node, or one below it, would be deeper than `TreeLimits.depthMax`.
    case tooDeep
    /// The tag of a node in the inbox is not that of its id.
    case inboxName
    /// Another child of the parent has the tag.
    case nameTaken(by: NodeID)
    /// The record names a blob that does not exist, is not complete, is not the owner's or has another length.
    case blobMissing
    /// The node that would be removed has children.
    case hasChildren
    /// A tree is not emptied at once: that would remove nodes together with what is below them.
    case wholeTree
    /// The change has another form than those of a node's record.
    case badChange
    /// The ccid of a single change has the form of those of a batch (`BatchMark`).
    case batchChangeID
    /// Another batch with this id was made before.
    case otherBatch
    /// The batch would make more changes than `TreeLimits.batchChangesMax`.
    case batchTooLarge
    /// The receiver of a copy refuses the caller, or does not exist.
    case blocked
    /// The record of a copy is not signed by the caller with its newest keys.
    case badSignature
    /// The receiver's tree has, or had, a node with the id of a copy.
    case repeated
    /// The receiver's inbox is full, for all senders or for the caller.
    case inboxFull
    /// The caller sends to the receiver more often than it may.
    case tooFrequent
    /// The caller's letters in the branch do not permit the operation.
    case notPermitted(ShareDenial)
    /// The list of the branch's members is not one that may be written.
    case badShareList(ShareListError)
    /// A list above or below another one, or outside of `home`.
    case nestedShareList
    /// The record's key is of another epoch than the root of the branch that it is in.
    case otherEpoch
    /// The tree has `TreeLimits.shareListsMax` lists.
    case tooManyShareLists
    /// The guest of a link has made as many deposits, or written as many bytes, as it may.
    case guestLimit

    /// The word for the answer of a server.
    public var reason: RefusalReason {
        switch self {
        case .trunkIsFixed: .trunk
        case .badKey, .otherBase, .inboxName, .badChange, .batchChangeID: .badRecord
        case .stale: .stale
        case .nodeMissing: .nodeMissing
        case .parentMissing: .parentMissing
        case .cycle: .cycle
        case .tooDeep: .depth
        case .nameTaken: .nameTaken
        case .blobMissing: .blobMissing
        case .hasChildren, .wholeTree: .leafOnly
        case .otherBatch: .batchID
        case .batchTooLarge: .batch
        case .blocked: .blocked
        case .badSignature: .signature
        case .repeated: .repeated
        case .inboxFull: .inboxFull
        case .tooFrequent: .rate
        case .notPermitted: .permission
        case .badShareList, .tooManyShareLists: .shareList
        case .nestedShareList: .nestedList
        case .otherEpoch: .epoch
        case .guestLimit: .guestLimit
        }
    }

    /// A sentence without content of the record.
    public var description: String {
        switch self {
        case .trunkIsFixed: "a trunk cannot be written or removed"
        case .badKey: "the key of a node is the base32 of 16 bytes"
        case .otherBase: "the record replaces another version than its change"
        case .stale(let current): "the record replaces an older version; the current one is \(current)"
        case .nodeMissing: "the node does not exist"
        case .parentMissing: "the parent does not exist"
        case .cycle: "a node cannot be moved to itself or below itself"
        case .tooDeep: "the tree has at most \(TreeLimits.depthMax) levels"
        case .inboxName: "a node in the inbox has the tag of its id"
        case .nameTaken: "another node has this name in the same place"
        case .blobMissing: "the owner has no complete blob of this id and length"
        case .hasChildren: "a node with children cannot be removed"
        case .wholeTree: "a tree cannot be emptied; nodes are removed one by one"
        case .badChange: "a change of a node has the record in d, or sets and removes its members in v"
        case .batchChangeID: "a ccid in this form belongs to a change of a batch"
        case .otherBatch: "another batch with this id was made before"
        case .batchTooLarge: "a batch makes at most \(TreeLimits.batchChangesMax) changes"
        case .blocked: "the receiver does not accept nodes of the caller, or does not exist"
        case .badSignature: "the record is not signed by the caller with its newest keys"
        case .repeated: "a node of this id was in the receiver's tree before"
        case .inboxFull: "the receiver's inbox is full"
        case .tooFrequent: "the caller sends to this receiver more messages a minute than it may"
        case .notPermitted(let denial): "the caller's letters in this branch do not permit that: \(denial.rawValue)"
        case .badShareList(let error): error.description
        case .nestedShareList: "a branch is shared by one list, on a node below home"
        case .otherEpoch: "the record's key is of another epoch than that of the branch"
        case .guestLimit: "the link has no deposits or bytes left"
        case .tooManyShareLists: "a tree has at most \(TreeLimits.shareListsMax) lists"
        }
    }
}
