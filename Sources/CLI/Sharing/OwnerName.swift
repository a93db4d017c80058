import ThicketTree
import ThicketTreesystem

/// The login name of a branch's owner, as its invitation proved it: a pair of the pointer node. It is no proof by
/// itself; a command that shows it looks it up again.
struct OwnerName: Sendable {
    private static let key = "thicket-owner"

    let text: String

    /// The name that a pointer node keeps; nil without one.
    init?(_ pointer: Node) {
        guard let value = pointer.tags.first(where: { same($0.key, Self.key) })?.value,
            let text = String(validating: value, as: UTF8.self)
        else { return nil }
        self.text = text
    }

    static func tag(of name: String) -> NodeMetadata.AppTag? { NodeMetadata.AppTag(key, Array(name.utf8)) }
}
