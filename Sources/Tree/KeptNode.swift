public import ThicketCrypto
public import ThicketTreeShape

/// What a device keeps of a node that another device removed, so that it can create the same node again: its key and
/// its metadata. With another key, what other devices have put below the node meanwhile could not be opened.
public struct KeptNode: Sendable {
    let key: NodeKey
    let metadata: NodeMetadata

    /// The written form: the key (32) ‖ the metadata. Secret.
    public var octets: SecureBytes { .joined([key.secret, metadata.octets]) }

    /// - Returns: nil for bytes that are not the written form.
    public init?(octets: SecureBytes) {
        guard octets.count > NodeKey.bytesCount else { return nil }
        let bytes = octets.withUnsafeBytes { Array($0) }
        let (key, metadata) = (
            SecureBytes(copying: Array(bytes.prefix(NodeKey.bytesCount))),
            SecureBytes(copying: Array(bytes.dropFirst(NodeKey.bytesCount)))
        )
        guard let key = try? NodeKey(key), let metadata = try? NodeMetadata(octets: metadata) else { return nil }
        (self.key, self.metadata) = (key, metadata)
    }

    /// What opens the nodes below it, which other devices may still have.
    ///
    /// - Parameter epoch: of the audience.
    public func childSecrets(of node: NodeID, epoch: UInt32) -> ChildSecrets {
        ChildSecrets(
            node: node, epoch: epoch, key: key, childSalt: metadata.childSalt, earlier: metadata.earlierKeys)
    }

    init(_ node: OpenedNode) {
        var metadata = node.metadata
        if let list = node.record.shareList {
            metadata.endedList = EndedList(list, at: ShareList.Place(node.tree, root: node.id))
        }
        (key, self.metadata) = (node.key, metadata)
    }
}

extension OpenedNode {
    /// What is kept when another device removes the node.
    public var kept: KeptNode { KeptNode(self) }
}
