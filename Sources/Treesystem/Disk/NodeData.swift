/// Where one section of a node's content comes from.
public indirect enum NodeData: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// The path of a file with clear content, which must exist until its node is uploaded.
    case file(String)
    /// The data section of a content that is sealed already.
    case sealedFile(SealedFile)
    /// Made when it is needed. A promise that throws leaves its operation waiting; it never becomes an empty content.
    case promise(@Sendable () async throws -> NodeData)
    /// No content.
    case none
}

/// The sections of a content as an app hands them over.
public struct NodeSections: Sendable {
    /// What the app says about the data; nil is an empty section.
    public var metadata: NodeData?
    /// A small picture; nil is an empty section.
    public var thumbnail: NodeData?
    /// The data; nil is an empty section.
    public var data: NodeData?

    /// A content of three sections.
    public init(metadata: NodeData? = nil, thumbnail: NodeData? = nil, data: NodeData? = nil) {
        (self.metadata, self.thumbnail, self.data) = (metadata, thumbnail, data)
    }
}
