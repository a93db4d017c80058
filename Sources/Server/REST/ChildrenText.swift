import ThicketProtocol
import ThicketTreeShape

/// Writes `ChildrenPage` from stored records, which are in their written form: they are copied, not parsed.
enum ChildrenText {
    /// The page of a tree without a node.
    static func empty(_ parents: [NodeParent], current: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        begin(current, &writer)
        for (index, parent) in parents.enumerated() {
            if index > 0 { writer.bytes.append(0x2C) }
            begin(parent, &writer)
            end(next: nil, &writer)
        }
        writer.bytes.append(contentsOf: "]}".utf8)
        return writer.bytes
    }

    /// - Parameter next: the cursor after a node.
    static func page(
        _ query: ChildrenQuery, _ lists: [StoredChildren], current: [UInt8], next: (StoredChild) -> String
    ) throws(StoreError) -> [UInt8] {
        var writer = JSONWriter()
        begin(current, &writer)
        for (index, list) in lists.enumerated() {
            if index > 0 { writer.bytes.append(0x2C) }
            begin(query.parents[index], &writer)
            for (place, node) in list.nodes.enumerated() {
                if place > 0 { writer.bytes.append(0x2C) }
                try write(node, isSkeleton: query.isSkeleton, &writer)
            }
            end(next: list.hasMore ? list.nodes.last.map(next) : nil, &writer)
        }
        writer.bytes.append(contentsOf: "]}".utf8)
        return writer.bytes
    }

    private static func begin(_ current: [UInt8], _ writer: inout JSONWriter) {
        writer.bytes.append(contentsOf: "{\"current\":\"".utf8)
        writer.bytes.append(contentsOf: current)
        writer.bytes.append(contentsOf: "\",\"children\":[".utf8)
    }

    private static func begin(_ parent: NodeParent, _ writer: inout JSONWriter) {
        writer.bytes.append(contentsOf: "{\"parent\":\"\(parent.text)\",\"nodes\":[".utf8)
    }

    private static func end(next: String?, _ writer: inout JSONWriter) {
        writer.bytes.append(0x5D)
        if let next { writer.bytes.append(contentsOf: ",\"next\":\"\(next)\"".utf8) }
        writer.bytes.append(0x7D)
    }

    private static func write(
        _ node: StoredChild, isSkeleton: Bool, _ writer: inout JSONWriter
    ) throws(StoreError) {
        writer.bytes.append(contentsOf: "{\"id\":\"\(node.node.text)\",\"v\":\(node.version),\"d\":".utf8)
        writer.bytes.append(contentsOf: isSkeleton ? try skeleton(of: node) : node.body)
        if let stats = node.stats {
            writer.bytes.append(contentsOf: ",\"n\":\(stats.count)".utf8)
            if let newest = stats.newest { writer.bytes.append(contentsOf: ",\"t\":\(newest)".utf8) }
        }
        writer.bytes.append(0x7D)
    }

    private static func skeleton(of node: StoredChild) throws(StoreError) -> [UInt8] {
        do { return try RecordSkeleton.text(of: node.body) } catch {
            throw StoreError(.corrupt, "a stored node is not a record: \(error)")
        }
    }
}
