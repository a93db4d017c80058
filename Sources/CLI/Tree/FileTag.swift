import ThicketCrypto
import ThicketTree
import ThicketTreesystem

/// What the commands remember of a file beside the content of its node: enough to compare a file with the node without
/// its content. It is a pair of the node, sealed with its metadata: the server sees nothing of it.
///
/// It describes the content only if size and time are those of the node: another app may have written the content
/// later without it.
struct FileTag: Sendable, Equatable {
    static let key = "thicket-file"

    /// SHA-256 of the content.
    let digest: [UInt8]
    /// Bytes of the content.
    let size: UInt64
    /// When the file was last changed, in milliseconds since 1970.
    let modified: Int64

    init(digest: [UInt8], size: UInt64, modified: Int64) {
        (self.digest, self.size, self.modified) = (digest, size, modified)
    }

    /// The pair of a node; nil when it has none, or not of this form.
    init?(_ node: Node) {
        guard let value = node.tags.first(where: { same($0.key, Self.key) })?.value, value.count == Self.bytes else {
            return nil
        }
        let number = { (start: Int) in value[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(
            digest: Array(value[..<SHA256.digestBytes]), size: number(SHA256.digestBytes),
            modified: Int64(bitPattern: number(SHA256.digestBytes + 8)))
    }

    private static let bytes = SHA256.digestBytes + 16

    /// Digest, size and time, the numbers in eight bytes each.
    var tag: NodeMetadata.AppTag? {
        var value = digest
        for number in [size, UInt64(bitPattern: modified)] { withUnsafeBytes(of: number.bigEndian) { value += $0 } }
        return NodeMetadata.AppTag(Self.key, value)
    }

    /// The pairs of a node with this one in the place of an older one.
    func replacing(in tags: [NodeMetadata.AppTag]) -> [NodeMetadata.AppTag] {
        tags.filter { !same($0.key, Self.key) } + [tag].compactMap { $0 }
    }

    /// Whether both are of the same bytes.
    func hasSameContent(as other: FileTag) -> Bool { digest == other.digest && size == other.size }

    /// The tag of a node whose content is confirmed, if it describes that content.
    static func valid(of node: Node) -> FileTag? {
        guard let tag = FileTag(node), tag.size == node.content?.sizes.data, tag.modified == node.modified else {
            return nil
        }
        return tag
    }
}
