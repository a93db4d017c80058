public import ThicketClient
import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

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
    ///   - invite: the invitation, which a pointer node keeps (`Node.branch`): a device that opens the branch for the
    ///     first time believes no older list. nil: it believes the list that the server has.
    ///   - delegate: called inside of the tree's transactions, and asked for contents.
    ///   - policy: what is downloaded without being asked for.
    ///   - nameConflicts: what happens to a node that was made here when another device has made one of its name.
    /// - Throws: `noKeys` when the session has no keys of its account; `store`, `limit`, `closed`.
    public func branch(
        of owner: UserID, root: NodeID, invite: BranchInvite? = nil, delegate: (any TreeDelegate)? = nil,
        policy: DownloadPolicy = .nothing, nameConflicts: NameConflictPolicy = .rename
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
        settings.invite = invite.flatMap { $0.branch == name ? $0 : nil }
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

extension ClientSession {
    /// Removes the local copy of a branch of another account, with its changes that were not sent. The branch must be
    /// closed (`Treesystem.close`). Does nothing when there is none.
    ///
    /// - Throws: `store`, also while the branch is open.
    public func removeBranch(of owner: UserID, root: NodeID) throws(TreeError) {
        let (location, end) = (sessionPlace.store, "-" + BranchName(of: owner, root: root).part)
        do throws(ClientError) {
            guard let store = try location.folder(part: "tree" + end),
                let contents = try location.folder(part: "files" + end)
            else { return }
            // An open one has the lock. One that cannot be read is removed too.
            do throws(ClientError) { _ = try location.open(part: "tree" + end, sessionPlace.options.durability) } catch
            {
                if error.code == .storeInUse { throw error }
            }
            try Self.remove(store.path, contents.path)
        } catch { throw TreeError(error) }
    }

    /// How many changes wait for the server in this device's copy of a branch of another account, which must be closed.
    ///
    /// - Returns: nil when there is no copy.
    /// - Throws: `store`, also while the branch is open.
    public func waitingChanges(inBranchOf owner: UserID, root: NodeID) throws(TreeError) -> Int? {
        let (location, part) = (sessionPlace.store, "tree-" + BranchName(of: owner, root: root).part)
        do throws(ClientError) {
            guard let path = try location.folder(part: part)?.path, access(path, F_OK) == 0,
                let file = try location.open(part: part, sessionPlace.options.durability)
            else { return nil }
            do throws(TreeError) { return try TreeStore(file).operations().count } catch {
                throw ClientError(.store, error.detail)
            }
        } catch { throw TreeError(error) }
    }

    private static func remove(_ store: String, _ contents: String) throws(ClientError) {
        let files = SystemFiles()
        do throws(ContentError) {
            for name in (try? files.names(in: contents)) ?? [] { try files.remove("\(contents)/\(name)") }
            // Its other files have its name and an ending.
            let parts = store.split(separator: "/", omittingEmptySubsequences: false)
            let folder = parts.dropLast().joined(separator: "/")
            guard let base = parts.last else { return }
            for name in try files.names(in: folder.isEmpty ? "." : folder) where name.hasPrefix(base) {
                try files.remove("\(folder.isEmpty ? "." : folder)/\(name)")
            }
        } catch { throw ClientError(.store, error.description) }
        rmdir(contents)
    }
}
