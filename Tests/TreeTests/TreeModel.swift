import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

/// A tree in memory, and the checks of a write by brute force: it makes the change and looks at the whole result.
struct TreeModel: TreeView {
    struct Node: Hashable {
        var parent: NodeParent
        var tag: NodeTag
        var version: Version
    }

    var nodes: [NodeID: Node] = [:]

    func version(of node: NodeID) -> Version { nodes[node]?.version ?? 0 }
    func parent(of node: NodeID) -> NodeParent? { nodes[node]?.parent }
    func child(of parent: NodeParent, tagged tag: NodeTag) -> NodeID? {
        nodes.first { $0.value.parent == parent && $0.value.tag == tag }?.key
    }
    func height(of node: NodeID, upTo bound: Int) -> Int {
        let children = nodes.filter { $0.value.parent == .node(node) }.keys
        return children.map { 1 + height(of: $0, upTo: bound) }.max() ?? 0
    }

    mutating func write(_ record: NodeRecord, _ id: NodeID) {
        nodes[id] = Node(parent: record.parent, tag: record.tag, version: record.base + 1)
    }

    /// What is wrong with the tree.
    enum Harm: Hashable { case orphan, cycle, depth, twins }

    var harms: Set<Harm> {
        var harms = Set<Harm>()
        for id in nodes.keys {
            var (place, depth, seen) = (NodeParent.node(id), 0, Set<NodeID>())
            while case .node(let node) = place {
                guard seen.insert(node).inserted else {
                    harms.insert(.cycle)
                    break
                }
                guard let next = nodes[node]?.parent else {
                    harms.insert(.orphan)
                    break
                }
                (place, depth) = (next, depth + 1)
            }
            if case .trunk = place, depth > TreeLimits.depthMax { harms.insert(.depth) }
        }
        let names = nodes.values.map { "\($0.parent.text) \($0.tag)" }
        if Set(names).count < names.count { harms.insert(.twins) }
        return harms
    }

    /// The words by which a write may be refused; empty if it may be made.
    func reasons(_ record: NodeRecord, _ id: NodeID) -> Set<RefusalReason> {
        if version(of: id) != record.base { return version(of: id) == 0 ? [.nodeMissing] : [.stale] }
        var after = self
        after.write(record, id)
        return Set(
            after.harms.map { harm in
                switch harm {
                case .orphan: .parentMissing
                case .cycle: .cycle
                case .depth: .depth
                case .twins: .nameTaken
                }
            })
    }
}
