import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

/// Where a node is in its tree: below a parent, under a tag. At most one node of a tree has a place.
public struct NodePlace: Hashable, Sendable {
    /// The trunk or node below which the node is.
    public let parent: NodeParent
    /// The tag of its name there.
    public let tag: NodeTag

    /// A place.
    public init(parent: NodeParent, tag: NodeTag) { (self.parent, self.tag) = (parent, tag) }

    /// The place that a stored record names.
    ///
    /// - Returns: nil for an object that is not a record.
    init?(of record: JSONObject) {
        guard let parent = record[RecordKey.parent.rawValue]?.stringValue.flatMap(NodeParent.init(text:)),
            let tag = record[RecordKey.tag.rawValue]?.stringValue.flatMap(NodeTag.init(text:))
        else { return nil }
        self.init(parent: parent, tag: tag)
    }
}

extension NodeParent {
    /// The form in the table `node`: 16 bytes of an id, or the name of a trunk, which is shorter.
    var stored: [UInt8] {
        switch self {
        case .trunk(let trunk): Array(trunk.rawValue.utf8)
        case .node(let node): node.octets
        }
    }

    /// - Returns: nil for bytes that are neither.
    init?(stored: [UInt8]) {
        if let node = NodeID(octets: stored) {
            self = .node(node)
        } else if let trunk = Trunk(rawValue: String(decoding: stored, as: UTF8.self)) {
            self = .trunk(trunk)
        } else {
            return nil
        }
    }
}

extension NodeTag {
    /// The form in the table `node`: the 20 bytes that the letters encode.
    var stored: [UInt8] { Base32.decode(text.utf8) ?? [] }

    /// - Returns: nil for bytes that are not a tag.
    init?(stored: [UInt8]) { self.init(text: Base32.encode(stored)) }
}
