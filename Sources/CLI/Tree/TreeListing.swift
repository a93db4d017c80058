import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The commands that show the tree: `ls`, `tree`, `du`, `find`, `log`.
enum TreeListing {
    /// Opens the tree for reading: brought up to date, or with `--offline` as it is here.
    static func reading(
        _ call: Call, _ body: @escaping @Sendable (OpenTree) async throws(Failure) -> Void
    ) async throws(Failure) {
        let isOffline = call.flag("offline")
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            if !isOffline { try await open.ready(offline: "the copy kept here is shown") }
            try await body(open)
        }
    }

    /// The same, in the tree that the path is in.
    static func reading(
        _ call: Call, _ argument: TreeArgument,
        _ body: @escaping @Sendable (OpenTree, TreeArgument) async throws(Failure) -> Void
    ) async throws(Failure) {
        let isOffline = call.flag("offline")
        try await reading(call) { open throws(Failure) in
            try await open.through(
                [argument], [.branch], isOffline: isOffline, "the branch was not read",
                offline: "the copy kept here is shown"
            ) { open, arguments throws(Failure) in try await body(open, arguments[0]) }
        }
    }

    /// The node at a path, or a trunk.
    static func place(
        _ argument: TreeArgument, in open: OpenTree
    ) async throws(Failure) -> (parent: NodeParent, node: Node?) {
        if argument.path.isTrunk { return (.trunk(argument.path.trunk), nil) }
        let node = try await node(at: argument.path, in: open)
        return (.node(node.id), node)
    }

    /// - Throws: `notFound`.
    static func node(at path: TreePath, in open: OpenTree) async throws(Failure) -> Node {
        let tree = open.tree
        let found = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            try await tree.node(at: path)
        }
        guard let found else { throw Failure("there is no \(TreeText.named(path)) in the tree", .notFound) }
        return found
    }

    /// Goes through everything below a place.
    static func each(
        below path: TreePath, in open: OpenTree,
        _ body: (NodeText) async throws(Failure) -> Void
    ) async throws(Failure) {
        var walk = open.tree.walk(from: path).makeAsyncIterator()
        while true {
            let next: (path: TreePath, node: Node)?
            do { next = try await walk.next() } catch let error as TreeError {
                throw Failure("cannot read \(TreeText.named(path))", tree: error)
            } catch { throw Failure("cannot read \(TreeText.named(path)): \(error)") }
            if Task.isCancelled { throw .interrupted }
            guard let next else { return }
            try await body(try await NodeText.of(next.node, at: next.path, in: open))
        }
    }

    // MARK: - ls

    static func list(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        try await reading(call, argument) { open, argument throws(Failure) in
            let (parent, node) = try await place(argument, in: open)
            if let node, !argument.isContainer {
                let text = try await NodeText.of(node, at: argument.path, in: open)
                if text.kind == .file { return try write(text, name: TreeText.shown(argument.path), call) }
            }
            let order: ChildOrder = call.flag("newest") ? .newestFirst : .name
            let tree = open.tree
            let children = try await growing("cannot list \(TreeText.named(argument.path))") {
                () throws(TreeError) in try await tree.children(of: parent, order: order)
            }
            for child in children {
                let text = try await NodeText.of(child, at: argument.path.appending(child.name), in: open)
                try write(text, name: TreeText.shown(TreeText.name(child.name)), call)
            }
            if children.count == Treesystem.childrenMax {
                Terminal.writeError("the first \(children.count) are shown; 'thicket tree find' shows all\n")
            }
        }
    }

    private static func write(_ text: NodeText, name: String, _ call: Call) throws(Failure) {
        if call.flag("json") { return try LineOutput.write(text.json) }
        try LineOutput.write((call.flag("long") ? text.long(name) : text.short(name)) + "\n")
    }

    // MARK: - tree

    static func outline(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        let depth = try call.number("depth", in: 1...TreeLimits.depthMax, default: TreeLimits.depthMax)
        try await reading(call, argument) { open, argument throws(Failure) in
            _ = try await place(argument, in: open)
            if !call.flag("json") { try LineOutput.write(TreeText.shown(argument.path) + "\n") }
            try await each(below: argument.path, in: open) { text throws(Failure) in
                let level = text.path.depth - argument.path.depth
                guard level <= depth else { return }
                if call.flag("json") { return try LineOutput.write(text.json) }
                let name = TreeText.shown(TreeText.name(text.node.name))
                try LineOutput.write(String(repeating: "  ", count: level) + text.short(name) + "\n")
            }
        }
    }

    // MARK: - du

    static func usage(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        let depth = try call.number("depth", in: 0...TreeLimits.depthMax, default: 1)
        try await reading(call, argument) { open, argument throws(Failure) in
            let (_, node) = try await place(argument, in: open)
            var sums = UsageSums(start: argument.path.depth, depth: depth)
            var first = UsageSums.Sum(path: argument.path)
            if let node { first.add(try await NodeText.of(node, at: argument.path, in: open)) }
            sums.open(first)
            try await each(below: argument.path, in: open) { text throws(Failure) in
                for sum in sums.close(downTo: text.path.depth) { try write(sum, call) }
                var sum = UsageSums.Sum(path: text.path)
                sum.add(text)
                sums.open(sum)
            }
            for sum in sums.close(downTo: argument.path.depth) { try write(sum, call) }
        }
    }

    private static func write(_ sum: UsageSums.Sum, _ call: Call) throws(Failure) {
        guard call.flag("json") else {
            return try LineOutput.write(
                "\(TreeText.size(sum.bytes))\t\(Counts.nodes(sum.nodes))\t\(TreeText.shown(sum.path))\n")
        }
        let object: JSONObject = [
            "path": .string(TreeText.text(sum.path)), "bytes": .number(JSONNumber(Int64(clamping: sum.bytes))),
            "stored": .number(JSONNumber(Int64(clamping: sum.stored))),
            "nodes": .number(JSONNumber(Int64(sum.nodes))),
        ]
        try LineOutput.write(JSONValue.object(object).serializedText + "\n")
    }

    // MARK: - find

    static func find(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        let filter = try NodeFilter(call)
        try await reading(call, argument) { open, argument throws(Failure) in
            _ = try await place(argument, in: open)
            var count = 0
            try await each(below: argument.path, in: open) { text throws(Failure) in
                guard filter.accepts(text) else { return }
                count += 1
                if call.flag("json") { return try LineOutput.write(text.json) }
                let path = TreeText.shown(text.path)
                try LineOutput.write((call.flag("long") ? text.long(path) : path) + "\n")
            }
            if count == 0 { throw Failure("", .notFound) }
        }
    }

    // MARK: - log

    static func log(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        let limit = try call.number("limit", in: 1...10_000, default: 20)
        try await reading(call, argument) { open, argument throws(Failure) in
            _ = try await place(argument, in: open)
            var newest = NewestNodes(limit: limit)
            try await each(below: argument.path, in: open) { text throws(Failure) in newest.add(text) }
            for text in newest.sorted {
                if call.flag("json") {
                    try LineOutput.write(text.json)
                    continue
                }
                let time = text.node.changed.map { Days.text($0 / 1_000) } ?? "not sent yet    "
                try LineOutput.write("\(time)  v\(text.node.version)  \(text.short(TreeText.shown(text.path)))\n")
            }
        }
    }
}
