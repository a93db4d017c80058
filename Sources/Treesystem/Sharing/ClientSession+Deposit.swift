public import ThicketClient
public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

extension ClientSession {
    /// Puts a node into a drop box: a shared branch of another account in which this one has the letter `W` or `U`. It
    /// is sealed to the owner alone; this account can neither list nor read the branch, and keeps nothing of it.
    ///
    /// The call returns when the server has the node and its attachments. It is not queued: after `network` they may be
    /// there. A further call with the same `id` makes no second node: it returns if the server has the node, also if
    /// the owner has moved it meanwhile. One that the owner has removed since comes again.
    ///
    /// - Parameters:
    ///   - content: the content.
    ///   - name: the name; the owner's devices add the beginning of the id to it.
    ///   - owner: the account that shares the branch.
    ///   - root: the root of the branch, as an invitation names it.
    ///   - tags: pairs of the app.
    ///   - modified: milliseconds since 1970 at which the content was last changed; nil: not stated.
    ///   - attachments: nodes directly below, with different names, at most 63. They need the letter `W`.
    ///   - id: the id of the node, from `NodeID.random()`, for calls that may be repeated; nil: a new one.
    ///   - progress: receives the bytes that were transferred, for contents that are not in the record.
    /// - Returns: the id of the node.
    /// - Throws: `noKeys`; `keys` when the owner has no keys that may be used; `refused` with the server's word when
    ///   the list does not permit it; `nameTaken`, `network`, `content`, `store`, `limit`, `closed`.
    @discardableResult
    public func deposit(
        _ content: NodeSections, named name: NodeName, into owner: UserID, root: NodeID,
        tags: [NodeMetadata.AppTag] = [], modified: Int64? = nil,
        attachments: [(name: NodeName, content: NodeSections)] = [], id: NodeID? = nil,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(TreeError) -> NodeID {
        if parts.isClosed { throw .closed }
        guard let identity = messageIdentity else {
            throw TreeError(.noKeys, "the session has no keys of its account: a deposit is signed")
        }
        guard attachments.count <= DepositLimits.attachmentsMax else {
            throw TreeError(.limit, "a deposit has at most \(DepositLimits.attachmentsMax) attachments")
        }
        guard Set(attachments.map(\.name.folded)).count == attachments.count else {
            throw TreeError(.nameTaken, "two attachments have one name")
        }
        let draft = NodeDraft(name, modified: modified, appTags: tags)
        let nodes =
            [Deposit.Part(draft, content, id: id ?? .random())]
            + attachments.map { Deposit.Part(NodeDraft($0.name), $0.content) }
        let branch = BranchName(of: owner, root: root)
        try await Deposit(self, branch, nodes, by: identity, isRepeated: id != nil).run(progress)
        return nodes[0].id
    }
}

/// Bounds of deposits in drop boxes.
public enum DepositLimits {
    /// Attachments of one deposit, as of one message.
    public static let attachmentsMax = 63
}
