public import ThicketClient
import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol
import ThicketTree
public import ThicketTreeShape

extension ClientSession {
    /// A shared branch of another account, which syncs from now on over a connection of its own. Repeated calls return
    /// the same tree; its delegate and policies are those of the first call.
    ///
    /// The root of the branch is the only node below `home`, under the name that its owner has given to it. Below it
    /// everything is as in the own tree, as far as the letters of this account permit it: the server refuses other
    /// changes with `no-read`, `no-write` or `no-share`. When the account may no longer read the branch,
    /// `sharing.events` reports `revoked`; what is on this device stays until the app removes it.
    ///
    /// - Parameters:
    ///   - owner: the account that shares the branch.
    ///   - root: the root of the branch, as an invitation names it.
    ///   - delegate: called inside of the tree's transactions, and asked for contents.
    ///   - policy: what is downloaded without being asked for.
    ///   - nameConflicts: what happens to a node that was made here when another device has made one of its name.
    /// - Throws: `noKeys` when the session has no keys of its account; `store`, `limit`, `closed`.
    public func branch(
        of owner: UserID, root: NodeID, delegate: (any TreeDelegate)? = nil, policy: DownloadPolicy = .nothing,
        nameConflicts: NameConflictPolicy = .rename
    ) async throws(TreeError) -> Treesystem {
        if parts.isClosed { throw .closed }
        guard let identity = messageIdentity else {
            throw TreeError(.noKeys, "the session has no keys of its account: a branch opens after a sign-in with keys")
        }
        let name = BranchName(of: owner, root: root)
        let (tree, options): (Treesystem, SyncOptions)
        do throws(ClientError) { (tree, options) = try await connectedBranch(name) } catch { throw TreeError(error) }
        // The trunks of the owner's tree have keys that no member has; these open nothing.
        let keys = TreeKeys(
            secret: .random(NodeKey.bytesCount), tree: TreePlace(app: options.app, owner: owner))
        var settings = TreeOptions(options)
        (settings.branch, settings.nameConflicts) = (name, nameConflicts)
        settings.skeleton = .lazy(depth: TreeLimits.depthMax)
        if case .account(let login, _) = self.user { settings.userName = login }
        settings.identity = identity
        try await tree.start(settings, keys, delegate: delegate, policy: policy) {
            () throws(TreeError) in try TreeContents.open(self, name)
        }
        return tree
    }

    private func connectedBranch(
        _ name: BranchName
    ) async throws(ClientError) -> (Treesystem, SyncOptions) {
        let options = try await syncOptions()
        var isNew = false
        let tree = try parts.part(name.text) { () throws(ClientError) in
            isNew = true
            let place = TreePlace(app: options.app, owner: name.owner)
            return Treesystem.init(TreeConnection(self, place, name), loop: try EngineLoop())
        }
        if isNew { await followToken { [weak tree] fate in Task { await tree?.follow(fate) } } }
        return (tree, options)
    }
}

extension BranchName {
    /// The end of the names of its files: an owner's name may have any letters.
    var part: String { Hex.encode(Array(Digest256.of(Array(text.utf8)).bytes.prefix(16))) }
}
