/// A file that belongs to a message.
///
/// In the tree it is a node below the message, with a content in up to three sections: what kind of file it is, a small
/// picture, and the file. The picture is downloaded when the message is visible, the file when the user asks for it.
public struct Attachment: Sendable, Hashable, Codable, Identifiable {
    /// The node's id.
    public let id: String
    /// The name of the file.
    public let name: String
    /// Bytes of the file.
    public let bytes: Int64
    /// Whether it has a small picture.
    public let hasThumbnail: Bool
}
