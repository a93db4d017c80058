import ThicketTree
import ThicketTreeShape

/// Goes through a branch page by page, for `Treesystem.walk`.
actor TreeWalk {
    /// A level of the walk: a page of siblings, and how many of them were returned.
    private struct Level {
        let parent: NodeParent
        let path: TreePath
        var page: [(row: NodeRow, node: Node?)]
        var next = 0
        var isLast: Bool { page.count < Treesystem.pageRows }
    }

    private let tree: Treesystem
    private let start: TreePath
    private var levels: [Level]?

    init(_ tree: Treesystem, _ start: TreePath) { (self.tree, self.start) = (tree, start) }

    /// The next node; nil at the end.
    func next() async throws(TreeError) -> (path: TreePath, node: Node)? {
        var levels = self.levels ?? []
        if self.levels == nil { levels = [try await level(of: tree.place(at: start), start)] }
        defer { self.levels = levels }
        while var level = levels.popLast() {
            if level.next == level.page.count {
                guard !level.isLast else { continue }
                level.page = try await tree.page(of: level.parent, after: level.page.last?.row)
                level.next = 0
                levels.append(level)
                continue
            }
            let found = level.page[level.next].node
            level.next += 1
            levels.append(level)
            // A row that shows no node; nothing is shown below it.
            guard let node = found else { continue }
            let path = level.path.appending(node.name)
            levels.append(try await self.level(of: .node(node.id), path))
            return (path, node)
        }
        return nil
    }

    private func level(of parent: NodeParent, _ path: TreePath) async throws(TreeError) -> Level {
        Level(parent: parent, path: path, page: try await tree.page(of: parent, after: nil))
    }
}
