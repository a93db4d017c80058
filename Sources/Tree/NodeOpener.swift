import ThicketCrypto
import ThicketProtocol
public import ThicketTreeShape

/// Opens records of one tree.
public struct NodeOpener: Sendable {
    /// The tree.
    public let tree: TreePlace
    /// Opens what others have sent to the inbox, and the roots of branches of others; nil: neither opens.
    let identity: MessageIdentity?

    /// - Parameters:
    ///   - tree: the tree that the records come from; a record of another one does not open.
    ///   - identity: the keys of this account: the tree's owner, or a member of a shared branch.
    public init(_ tree: TreePlace, identity: MessageIdentity? = nil) { (self.tree, self.identity) = (tree, identity) }

    /// Opens a record with the keys of its parent: unwraps the node's key, checks the commitment, opens the metadata,
    /// and checks that the name gives the tag.
    ///
    /// The seal of the metadata authenticates the whole canonical form. A signature is neither required nor verified,
    /// because in a private audience only the owner has the keys (decision 0092). A message in the inbox opens with the
    /// key to which it was sealed, and so may be from anyone until `MessageCheck` has verified it
    /// (`OpenedNode.isFromOthers`). The caller checks that the record is not older than one that it knows.
    ///
    /// - Parameters:
    ///   - record: the record.
    ///   - id: the key under which the server has it.
    ///   - parent: the keys of `record.parent`.
    /// - Throws: `NodeFault`; `nameMismatch` contains the node.
    public func open(
        _ record: NodeRecord, _ id: NodeID, below parent: ParentKeys
    ) throws(NodeFault) -> OpenedNode {
        guard record.parent == parent.parent else { throw .otherParent }
        // The root of a shared branch has its own epochs; a node that was not written since hangs on an earlier one.
        guard record.epoch == parent.epoch || record.shareList != nil || parent.hasEarlierKeys || record.isDeposit(id)
        else { throw .otherEpoch }
        let (key, access) = try key(of: record, id, below: parent)
        let node = try opened(record, id, key, access)
        if record.isDeposit(id) { return node }
        guard parent.tag(of: node.metadata.name, id) == record.tag else { throw .nameMismatch(node) }
        return node
    }

    private func key(
        of record: NodeRecord, _ id: NodeID, below parent: ParentKeys
    ) throws(NodeFault) -> (NodeKey, OpenedNode.Access) {
        if let wrap = record.wraps.first(where: { $0.reader == .parent }) {
            guard let found = parent.unwrap(wrap, of: id, epoch: record.epoch, in: tree) else { throw .wrapDamaged }
            return (found.key, found.isNewest ? .parent : .earlierKey)
        }
        // The root of a branch in which a member has begun an epoch, a deposit in a drop box, or a message.
        guard record.parent == .trunk(.inbox) || record.shareList != nil || record.isDeposit(id),
            record.wraps.contains(where: { $0.isWrap(for: tree.owner) })
        else {
            throw .noWrap
        }
        return (try ownKey(of: record, id), .parent)
    }

    /// The key of a record that is wrapped for this account.
    ///
    /// - Throws: `noWrap`, `otherKeys`, `wrapDamaged`.
    func ownKey(of record: NodeRecord, _ id: NodeID) throws(NodeFault) -> NodeKey {
        guard let identity, let wrap = record.wraps.first(where: { $0.isWrap(for: identity.user) }),
            let keyID = wrap.keyID
        else { throw .noWrap }
        guard let exchange = identity.exchange(keyID) else { throw .otherKeys }
        let context = KeyWrap(of: id, in: tree, epoch: record.epoch, for: identity.user, keyID: keyID)
        guard let secret = try? context.open(wrap.sealed, with: exchange), let key = try? NodeKey(secret)
        else {
            throw .wrapDamaged
        }
        return key
    }

    /// A record whose key is open: commitment, metadata and content belong together.
    ///
    /// - Throws: `otherCommitment`, `metadataDamaged`, `newerMetadata`, `contentMismatch`.
    func opened(
        _ record: NodeRecord, _ id: NodeID, _ key: NodeKey, _ access: OpenedNode.Access
    ) throws(NodeFault) -> OpenedNode {
        guard (try? key.isCommitted(by: record.commitment)) == true else { throw .otherCommitment }
        let node = OpenedNode(
            tree: tree, id: id, record: record, metadata: try metadata(of: record, id, key), key: key, access: access)
        guard (node.metadata.content == nil) == (record.data == nil) else { throw .contentMismatch }
        return node
    }

    private func metadata(
        of record: NodeRecord, _ id: NodeID, _ key: NodeKey
    ) throws(NodeFault) -> NodeMetadata {
        let data = CanonicalForm.sealing.bytes(of: record, id, in: tree)
        guard let subkey = try? key.subkey(.meta),
            let padded = try? SealedMessage.openSecret(record.metadata, key: subkey, data: data),
            let clear = NodeMetadata.padding.unpad(padded)
        else { throw .metadataDamaged }
        do throws(NodeMetadata.Fault) {
            return try NodeMetadata(octets: clear)
        } catch { throw error == .newerFormat ? .newerMetadata : .metadataDamaged }
    }
}

extension NodeRecord {
    /// The id of the keys of an account for which the record is wrapped; nil: it is not wrapped for the account.
    public func keyID(for user: UserID) -> String? { wraps.first { $0.isWrap(for: user) }?.keyID }
}

extension RecordWrap {
    /// Whether it is for an account.
    func isWrap(for user: UserID) -> Bool {
        if case .user(user, _) = reader { true } else { false }
    }
}

extension KeyWrap {
    /// The context of a node's key for one account: the receiver of a message, or a reader of a shared branch.
    init(of id: NodeID, in tree: TreePlace, epoch: UInt32, for user: UserID, keyID: String) {
        self.init(
            owner: tree.owner.text, app: tree.app.text, node: id.text, epoch: epoch, recipient: user.text,
            recipientKey: keyID)
    }
}

extension NodeMetadata {
    /// Hides the length of names.
    static let padding = Padding.multiple(of: TreeLimits.metadataStep)
}
