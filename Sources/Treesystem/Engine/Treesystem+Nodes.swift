public import ThicketTree
public import ThicketTreeShape

/// Reading the local tree.
extension Treesystem {
    /// Children that `children` returns without a limit.
    public static let childrenMax = 10_000
    /// Rows that `walk` reads at a time.
    static let pageRows = 100

    /// The node at a path; nil for a trunk, and when there is none.
    ///
    /// - Throws: `store`, `closed`.
    public func node(at path: TreePath) throws(TreeError) -> Node? {
        try read { machine throws(TreeError) in
            try machine.row(at: path)?.node(in: machine)
        }
    }

    /// The node with this id; nil when it is not shown.
    ///
    /// - Throws: `store`, `closed`.
    public func node(_ id: NodeID) throws(TreeError) -> Node? {
        try read { machine throws(TreeError) in try machine.store.row(id)?.node(in: machine) }
    }

    /// The path of a node; nil when it is not shown.
    ///
    /// - Throws: `store`, `closed`.
    public func path(of id: NodeID) throws(TreeError) -> TreePath? {
        try read { machine throws(TreeError) in
            guard let row = try machine.store.row(id), row.state == .open else { return nil }
            return try machine.store.path(of: .node(id))
        }
    }

    /// The children of a node or a trunk.
    ///
    /// - Parameters:
    ///   - parent: the node or the trunk.
    ///   - order: their order.
    ///   - limit: at most so many, 1...`childrenMax`; `walk` reads more.
    /// - Throws: `store`, `closed`.
    public func children(
        of parent: NodeParent, order: ChildOrder = .newestFirst, limit: Int = Treesystem.childrenMax
    ) throws(TreeError) -> [Node] {
        try read { machine throws(TreeError) in
            let count = min(max(1, limit), Self.childrenMax)
            return try machine.store.children(of: parent, order: order, offset: 0, limit: count).compactMap {
                $0.node(in: machine)
            }
        }
    }

    /// As above, of the node at a path.
    ///
    /// - Throws: `notFound` when there is none; `store`, `closed`.
    public func children(
        of path: TreePath, order: ChildOrder = .newestFirst, limit: Int = Treesystem.childrenMax
    ) throws(TreeError) -> [Node] { try children(of: place(at: path), order: order, limit: limit) }

    /// Whether a node or a trunk has children.
    ///
    /// - Throws: `store`, `closed`.
    public func hasChildren(_ parent: NodeParent) throws(TreeError) -> Bool {
        try read { machine throws(TreeError) in try machine.store.hasChildren(parent) }
    }

    /// A name like this one that no child of the parent has: `a.txt`, `a 2.txt`, …
    ///
    /// - Throws: `store`, `closed`.
    public func freeName(_ name: NodeName, under parent: NodeParent) throws(TreeError) -> NodeName {
        try read { machine throws(TreeError) in
            let taken = try machine.store.names(below: parent)
            return name.free { taken.contains($0) }
        }
    }

    /// The trunk or the node at a path.
    ///
    /// - Throws: `notFound` when there is none; `store`, `closed`.
    public func place(at path: TreePath) throws(TreeError) -> NodeParent {
        try read { machine throws(TreeError) in
            guard let place = try machine.place(at: path) else {
                throw TreeError(.notFound, "there is no node at this path")
            }
            return place
        }
    }

    /// All nodes below a place, each before what is below it, siblings by name.
    ///
    /// The nodes are read in pages as the reader goes on; at most one page for each level is in memory. A node that
    /// moves meanwhile may be missing, or be there twice.
    public nonisolated func walk(from path: TreePath) -> AsyncThrowingStream<(path: TreePath, node: Node), any Error> {
        let walk = TreeWalk(self, path)
        return AsyncThrowingStream { try await walk.next() }
    }

    func page(of parent: NodeParent, after last: NodeRow?) throws(TreeError) -> [(row: NodeRow, node: Node?)] {
        try read { machine throws(TreeError) in
            try machine.store.page(of: parent, after: last, limit: Self.pageRows).map { ($0, $0.node(in: machine)) }
        }
    }

    // MARK: - What the app keeps

    /// A value that the app stored in a transaction.
    ///
    /// - Throws: `store`, `closed`.
    public func value(_ collection: String, _ key: String) throws(TreeError) -> [UInt8]? {
        try read { machine throws(TreeError) in try machine.store.appValue(collection, key) }
    }

    /// Values of a collection by their order and key.
    ///
    /// - Parameters:
    ///   - collection: a name of the app's choice.
    ///   - last: the page begins behind this value, which need not be there any more; nil: with the first one.
    ///   - isDescending: whether the largest order comes first.
    ///   - limit: at most so many, 1...`childrenMax`.
    /// - Throws: `store`, `closed`.
    public func page(
        of collection: String, after last: AppValue? = nil, isDescending: Bool = false, limit: Int
    ) throws(TreeError) -> [AppValue] {
        try read { machine throws(TreeError) in
            let count = min(max(1, limit), Self.childrenMax)
            return try machine.store.appPage(collection, after: last, isDescending: isDescending, limit: count)
        }
    }

    /// The faults of all records that do not open or are not genuine.
    ///
    /// - Throws: `store`, `closed`.
    public var quarantined: [IntegrityFault] {
        get throws(TreeError) { try read { machine throws(TreeError) in try machine.store.faults() } }
    }
}

extension NodeRow {
    func node(in machine: TreeMachine) -> Node? { node(isPending: machine.queue.has(id)) }
}
