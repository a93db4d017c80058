import ThicketTreeShape

/// What is kept in memory of contents that may have to be merged.
struct MergeState {
    /// The nodes with a base, and its bytes.
    private var bases = [NodeID: Int64]()
    /// The sum of `bases`.
    private(set) var bytes: Int64 = 0
    /// Nodes of which the server has another content than the base: a waiting one is merged before it is sent.
    var behind = Set<NodeID>()
    /// Nodes whose contents are being merged. Not in the store.
    var running = Set<NodeID>()

    init() {}

    init(_ store: TreeStore) throws(TreeError) {
        for (node, bytes, isBehind) in try store.bases() {
            self[node] = bytes
            if isBehind { behind.insert(node) }
        }
    }

    /// The bytes of a node's base; nil: it has none.
    subscript(node: NodeID) -> Int64? {
        get { bases[node] }
        set {
            bytes += (newValue ?? 0) - (bases[node] ?? 0)
            bases[node] = newValue
        }
    }

    /// Whether an operation waits until its content is merged.
    func blocks(_ operation: PendingOperation) -> Bool {
        behind.contains(operation.node) && operation.fields.contains(.content)
    }
}
