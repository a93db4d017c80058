import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Eager re-keys of shared branches, which go on in each command that is connected.
enum RekeyCall {
    /// Waits until all that run are over.
    static func finishAll(in open: OpenTree) async throws(Failure) {
        let tree = open.tree
        let paths = try await growing("the tree was not read") { () throws(TreeError) in
            var paths = [(root: NodeID, path: TreePath)]()
            for root in try await tree.sharing.rekeys {
                if let path = try await tree.path(of: root) { paths.append((root, path)) }
            }
            return paths
        }
        for (root, path) in paths { try await finish(root, path, in: open) }
    }

    /// Waits until the re-key of one branch is over, and shows how far it is.
    static func finish(_ root: NodeID, _ path: TreePath, in open: OpenTree) async throws(Failure) {
        let tree = open.tree
        let name = TreeText.named(path)
        let events = tree.sharing.events
        let before = try await growing("the tree was not read") { () throws(TreeError) in
            try await tree.sharing.rekeyProgress(of: root)
        }
        guard let before else { return }
        let follower = Task {
            var bar = ProgressBar("encrypting \(name) again", total: before.total)
            defer { bar.clear() }
            for await event in events {
                guard case .rekeying(root, let left, let total) = event else { continue }
                bar.update(total - left)
            }
        }
        defer { follower.cancel() }
        try await open.waiting(.kept("encrypt \(name) again")) { () throws(TreeError) in
            try await tree.sharing.waitForRekey(of: root, timeout: .seconds(OpenTree.longestWaitSeconds))
        }
        follower.cancel()
        await follower.value
        try LineOutput.write("\(TreeText.shown(path)): \(Counts.nodes(before.total)) encrypted again\n")
    }
}
