import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// What a device shows, and what its server has.
extension WorldDevice {
    /// The paths of all shown nodes, with their contents' ids.
    func skeleton() throws -> [NodeID: String] {
        var nodes = [NodeID: String]()
        for trunk in Trunk.allCases {
            var places = [NodeParent.trunk(trunk)]
            while let place = places.popLast() {
                for row in try store.children(of: place, order: .name, offset: 0, limit: 100_000) {
                    nodes[row.id] = "\(try store.path(of: .node(row.id))?.description ?? "?") v\(row.version)"
                    places.append(.node(row.id))
                }
            }
        }
        return nodes
    }

    /// The rows of nodes that are not shown although they should be.
    func describe(_ ids: Set<NodeID>) throws -> String {
        let shown = try skeleton()
        return try ids.filter { shown[$0] == nil }.sorted().map { id in
            guard let row = try store.row(id) else { return "\(id.text.prefix(4)) no row" }
            return "\(id.text.prefix(4)) \(row.state) v\(row.version) below \(row.parent.text.prefix(4)) "
                + "named \(row.name?.text ?? "-") position \(machine.channel.position?.text ?? "-")"
        }.joined(separator: ", ")
    }

    /// Parents and names of all shown nodes.
    func places() throws -> [String: String] {
        var places = [String: String]()
        for id in try skeleton().keys {
            if let node = try store.row(id)?.node(isPending: false) { places[id.text] = IndexApp.place(node) }
        }
        return places
    }

    /// The same of what the server has, opened with the keys of the account.
    func serversSkeleton(_ server: ModelServer) throws -> [NodeID: String] {
        let opener = NodeOpener(keys.tree, identity: identity)
        var nodes = [NodeID: String]()
        var waiting: [(parent: ParentKeys, path: TreePath)] = Trunk.allCases.map { (keys.parent($0), TreePath($0)) }
        while let (parent, path) = waiting.popLast() {
            for (id, held) in server.nodes where held.record.parent == parent.parent {
                let opened = try opener.open(held.record, id, below: parent)
                let own = path.appending(opened.name)
                nodes[id] = "\(own.description) v\(held.version)"
                waiting.append((opened.childKeys, own))
            }
        }
        return nodes
    }
}
