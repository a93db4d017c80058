import ThicketCrypto
public import ThicketKeyLog
public import ThicketTreeShape

/// Deposits in drop boxes: nodes that members without the right to read have made below the root of a branch (decision
/// 0067).
extension NodeSealer {
    /// The record of a deposit. Its key is wrapped for the owner, and its tag is that of its id: its author has neither
    /// key nor salt of the root, and does not know which names are taken.
    ///
    /// - Parameters:
    ///   - draft: the node.
    ///   - id: its id.
    ///   - root: the root of the branch.
    ///   - owner: newest verified keys of the owner.
    ///   - author: the member.
    /// - Throws: `unusableKey`, and as `create`.
    public func deposit(
        _ draft: NodeDraft, _ id: NodeID, into root: NodeID, for owner: PublicKeys, by author: MessageIdentity
    ) throws(SealFault) -> NodeRecord { try depositing(draft, id, into: root, for: owner, by: author).record }

    /// As `deposit`, with what makes the records of its attachments.
    ///
    /// - Throws: as `deposit`.
    package func depositing(
        _ draft: NodeDraft, _ id: NodeID, into root: NodeID, for owner: PublicKeys, by author: MessageIdentity
    ) throws(SealFault) -> (record: NodeRecord, childKeys: ParentKeys) {
        guard let appTags = NodeMetadata.ordered(draft.appTags) else { throw .badAppTags }
        let key = newKey()
        let content = try sealed(draft.content)
        let metadata = NodeMetadata(
            name: draft.name, childSalt: random.secret(NodeMetadata.saltBytes), content: content?.access,
            modified: draft.modified, appTags: appTags)
        let context = KeyWrap(of: id, in: tree, epoch: 0, for: tree.owner, keyID: owner.id)
        guard let wrapped = try? context.seal(key.secret, to: owner.encryption) else { throw .unusableKey }
        let bare = NodeRecord(
            parent: .node(root), tag: NodeTag(inInbox: id), epoch: 0,
            wraps: [RecordWrap(.user(tree.owner, keyID: owner.id), sealed: wrapped)],
            commitment: Self.commitment(key), data: content?.data, burnTime: draft.burnTime, base: 0)
        let record = try sealing(metadata, with: key, in: bare, id, by: author)
        return (record, ChildSecrets(node: id, epoch: 0, key: key, childSalt: metadata.childSalt).keys)
    }
}

extension NodeRecord {
    /// Whether it is a deposit that its owner has not written yet: sealed to the owner alone, and named by its id.
    public func isDeposit(_ id: NodeID) -> Bool {
        guard case .node = parent, shareList == nil, signature != nil, tag == NodeTag(inInbox: id), wraps.count == 1
        else { return false }
        return if case .user = wraps[0].reader { true } else { false }
    }
}
