import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// A tree in memory, checked by brute force: a change is made, and the whole tree is looked at.
struct ModelTree {
    struct Node: Hashable {
        var place: NodePlace?
        var version: Version
        var blob: BlobID?
    }

    var nodes: [Int: Node] = [:]
    /// The complete blobs of the tree's owner.
    var blobs: Set<BlobID> = []
    /// Number of all blobs that the owner ever had.
    var uploads = 0

    var live: [Int: NodePlace] { nodes.compactMapValues(\.place) }
    /// The blobs to which live nodes refer.
    var referenced: Set<BlobID> { Set(nodes.values.compactMap { $0.place == nil ? nil : $0.blob }) }

    /// The words by which the change may be refused; empty if it is made.
    ///
    /// - Parameter content: the blob of the record and the length that it states.
    mutating func write(
        _ number: Int, at place: NodePlace, sv: Version, content: BlobReference? = nil
    ) -> Set<RefusalReason> {
        let current: Version = nodes[number]?.place == nil ? 0 : nodes[number]?.version ?? 0
        if current != sv { return current == 0 ? [.nodeMissing] : [.stale] }
        let before: ModelTree = self
        nodes[number] = Node(place: place, version: (nodes[number]?.version ?? 0) + 1, blob: content?.blob)
        var harms: Set<RefusalReason> = harms
        if harms.isEmpty, let content, !blobs.contains(content.blob) || content.length != Self.blobLength {
            harms = [.blobMissing]
        }
        if !harms.isEmpty { self = before }
        return harms
    }

    /// The length of all blobs.
    static let blobLength = sealedLength(1_000)

    mutating func remove(_ number: Int, sv: Version) -> Set<RefusalReason> {
        guard let node: Node = nodes[number], node.place != nil else { return [.nodeMissing] }
        if node.version != sv { return [.stale] }
        if live.values.contains(where: { $0.parent == .child(number) }) { return [.leafOnly] }
        nodes[number] = Node(place: nil, version: node.version + 1)
        return []
    }

    var harms: Set<RefusalReason> {
        let live = [NodeID: NodePlace](uniqueKeysWithValues: live.map { (NodeText.id($0.key), $0.value) })
        var harms: Set<RefusalReason> = []
        for id in live.keys {
            var (place, depth, seen): (NodeParent, Int, Set<NodeID>) = (.node(id), 0, [])
            while case .node(let node) = place {
                guard seen.insert(node).inserted else {
                    harms.insert(.cycle)
                    break
                }
                guard let next: NodeParent = live[node]?.parent else {
                    harms.insert(.parentMissing)
                    break
                }
                (place, depth) = (next, depth + 1)
            }
            if case .trunk = place, depth > TreeLimits.depthMax { harms.insert(.depth) }
        }
        if Set(live.values).count < live.count { harms.insert(.nameTaken) }
        return harms
    }
}
