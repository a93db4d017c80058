public import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

extension ClientSession {
    /// The tree of the account, which syncs from now on over a connection of its own. Repeated calls return the same
    /// tree; its delegate and policies are those of the first call.
    ///
    /// The tree is a file beside the session's store, and a folder of sealed files. With a store in memory, the tree is
    /// in memory too, and the folder is a temporary one that `close` removes.
    ///
    /// - Parameters:
    ///   - delegate: called inside of the tree's transactions, and asked for contents.
    ///   - policy: what is downloaded without being asked for.
    ///   - skeleton: how much of the tree a new device reads.
    ///   - nameConflicts: what happens to a node that was made here when another device has made one of its name.
    /// - Throws: `noKeys` when the session has no keys of its account; `store`, `limit`, `closed`.
    public func tree(
        delegate: (any TreeDelegate)? = nil, policy: DownloadPolicy = .nothing, skeleton: SkeletonPolicy = .full,
        nameConflicts: NameConflictPolicy = .rename
    ) async throws(TreeError) -> Treesystem {
        if parts.isClosed { throw .closed }
        guard let (owner, secret) = sync.treeSecret else {
            throw TreeError(.noKeys, "the session has no keys of its account: the tree opens after a sign-in with keys")
        }
        guard let user = try? UserID(owner) else { throw TreeError(.store, "the account's id is not a user id") }
        let (tree, options): (Treesystem, SyncOptions)
        do throws(ClientError) { (tree, options) = try await connectedTree(of: user) } catch { throw TreeError(error) }
        let keys = TreeKeys(secret: secret, tree: TreePlace(app: options.app, owner: user))
        var settings = TreeOptions(options)
        (settings.skeleton, settings.nameConflicts) = (skeleton, nameConflicts)
        // The server names a built-in account by its login name.
        if case .account(let name, _) = self.user { settings.userName = name }
        settings.identity = messageIdentity
        try await tree.start(settings, keys, delegate: delegate, policy: policy) {
            () throws(TreeError) in try TreeContents.open(self)
        }
        // The own entries in the key log are checked while the tree connects. Without a key book the tree works.
        if sessionPlace.options.startsOnline { _ = try? await people() }
        return tree
    }

    /// The session's tree, perhaps not open yet, and the options of its connection.
    private func connectedTree(of user: UserID) async throws(ClientError) -> (Treesystem, SyncOptions) {
        let options = try await syncOptions()
        var isNew = false
        let tree = try parts.part("tree") { () throws(ClientError) in
            isNew = true
            return Treesystem.init(
                TreeConnection(self, TreePlace(app: options.app, owner: user)), loop: try EngineLoop())
        }
        if isNew { await followToken { [weak tree] fate in Task { await tree?.follow(fate) } } }
        return (tree, options)
    }
}
