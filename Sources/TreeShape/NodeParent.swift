/// The fixed containers at the top of each tree. They have no records; their names are reserved as ids of parents. No
/// node's id can be one of them: it has 26 letters.
public enum Trunk: String, Sendable, Hashable, CaseIterable {
    /// What the user keeps.
    case home
    /// Settings; never shared.
    case prefs
    /// Others put messages here.
    case inbox
    /// Messages that the user has sent.
    case outbox

    /// The key of the tags of nodes in an inbox. Public, because other users write there and cannot know a secret salt.
    /// The name that is tagged is the node's id, so the tag reveals nothing.
    public static let inboxSalt: [UInt8] = Array("thicket/inbox-names/1".utf8)
}

/// The place below which a node is: a trunk or another node.
public enum NodeParent: Sendable, Hashable {
    /// A trunk of the same tree.
    case trunk(Trunk)
    /// A node of the same tree.
    case node(NodeID)

    /// Reads the text in a record.
    ///
    /// - Returns: nil for a text that is neither the name of a trunk nor the id of a node.
    public init?(text: String) {
        if let trunk = Trunk(rawValue: text) {
            self = .trunk(trunk)
        } else if let node = NodeID(text: text) {
            self = .node(node)
        } else {
            return nil
        }
    }

    /// The text in a record.
    public var text: String {
        switch self {
        case .trunk(let trunk): trunk.rawValue
        case .node(let node): node.text
        }
    }
}
