import ThicketTree
import ThicketTreeShape

/// Where the contents of nodes are.
extension TreeSkeleton {
    /// The blob of a node; nil for a node without content, and for content in the record.
    mutating func reference(of id: NodeID) throws(TreeError) -> BlobReference? {
        let row = try shownRow(id)
        guard let opened = try open(row), case .blob(_, _, let blob)? = opened.record.data else { return nil }
        do throws(NodeFault) {
            guard let (key, map) = try opened.contentMap() else { return nil }
            return BlobReference(
                owner: keyring.keys.tree.owner, node: id, blob: blob, key: key, map: map, version: row.version)
        } catch { throw TreeError(.contentDamaged, error.description) }
    }

    /// The content that is in the store: what waits for the server, otherwise what is in the record.
    mutating func content(of id: NodeID) throws(TreeError) -> NodeContent? {
        _ = try shownRow(id)
        if let waiting = queue.operations(of: id).last(where: { $0.fields.contains(.content) }) {
            guard waiting.content == .held else { return nil }
            return try store.heldContent(waiting.id).flatMap(HeldContent.content)
        }
        return try confirmedContent(of: id)
    }

    /// The content in the server's record, without local changes.
    mutating func confirmedContent(of id: NodeID) throws(TreeError) -> NodeContent? {
        guard let opened = try open(try shownRow(id)), case .inline? = opened.record.data else { return nil }
        do throws(NodeFault) { return try opened.inlineContent() } catch {
            throw TreeError(.contentDamaged, error.description)
        }
    }
}
