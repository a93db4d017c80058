import ThicketTree

/// Sums of branches while a tree is read from the top: one sum for each open level.
struct UsageSums: Sendable {
    /// What a branch takes, its root included.
    struct Sum: Sendable {
        let path: TreePath
        /// Bytes of the data sections.
        var bytes: UInt64 = 0
        /// Bytes of contents as the server stores them.
        var stored: UInt64 = 0
        var nodes = 0

        init(path: TreePath) { self.path = path }

        mutating func add(_ text: NodeText) {
            bytes += text.size ?? 0
            stored += text.node.content?.storedBytes ?? 0
            nodes += 1
        }
    }

    /// The depth of the place at which the reading began.
    let start: Int
    /// Levels below it whose sums are returned.
    let depth: Int
    private var levels = [Sum]()

    init(start: Int, depth: Int) { (self.start, self.depth) = (start, depth) }

    mutating func open(_ sum: Sum) { levels.append(sum) }

    /// Ends the branches at a depth and below it, because a node at that depth follows.
    ///
    /// - Returns: the ended sums that are printed, the deepest first.
    mutating func close(downTo level: Int) -> [Sum] {
        var ended = [Sum]()
        while let last = levels.last, last.path.depth >= level {
            levels.removeLast()
            if !levels.isEmpty {
                levels[levels.count - 1].bytes += last.bytes
                levels[levels.count - 1].stored += last.stored
                levels[levels.count - 1].nodes += last.nodes
            }
            if last.path.depth - start <= depth { ended.append(last) }
        }
        return ended
    }
}
