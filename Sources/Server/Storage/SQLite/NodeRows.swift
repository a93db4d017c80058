import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// The table `node`: where the nodes of trees are. Written with the changes that it follows from, so it is never behind
/// the log.
struct NodeRows {
    private let insertion: Statement
    private let deletion: Statement

    init(_ database: Database) throws(SQLiteError) {
        insertion = try database.prepare("INSERT INTO node (b, id, parent, tag) VALUES (?1, ?2, ?3, ?4)")
        deletion = try database.prepare("DELETE FROM node WHERE b = ?1 AND id = ?2")
    }

    /// Inside the open transaction. Old rows go first, because nodes of one group may exchange their places.
    func write(_ nodes: [WriteBatch.NodeWrite]) throws(SQLiteError) {
        for write in nodes { try deletion.bind(1, write.bucket).bind(2, write.node.octets).run() }
        for write in nodes {
            guard let place = write.place else { continue }
            try insertion.bind(1, write.bucket).bind(2, write.node.octets).bind(3, place.parent.stored)
                .bind(4, place.tag.stored).run()
        }
    }
}

extension SQLiteReader {
    final func place(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodePlace? {
        let found: (parent: [UInt8], tag: [UInt8])? = try storing("reading a node's place") { () throws(SQLiteError) in
            try queries.nodes.place.bind(1, bucket).bind(2, node.octets).first { ($0.bytes(0), $0.bytes(1)) }
        }
        guard let found else { return nil }
        guard let parent = NodeParent(stored: found.parent), let tag = NodeTag(stored: found.tag) else {
            throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) is not a place")
        }
        return NodePlace(parent: parent, tag: tag)
    }

    final func node(at place: NodePlace, in bucket: BucketRow) throws(StoreError) -> NodeID? {
        let found = try storing("looking for a node") { () throws(SQLiteError) in
            try queries.nodes.atPlace.bind(1, bucket).bind(2, place.parent.stored).bind(3, place.tag.stored)
                .first { $0.bytes(0) }
        }
        return try found.map { (octets) throws(StoreError) in try Self.node(octets, bucket) }
    }

    final func children(
        of parent: NodeParent, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID] {
        var found = [[UInt8]]()
        try storing("listing nodes") { () throws(SQLiteError) in
            try queries.nodes.children.bind(1, bucket).bind(2, parent.stored).bind(3, Int64(limit))
                .forEach { (row) throws(SQLiteError) in found.append(row.bytes(0)) }
        }
        return try found.map { (octets) throws(StoreError) in try Self.node(octets, bucket) }
    }

    private static func node(_ octets: [UInt8], _ bucket: BucketRow) throws(StoreError) -> NodeID {
        guard let node = NodeID(octets: octets) else {
            throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) has no id")
        }
        return node
    }
}
