public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// A node of the tree as this device sees it: what the server has, with the local changes that are not confirmed yet.
public struct Node: Sendable, Hashable, Identifiable {
    /// The id, which never changes.
    public let id: NodeID
    /// The trunk or the node above.
    public let parent: NodeParent
    /// The name below the parent.
    public let name: NodeName
    /// The version that the server has; 0 before the node is uploaded. It grows with every change of the node.
    public let version: Version
    /// The content; nil for a node without one, and for one whose content is not uploaded yet.
    public let content: ContentInfo?
    /// Milliseconds since 1970 at which a device last changed the content; nil if the app says nothing.
    public let modified: Int64?
    /// Milliseconds since 1970 at which the server last changed the node; nil before it is uploaded. Not authenticated.
    public let changed: Int64?
    /// Milliseconds since 1970 at which the server removes the node; nil: never.
    public let burnTime: Int64?
    /// Pairs that the app attached.
    public let tags: [NodeMetadata.AppTag]
    /// Whether a local change of the node is not confirmed by the server.
    public let isPending: Bool
    /// Of a message of another account, and of its attachments: who wrote it. nil for this account's own nodes, and for
    /// a message that another device of this account has moved, until this device has verified it.
    public let origin: MessageOrigin?

    /// The account that wrote the message; nil for this account's own nodes.
    public var sender: UserID? { origin?.author }

    /// The content of a node: its sizes and where it is.
    public struct ContentInfo: Sendable, Hashable {
        /// The id of this version of the content.
        public let id: DataID
        /// Bytes of the sections.
        public let sizes: SectionSizes
        /// Bytes that the server stores.
        public let storedBytes: UInt64
        /// The blob; nil for content in the record.
        public let blob: BlobID?

        /// Describes a content.
        public init(id: DataID, sizes: SectionSizes, storedBytes: UInt64, blob: BlobID?) {
            (self.id, self.sizes, self.storedBytes, self.blob) = (id, sizes, storedBytes, blob)
        }
    }
}

extension Node: CustomStringConvertible {
    /// The id alone: names never reach a log.
    public var description: String { id.text }
}
