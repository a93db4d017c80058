import ThicketProtocol
import ThicketTreeShape

/// Where a list of children begins, and its order.
public enum ChildCursor: Hashable, Sendable {
    /// Below this change, newest first.
    case newest(before: GlobalID)
    /// Above this tag, by tag; nil: from the first.
    case tag(after: NodeTag?)
}

/// A question for children, for one read of the store.
public struct ChildRead: Hashable, Sendable {
    /// The parents, each with a list.
    public var parents: [NodeParent]
    /// Nodes per list.
    public var limit: Int
    /// Where each list begins.
    public var cursor: ChildCursor
    /// Whether nodes come with what is below them.
    public var wantsStats: Bool
    /// Bytes of records after which each list ends with its first node.
    public var bytesMax: Int

    /// A question.
    public init(_ parents: [NodeParent], limit: Int, cursor: ChildCursor, wantsStats: Bool, bytesMax: Int) {
        (self.parents, self.limit, self.cursor) = (parents, limit, cursor)
        (self.wantsStats, self.bytesMax) = (wantsStats, bytesMax)
    }
}

/// A node whose burn time has come.
public struct BurningNode: Hashable, Sendable {
    /// The tree.
    public let bucket: BucketID
    /// The node.
    public let node: NodeID

    /// A node of a tree.
    public init(bucket: BucketID, node: NodeID) { (self.bucket, self.node) = (bucket, node) }
}

/// A row of a list of children, without its record.
struct ChildRow {
    let node: NodeID
    let gid: GlobalID
    let tag: NodeTag
}

/// A child with its record.
public struct StoredChild: Hashable, Sendable {
    /// The node.
    public let node: NodeID
    /// Its newest change.
    public let gid: GlobalID
    /// Its tag.
    public let tag: NodeTag
    /// Its version.
    public let version: Version
    /// Its record as JSON.
    public let body: [UInt8]
    /// What is below it, if wanted.
    public let stats: ChildStats?
}

/// Children of one parent.
public struct StoredChildren: Hashable, Sendable {
    /// In the order of the question.
    public var nodes: [StoredChild] = []
    /// Whether more follow.
    public var hasMore = false
}

/// Reads lists of children over one state of a store.
protocol ChildSource: LogSource {
    /// Rows below a parent, at most `limit`.
    func childRows(
        of parent: NodeParent, in bucket: BucketRow, _ cursor: ChildCursor, limit: Int
    ) throws(StoreError) -> [ChildRow]
    /// What is directly below a node.
    func childStats(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> ChildStats
}

extension ChildSource {
    func childLists(_ read: ChildRead, in bucket: BucketRow) throws(StoreError) -> [StoredChildren] {
        var lists = [StoredChildren]()
        var bytes = 0
        for parent in read.parents {
            var list = StoredChildren()
            let rows = try childRows(of: parent, in: bucket, read.cursor, limit: read.limit + 1)
            for row in rows {
                guard list.nodes.count < read.limit, bytes < read.bytesMax || list.nodes.isEmpty else {
                    list.hasMore = true
                    break
                }
                let child = try child(row, in: bucket, wantsStats: read.wantsStats)
                bytes += child.body.count
                list.nodes.append(child)
            }
            lists.append(list)
        }
        return lists
    }

    private func child(
        _ row: ChildRow, in bucket: BucketRow, wantsStats: Bool
    ) throws(StoreError) -> StoredChild {
        guard let key = try? EntityKey(row.node.text), let head = try entityHead(key, bucket), let body = head.body,
            head.record.gid == row.gid
        else { throw StoreError(.corrupt, "a row of the table node in bucket \(bucket) has no record") }
        return StoredChild(
            node: row.node, gid: row.gid, tag: row.tag, version: head.record.version, body: body,
            stats: wantsStats ? try childStats(of: row.node, in: bucket) : nil)
    }
}
