import ThicketTree
import ThicketTreeShape

/// The attachments of messages, as their authors have listed and signed them.
enum MessageParts {
    /// Attachments of a message that its author has sent and that are not shown.
    ///
    /// - Returns: empty for a node that is not a message.
    static func missing(of id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) -> [NodeID] {
        guard let row = try skeleton.store.row(id), let opened = try skeleton.open(row),
            let statement = (try? MessageCheck.keptStatement(of: opened)) ?? nil
        else { return [] }
        var missing = [NodeID]()
        for part in statement.fields.nodes.dropFirst() {
            if try skeleton.store.row(part.id)?.node(isPending: false) == nil { missing.append(part.id) }
        }
        return missing
    }
}

extension TreeMessages {
    /// The attachments of a message that its author has sent and that are not here: the server has withheld them, or
    /// this account has removed them.
    ///
    /// - Returns: empty for a node that is not a message, and as long as nothing is missing.
    /// - Throws: `store`, `closed`.
    public func missingParts(of id: NodeID) async throws(TreeError) -> [NodeID] {
        try await act { skeleton throws(TreeError) in try MessageParts.missing(of: id, &skeleton) }
    }
}
