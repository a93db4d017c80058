import ThicketCrypto
public import ThicketTreeShape

/// Opens records of one tree.
public struct NodeOpener: Sendable {
    /// The tree.
    public let tree: TreePlace

    /// - Parameter tree: the tree that the records come from; a record of another one does not open.
    public init(_ tree: TreePlace) { self.tree = tree }

    /// Opens a record with the keys of its parent: unwraps the node's key, checks the commitment, opens the metadata,
    /// and checks that the name gives the tag.
    ///
    /// The seal of the metadata authenticates the whole canonical form. A signature is neither required nor verified,
    /// because in a private audience only the owner has the keys (decision 0092). The caller checks that the record is
    /// not older than one that it knows.
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
        guard let wrap = record.wraps.first(where: { $0.reader == .parent }) else { throw .noWrap }
        guard let key = parent.unwrap(wrap, of: id, in: tree) else { throw .wrapDamaged }
        guard (try? key.isCommitted(by: record.commitment)) == true else { throw .otherCommitment }
        let node = OpenedNode(
            tree: tree, id: id, record: record, metadata: try metadata(of: record, id, key), key: key)
        guard (node.metadata.content == nil) == (record.data == nil) else { throw .contentMismatch }
        guard parent.tag(of: node.metadata.name, id) == record.tag else { throw .nameMismatch(node) }
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

extension NodeMetadata {
    /// Hides the length of names.
    static let padding = Padding.multiple(of: TreeLimits.metadataStep)
}
