import ThicketClient
public import ThicketTree
public import ThicketTreeShape

/// Reading a lazy skeleton further.
extension Treesystem {
    /// Whether all children of a place are known on this device: always with a full skeleton. Otherwise `children`,
    /// `hasChildren`, `node(at:)` and `walk` give what is known.
    ///
    /// - Throws: `store`, `closed`.
    public func isComplete(_ parent: NodeParent) throws(TreeError) -> Bool {
        try read { machine throws(TreeError) in try machine.isListed(parent) }
    }

    /// Reads the children of a place from the server, unless they are known. They stay known, and change with the log.
    ///
    /// - Throws: `offline` when they are not known and there is no connection, `deadline`, `cancelled`, `store`,
    ///   `closed`.
    public func load(_ parent: NodeParent, timeout: Duration = .seconds(60)) async throws(TreeError) {
        if try isComplete(parent) { return }
        if case .offline? = core?.machine.status {
            throw TreeError(.offline, "the children are not on this device, and there is no connection")
        }
        try act { machine throws(TreeError) in try machine.load([parent]) }
        try await wait(list: parent, timeout)
    }

    /// Reads the children of every node on a path, and those of its end.
    ///
    /// - Throws: as `load(_:)`; `notFound` when there is no such node.
    public func load(_ path: TreePath, timeout: Duration = .seconds(60)) async throws(TreeError) {
        for depth in 0...path.depth {
            let place = try place(at: TreePath(path.trunk, names: Array(path.names.prefix(depth))))
            try await load(place, timeout: timeout)
        }
    }
}
