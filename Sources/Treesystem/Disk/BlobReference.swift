public import ThicketCrypto
public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// What a transfer and a file of the store need to know of a node's content in a blob.
public struct BlobReference: Sendable {
    /// The owner of the tree; the server permits a download by owner and node.
    public let owner: UserID
    /// The node whose current record has the blob.
    public let node: NodeID
    /// The blob.
    public let blob: BlobID
    /// What opens the chunks; it contains the id of the version.
    public let key: ContentKey
    /// Where the sections are.
    public let map: SectionMap
    /// The version of the record that was read, for needs-download marks.
    public let version: Int64

    /// A reference from the parts of an opened record.
    public init(
        owner: UserID, node: NodeID, blob: BlobID, key: ContentKey, map: SectionMap, version: Int64
    ) {
        (self.owner, self.node, self.blob) = (owner, node, blob)
        (self.key, self.map, self.version) = (key, map, version)
    }

    /// Bytes of the blob.
    public var sealedLength: UInt64 { map.layout.sealedLength }

    /// The id of this version of the content.
    public var id: DataID {
        guard let id = DataID(octets: key.dataID) else { preconditionFailure("a content key has 16 bytes of id") }
        return id
    }
}
