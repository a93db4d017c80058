import ThicketCrypto
public import ThicketTreeShape

/// Opens records of one tree.
public struct NodeOpener: Sendable {
    /// The tree.
    public let tree: TreePlace
    /// Opens what others have sent to the inbox; nil: it does not open.
    private let identity: MessageIdentity?

    /// - Parameters:
    ///   - tree: the tree that the records come from; a record of another one does not open.
    ///   - identity: the keys of the tree's owner to which others seal messages.
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
        guard record.epoch == parent.epoch else { throw .otherEpoch }
        let key = try key(of: record, id, below: parent)
        guard (try? key.isCommitted(by: record.commitment)) == true else { throw .otherCommitment }
        let node = OpenedNode(
            tree: tree, id: id, record: record, metadata: try metadata(of: record, id, key), key: key)
        guard (node.metadata.content == nil) == (record.data == nil) else { throw .contentMismatch }
        guard parent.tag(of: node.metadata.name, id) == record.tag else { throw .nameMismatch(node) }
        return node
    }

    private func key(
        of record: NodeRecord, _ id: NodeID, below parent: ParentKeys
    ) throws(NodeFault) -> NodeKey {
        if let wrap = record.wraps.first(where: { $0.reader == .parent }) {
            guard let key = parent.unwrap(wrap, of: id, in: tree) else { throw .wrapDamaged }
            return key
        }
        guard record.parent == .trunk(.inbox), let identity,
            let wrap = record.wraps.first(where: { $0.isInboxWrap(of: tree) }), let keyID = wrap.keyID
        else { throw .noWrap }
        let context = KeyWrap(of: id, in: tree, epoch: record.epoch, keyID: keyID)
        guard let secret = try? context.open(wrap.sealed, with: identity.exchange), let key = try? NodeKey(secret)
        else {
            throw .wrapDamaged
        }
        return key
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

extension RecordWrap {
    /// Whether it is for the owner of a tree, as in a message in its inbox.
    func isInboxWrap(of tree: TreePlace) -> Bool {
        if case .user(tree.owner, _) = reader { true } else { false }
    }
}

extension KeyWrap {
    /// The context of a message's key: owner and recipient are the receiver.
    init(of id: NodeID, in tree: TreePlace, epoch: UInt32, keyID: String) {
        let owner = tree.owner.text
        self.init(
            owner: owner, app: tree.app.text, node: id.text, epoch: epoch, recipient: owner, recipientKey: keyID)
    }
}

extension NodeMetadata {
    /// Hides the length of names.
    static let padding = Padding.multiple(of: TreeLimits.metadataStep)
}
