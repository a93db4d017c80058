import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// What a device knows of the shared branches of a tree: in an own tree those that it shares, in a branch of another
/// account that one. In memory; the store has the same.
struct BranchBook {
    /// A branch whose list is believed.
    struct Known {
        var state: BranchState
        /// The number of the reading in which the list was believed first; nil when it came with the log.
        var since: Int64?
    }

    /// The root of the branch of another account that the tree is; nil for an own tree.
    let memberRoot: NodeID?
    /// The invitation with which the branch was opened; nil: none is known.
    let invite: BranchInvite?
    /// By their roots.
    var known = [NodeID: Known]()
    /// Nodes whose newest record waits for keys of its author, or of its list's.
    private(set) var waiting = [KeyQuestion: Set<NodeID>]()
    private(set) var waitingNodes = Set<NodeID>()
    /// Nodes whose newest record was requested, or waited for its parent, when a list was believed first, and the
    /// versions: they are shown later, and may be from before the list.
    var requested = [NodeID: Version]()
    /// Nodes whose newest record waits for that of a node above them.
    var early = Set<NodeID>()
    /// Whether the device had everything of the server at the end of the last turn.
    var isCaughtUp = false
    /// Records that the log has brought under earlier lists, and that are not judged yet.
    var delivered = DeliveredRecords()
    /// Lists of this device that the log has not brought yet.
    var unreached = UnreachedLists()
    /// Eager re-keys, by the roots of their branches.
    var rekeys = [NodeID: RekeyState]()
    /// Nodes that were shown and are not for now, because their parent is not known, and the versions.
    var accepted = [NodeID: Version]()
    /// Refusals of the channel in a row.
    var refusals = 0
    /// Whether the end of the log was reached in this turn.
    var hasReachedLog = false
    /// Whether the records that arrive were asked for with a list of children.
    var isListing = false

    init(memberRoot: NodeID?, invite: BranchInvite?) { (self.memberRoot, self.invite) = (memberRoot, invite) }

    /// Whether the tree has shared branches, or is one.
    var isEmpty: Bool { known.isEmpty && memberRoot == nil }

    func isRoot(_ id: NodeID) -> Bool { known[id] != nil || memberRoot == id }

    /// The keys for which a node waits.
    func question(of id: NodeID) -> KeyQuestion? {
        waitingNodes.contains(id) ? waiting.first { $0.value.contains(id) }?.key : nil
    }

    mutating func wait(_ id: NodeID, for question: KeyQuestion) {
        endWaiting(id)
        waiting[question, default: []].insert(id)
        waitingNodes.insert(id)
    }

    mutating func endWaiting(_ id: NodeID) {
        guard waitingNodes.remove(id) != nil else { return }
        for question in waiting.keys where waiting[question]?.remove(id) != nil {
            if waiting[question]?.isEmpty == true { waiting[question] = nil }
        }
    }
}
