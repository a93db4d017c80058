import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Nodes of which a server that is another one, or an older copy, has another record: what is shown here becomes a held
/// change, so that the app decides. Versions of two copies cannot be compared.
enum DifferingNodes {
    static func keep(_ row: NodeRow, _ object: JSONObject, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard row.state == .open, let record = try? NodeRecord(object, from: .server),
            let here = try skeleton.open(row)
        else { return }
        // The parent may be listed later: then the records are compared without being opened.
        let there = try skeleton.keys(for: record, row.id).flatMap {
            try? skeleton.keyring.open(record, row.id, below: $0)
        }
        var fields = WriteFields(changedFrom: here.record, to: record)
        if let there {
            // Two spellings of a name have one tag.
            if here.name != there.name { fields.insert(.place) }
            if here.metadata.appTags != there.metadata.appTags { fields.insert(.tags) }
        } else if !here.metadata.appTags.isEmpty {
            fields.insert(.tags)
        }
        // What waiting operations write is not the server's.
        fields.subtract(skeleton.queue.fields(of: row.id))
        guard !fields.isEmpty else { return }
        try hold(fields, of: row, here, &skeleton)
    }

    private static func hold(
        _ fields: WriteFields, of row: NodeRow, _ here: OpenedNode, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        var queueing = TreeMachine.Queueing()
        queueing.isKept = true
        let hasContent = fields.contains(.content) && row.content != nil
        let inline = hasContent ? (try? here.inlineContent()) ?? nil : nil
        let local: LocalContent = hasContent ? inline.map { .held($0) } ?? .ask : .none
        let id = try skeleton.enqueue(
            row.id, .write(fields), target: fields.contains(.place) ? row.place : nil, content: local, queueing)
        guard var operation = skeleton.queue[id] else { return }
        operation.state = .held(.data)
        if hasContent, inline == nil { try LostContents.send(here, &operation, blobIsLost: true, &skeleton) }
        try skeleton.write(operation)
        if let (node, _) = try skeleton.shown(row) { skeleton.events.append(.conflict(.data(node))) }
    }
}
