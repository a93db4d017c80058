import ThicketTree
import ThicketTreeShape

extension WriteFields {
    /// What differs between two records of a node, as far as that shows without their keys: not the pairs of the app.
    init(changedFrom old: NodeRecord, to new: NodeRecord) {
        self = []
        if old.parent != new.parent || old.tag != new.tag { insert(.place) }
        if old.data?.id != new.data?.id { insert(.content) }
        if old.burnTime != new.burnTime { insert(.burnTime) }
    }
}

extension NodeChange {
    init(from old: Node, to new: Node) {
        self.init()
        if old.content?.id != new.content?.id { insert(.data) }
        if old.tags != new.tags { insert(.tags) }
        if old.burnTime != new.burnTime { insert(.burnTime) }
        if old.origin != new.origin { insert(.origin) }
    }
}

extension NodeRow {
    /// Shows what a record says.
    ///
    /// - Parameter mine: what stays as it is.
    mutating func show(_ opened: OpenedNode, except mine: WriteFields) {
        if !mine.contains(.place) { (parent, name) = (opened.parent, opened.name) }
        if !mine.contains(.content) { (content, modified) = (opened.contentInfo, opened.metadata.modified) }
        if !mine.contains(.tags) { tags = opened.metadata.appTags }
        if !mine.contains(.burnTime) { burnTime = opened.record.burnTime }
        origin = MessageOrigin.kept(by: opened, after: origin)
    }

    /// What another device changed in the record that this row has.
    ///
    /// - Parameters:
    ///   - opened: the newer one.
    ///   - text: it as JSON.
    func changes(to opened: OpenedNode, _ text: [UInt8]) -> WriteFields {
        // A record that waited for its parent is the old one itself.
        guard let known = self.record, known != text, let base = try? NodeRecord(parsing: known, from: .server) else {
            return []
        }
        var fields = WriteFields(changedFrom: base, to: opened.record)
        // A re-key has sealed the same content again.
        if let id = base.data?.id, opened.metadata.isContent(of: id) { fields.remove(.content) }
        return fields
    }
}
