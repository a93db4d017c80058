public import ThicketTreeShape

/// Eager re-keys: each node of a branch gets another key, and its content is sealed again.
extension TreeSharing {
    /// How far the eager re-key of a branch is.
    ///
    /// - Parameter id: the root.
    /// - Returns: nil when none runs: it is over, or there was none.
    /// - Throws: `store`, `closed`.
    public func rekeyProgress(of id: NodeID) async throws(TreeError) -> RekeyProgress? {
        try await Self.act(tree) { skeleton throws(TreeError) in Rekeying.progress(of: id, skeleton) }
    }

    /// The roots of the branches whose eager re-key runs, in the order of their ids. It goes on whenever the tree is
    /// open, also in a later run of the program.
    ///
    /// - Throws: `store`, `closed`.
    public var rekeys: [NodeID] {
        get async throws(TreeError) {
            try await Self.act(tree) { skeleton throws(TreeError) in skeleton.branches.rekeys.keys.sorted() }
        }
    }

    /// Waits until the eager re-key of a branch is over. Returns at once when none runs.
    ///
    /// - Throws: `content` when some nodes cannot be written now; `cancelled`, `deadline`, `network`, `closed`.
    public func waitForRekey(of id: NodeID, timeout: Duration = .seconds(3_600)) async throws(TreeError) {
        try await tree.wait(rekey: id, timeout)
    }
}
