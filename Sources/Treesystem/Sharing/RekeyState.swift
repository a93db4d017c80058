import ThicketTreeShape

/// Where an eager re-key of a shared branch is. The nodes that are left are in the store (`TreeStore.rekeyNodes`).
struct RekeyState: Sendable, Equatable {
    /// The change of the list after which it begins; nil: it has begun.
    var operation: OperationID?
    /// Until it begins, the epoch before the change; then the one from which a node's key is new.
    var epoch: UInt32
    /// Nodes at its beginning, and those that were written under an earlier key since.
    var total = 0
    var left = 0
    /// Rows up to this place were queued in this run of the program. Not in the store.
    var place: Int64 = 0
    /// Nodes that this run of the program cannot write: their records or contents do not open. Not in the store.
    var stuck = Set<NodeID>()

    /// ROOT.OPERATION.EPOCH.TOTAL, with 0 for no operation.
    fileprivate func stored(_ root: NodeID) -> String { "\(root.text).\(operation?.number ?? 0).\(epoch).\(total)" }

    fileprivate init?(_ parts: [Substring]) {
        guard parts.count == 4, let number = Int64(parts[1]), let epoch = UInt32(parts[2]), let total = Int(parts[3])
        else { return nil }
        self.init(operation: number == 0 ? nil : OperationID(number), epoch: epoch, total: total)
    }

    init(operation: OperationID?, epoch: UInt32, total: Int = 0) {
        (self.operation, self.epoch, self.total) = (operation, epoch, total)
    }

    /// All of them as they are stored; nil for none.
    static func stored(_ states: [NodeID: RekeyState]) -> String? {
        let list = states.sorted { $0.key < $1.key }.map { $0.value.stored($0.key) }
        return list.isEmpty ? nil : list.joined(separator: ",")
    }

    static func states(stored: String?) -> [NodeID: RekeyState] {
        var states = [NodeID: RekeyState]()
        for entry in stored?.split(separator: ",") ?? [] {
            let parts = entry.split(separator: ".")
            if let root = parts.first.flatMap({ NodeID(text: String($0)) }), let state = RekeyState(parts) {
                states[root] = state
            }
        }
        return states
    }
}

/// How far an eager re-key of a shared branch is.
public struct RekeyProgress: Sendable, Hashable {
    /// Nodes of the branch, the root included.
    public let total: Int
    /// Those whose key and content are not new yet.
    public let left: Int
    /// Those of them that cannot be written now: their records or contents do not open, or the server refuses them. The
    /// next run of the program tries them again.
    public let stuck: Int
}
