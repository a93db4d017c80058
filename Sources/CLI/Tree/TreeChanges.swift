import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The commands that change the shape of the tree: `mkdir`, `mv`, `rm`.
enum TreeChanges {
    /// Opens the tree for a change, which with `--offline` is kept here.
    private static func changing(
        _ call: Call, _ consequence: String, _ arguments: [TreeArgument], _ uses: [OpenTree.PointerUse],
        _ body: @escaping @Sendable (OpenTree, [TreeArgument], _ isOffline: Bool) async throws(Failure) -> Void
    ) async throws(Failure) {
        let isOffline = call.flag("offline")
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            let offline = "the change is kept here"
            if !isOffline { try await open.ready(consequence, offline: offline) }
            try await open.through(arguments, uses, isOffline: isOffline, consequence, offline: offline) {
                open, arguments throws(Failure) in try await body(open, arguments, isOffline)
            }
        }
    }

    /// Waits for the server unless the change is kept here, and prints what is so then.
    private static func finish(
        _ operations: [OperationID], _ what: String, _ line: String, _ open: OpenTree, _ isOffline: Bool,
        earlier: Set<OperationID> = []
    ) async throws(Failure) {
        if !isOffline { try await open.confirm(operations, what, earlier: earlier) }
        try LineOutput.write(
            line + (isOffline ? " here; the change is sent with \(TreeText.nextCommand)" : "") + "\n")
    }

    // MARK: - mkdir

    static func makeContainers(_ call: Call) async throws(Failure) {
        var arguments = [TreeArgument]()
        for text in call.arguments("PATH") {
            let argument = try TreeArgument(text)
            guard !argument.path.isTrunk else {
                throw Failure("\(TreeText.named(argument.path)) is there always; it cannot be made", .usage)
            }
            arguments.append(argument)
        }
        let makesParents = call.flag("parents")
        try await changing(call, "nothing was made", arguments, arguments.map { _ in .node }) {
            open, arguments, isOffline throws(Failure) in
            let tree = open.tree
            let earlier = try await open.queued()
            for path in arguments.map(\.path) {
                let operations = try await growing("cannot make \(TreeText.named(path))") { () throws(TreeError) in
                    if makesParents {
                        try await tree.createAll(at: path)
                    } else {
                        try await tree.createNode(at: path, content: NodeSections())
                    }
                    return try await waiting(on: path, in: tree)
                }
                try await finish(
                    operations, "make \(TreeText.named(path))", "\(TreeText.shown(path)) is made", open, isOffline,
                    earlier: earlier)
            }
        }
    }

    /// The waiting operations of a node and of those above it.
    private static func waiting(on path: TreePath, in tree: Treesystem) async throws(TreeError) -> [OperationID] {
        var (operations, next) = ([OperationID](), Optional(path))
        while let place = next, !place.isTrunk {
            if let node = try await tree.node(at: place) {
                operations += try await tree.operations(of: node.id).map(\.id)
            }
            next = place.parent
        }
        return operations.sorted()
    }

    // MARK: - mv

    static func move(_ call: Call) async throws(Failure) {
        let from = try TreeArgument(call.argument("PATH"))
        let to = try TreeArgument(call.argument("TARGET"))
        guard !from.path.isTrunk else {
            throw Failure("\(TreeText.named(from.path)) cannot be moved", .usage)
        }
        // A pointer node gets another name by a target that is the path of none.
        try await changing(call, "nothing was moved", [from, to], [.node, .branch]) {
            open, arguments, isOffline throws(Failure) in
            let (from, to) = (arguments[0], arguments[1])
            guard let name = from.path.name else { return }
            let tree = open.tree
            let earlier = try await open.queued()
            let node = try await TreeListing.node(at: from.path, in: open)
            let what = "move \(TreeText.named(from.path))"
            let (path, operations) = try await growing("cannot \(what)") { () throws(TreeError) in
                let existing = try await tree.node(at: to.path)
                let isContainer = existing.map { $0.content == nil && FileTag($0) == nil && $0.id != node.id } ?? false
                let target = to.isContainer || isContainer ? to.path.appending(name) : to.path
                try await tree.move(node.id, to: target)
                return (target, try await tree.operations(of: node.id).map(\.id))
            }
            let line = "\(TreeText.shown(from.path)) is \(TreeText.shown(path))"
            let shown = operations.isEmpty ? line + " already" : line
            try await finish(operations, what, shown, open, isOffline, earlier: earlier)
        }
    }

    // MARK: - rm

    static func remove(_ call: Call) async throws(Failure) {
        var arguments = [TreeArgument]()
        for text in call.arguments("PATH") {
            let argument = try TreeArgument(text)
            guard !argument.path.isTrunk else {
                throw Failure("\(TreeText.named(argument.path)) cannot be removed", .usage)
            }
            arguments.append(argument)
        }
        try await changing(call, "nothing was removed", arguments, arguments.map { _ in .node }) {
            open, arguments, isOffline throws(Failure) in
            var missing = [String]()
            for path in arguments.map(\.path) {
                if try await !remove(path, call, open, isOffline) { missing.append(TreeText.named(path)) }
            }
            guard missing.isEmpty || call.flag("force") else {
                throw Failure("there is no \(missing.joined(separator: ", ")) in the tree", .notFound)
            }
        }
    }

    /// A removal would drop the pointer nodes below a folder, and with them what waits in the branches.
    private static func expectNoBranch(below path: TreePath, _ open: OpenTree) async throws(Failure) {
        var walk = open.tree.walk(from: path).makeAsyncIterator()
        while true {
            let next: (path: TreePath, node: Node)?
            do { next = try await walk.next() } catch {
                throw Failure("cannot read what is below \(TreeText.named(path)): \(error)")
            }
            guard let next else { return }
            guard next.node.branch == nil else {
                throw Failure(
                    "\(TreeText.named(next.path)) is a branch of another account: 'thicket tree leave' leaves it, and "
                        + "--force removes the pointer node with the folder", .usage)
            }
        }
    }

    /// - Returns: false when there is no such node.
    private static func remove(
        _ path: TreePath, _ call: Call, _ open: OpenTree, _ isOffline: Bool
    ) async throws(Failure) -> Bool {
        let (tree, what) = (open.tree, "remove \(TreeText.named(path))")
        let isRecursive = call.flag("recursive")
        let node = try await growing("cannot \(what)") { () throws(TreeError) in try await tree.node(at: path) }
        guard node?.branch == nil || call.flag("force") else {
            throw Failure(
                "\(TreeText.named(path)) is a branch of another account: 'thicket tree leave' leaves it, and --force "
                    + "removes the pointer node alone", .usage)
        }
        if isRecursive, !call.flag("force"), node != nil { try await expectNoBranch(below: path, open) }
        let operation = try await growing("cannot \(what)") {
            () throws(TreeError) -> (found: Bool, id: OperationID?)? in
            guard let node = try await tree.node(at: path) else { return (false, nil) }
            if !isRecursive, try await tree.hasChildren(.node(node.id)) { return nil }
            return (true, try await tree.delete(node.id))
        }
        guard let operation else {
            throw Failure("\(TreeText.named(path)) has nodes below it: -r removes them too", .usage)
        }
        guard operation.found else { return false }
        try await finish(
            [operation.id].compactMap { $0 }, what, "\(TreeText.shown(path)) is removed", open, isOffline)
        return true
    }
}
