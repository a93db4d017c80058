public import ThicketClient
public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

extension ClientSession {
    /// Puts a node into a drop box: a shared branch of another account in which this one has the letter `W` or `U`. It
    /// is sealed to the owner alone; this account can neither list nor read the branch, and keeps nothing of it.
    ///
    /// The call returns when the server has the node. It is not queued: after `network` the node may be there, and a
    /// further call makes another one.
    ///
    /// - Parameters:
    ///   - content: the content.
    ///   - name: the name; the owner's devices add the beginning of the id to it.
    ///   - owner: the account that shares the branch.
    ///   - root: the root of the branch, as an invitation names it.
    ///   - tags: pairs of the app.
    ///   - modified: milliseconds since 1970 at which the content was last changed; nil: not stated.
    /// - Throws: `noKeys`; `keys` when the owner has no keys that may be used; `refused` with the server's word when
    ///   the list does not permit it; `network`, `content`, `store`, `limit`, `closed`.
    public func deposit(
        _ content: NodeSections, named name: NodeName, into owner: UserID, root: NodeID,
        tags: [NodeMetadata.AppTag] = [], modified: Int64? = nil
    ) async throws(TreeError) {
        if parts.isClosed { throw .closed }
        guard let identity = messageIdentity else {
            throw TreeError(.noKeys, "the session has no keys of its account: a deposit is signed")
        }
        let draft = NodeDraft(name, modified: modified, appTags: tags)
        try await Deposit(self, BranchName(of: owner, root: root), draft, by: identity).run(content)
    }
}
