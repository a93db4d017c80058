import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// An app that keeps an index of parents and names by the delegate alone.
struct IndexApp: TreeDelegate {
    private static let places = "places"

    static func place(_ node: Node) -> String { "\(node.parent.text)/\(node.name)" }

    private func put(_ node: Node, _ transaction: inout TreeTransaction) throws {
        try transaction.set(Array(Self.place(node).utf8), Self.places, node.id.text)
    }
    func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        try put(node, &transaction)
    }
    func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction
    ) throws { try put(node, &transaction) }
    func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        try transaction.set(nil, Self.places, node.id.text)
    }

    static func index(_ store: TreeStore) throws -> [String: String] {
        var index = [String: String]()
        for value in try store.appPage(places, after: nil, isDescending: false, limit: 100_000) {
            let (key, value) = (value.key, value.value)
            index[key] = String(decoding: value, as: UTF8.self)
        }
        return index
    }
}
