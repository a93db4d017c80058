import Synchronization
import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The commands about the copy on this machine: `pull`, `queue`.
package enum TreeSync {
    // MARK: - pull

    static func pull(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready()
            var refused = try await send(open)
            let inBranches = try await sendInBranches(open)
            refused = refused ?? inBranches
            try await RekeyCall.finishAll(in: open)
            if call.flag("content") { try await contents(argument, call, open) }
            let (_, node) = try await TreeListing.place(argument, in: open)
            var (nodes, bytes) = (0, UInt64(0))
            if let node {
                let text = try await NodeText.of(node, at: argument.path, in: open)
                if text.kind != .folder { (nodes, bytes) = (1, text.size ?? 0) }
            }
            try await TreeListing.each(below: argument.path, in: open) { text throws(Failure) in
                nodes += 1
                bytes += text.size ?? 0
            }
            try LineOutput.write(
                "\(TreeText.shown(argument.path)): \(Counts.nodes(nodes)), \(TreeText.size(bytes)); up to date\n")
            if let refused { throw refused }
        }
    }

    /// Sends what waits in branches of other accounts. One that cannot be read now keeps no other one from it.
    private static func sendInBranches(_ open: OpenTree) async throws(Failure) -> Failure? {
        let failures = Mutex<[Failure]>([])
        try await open.throughWaiting { branch, path throws(Failure) in
            do throws(Failure) {
                try await branch.ready("what waits in \(TreeText.named(path)) was not sent")
                if let refused = try await send(branch) { failures.withLock { $0.append(refused) } }
                if let code = await branch.reportRefused(in: path) {
                    failures.withLock { $0.append(Failure("", code)) }
                }
            } catch {
                guard !error.endsCommand else { throw error }
                let isRevoked = await branch.tree.sharing.isRevoked
                let failure = isRevoked ? OpenTree.revoked(path) : error
                Terminal.writeError("thicket: \(failure.text)\n")
                failures.withLock { $0.append(Failure("", failure.code)) }
            }
        }
        return failures.withLock { $0.first }
    }

    /// Waits until the server has confirmed the changes that wait.
    ///
    /// - Returns: the failure of the command when it refused one.
    private static func send(_ open: OpenTree) async throws(Failure) -> Failure? {
        let tree = open.tree
        let (waiting, bytes) = try await growing("cannot read the queue") { () throws(TreeError) in
            let waiting = try await tree.queue.filter { !$0.needsApp }
            var bytes: UInt64 = 0
            for operation in waiting where operation.writesContent {
                bytes += try await tree.node(operation.node).flatMap(FileTag.init)?.size ?? 0
            }
            return (waiting, bytes)
        }
        let bar = TransferBar("sending", bytes: bytes, files: 1)
        let isShown = bytes > 0 && Terminal.isTerminal(Terminal.standardError)
        let follower = isShown ? bar.following(uploadsOf: tree) : nil
        defer {
            follower?.cancel()
            bar.clear()
        }
        var refused: Failure?
        for operation in waiting {
            let place = await QueueText.place(of: operation, in: tree)
            let what = "\(QueueText.kind(operation.kind)) \(place)"
            // A refused change may be the only copy of its content: it stays, and is named at the end.
            do throws(Failure) { try await open.confirm([operation.id], what, earlier: [operation.id]) } catch {
                guard error.code == .refused else { throw error }
                refused = Failure("", .refused)
            }
        }
        return refused
    }

    /// Downloads contents, which then stay on this machine.
    private static func contents(_ argument: TreeArgument, _ call: Call, _ open: OpenTree) async throws(Failure) {
        let download = NodeDownload(open: open, isOffline: false, isForced: false)
        var (problems, files) = ([(name: String, reason: String)](), 0)
        func fetch(_ text: NodeText) async throws(Failure) {
            guard text.node.content?.blob != nil, !text.node.isPending else { return }
            do throws(Failure) {
                // Also metadata and thumbnail: an export without a server needs them.
                _ = try await download.source(of: text.node, at: text.path, components: .all)
                try await download.retain(text.node, at: text.path)
                files += 1
            } catch {
                guard !error.endsCommand, error.code != .offline else { throw error }
                problems.append((TreeText.named(text.path), error.text))
            }
        }
        if let node = try await TreeListing.place(argument, in: open).node {
            try await fetch(try await NodeText.of(node, at: argument.path, in: open))
        }
        try await TreeListing.each(below: argument.path, in: open) { text throws(Failure) in try await fetch(text) }
        await releaseOutdated(open)
        try LineOutput.write("the contents of \(Counts.files(files)) are on this machine\n")
        try Folders.report(problems, .failure)
    }

    /// Contents that their nodes have no longer are files of the cache again: otherwise they would stay for ever. Those
    /// of nodes with waiting changes may be needed by them.
    private static func releaseOutdated(_ open: OpenTree) async {
        let tree = open.tree
        // What cannot be read now is released by a later call; the contents that were asked for are here in any case.
        guard let disk = try? await tree.disk else { return }
        for (content, node) in await disk.pinned {
            guard let waiting = try? await tree.operations(of: node), waiting.isEmpty,
                let known = try? await Optional(tree.node(node)), known?.content?.id != content
            else { continue }
            // Without success the next call repeats it.
            try? await disk.setPersistent(false, content)
        }
    }

    // MARK: - queue

    static func queue(_ call: Call) async throws(Failure) {
        let isOne = call.value("in") != nil
        try await open(call, isOnline: false, "the queue was not read") { open throws(Failure) in
            try await list(open, nil, call)
            if isOne { return }
            try await open.throughWaiting { branch, path throws(Failure) in try await list(branch, path, call) }
        }
    }

    /// - Parameter pointer: the pointer node of a branch, which the commands for one of its changes name.
    package static func list(
        _ open: OpenTree, _ pointer: TreePath?, _ call: Call
    ) async throws(Failure) {
        let tree = open.tree
        for operation in try await operations(open) {
            if call.flag("json") {
                try LineOutput.write(await QueueText.json(operation, in: tree, at: pointer))
                continue
            }
            let place = await QueueText.place(of: operation, in: tree)
            let branch = pointer.map { "  (--in \(TreeText.named($0)))" } ?? ""
            try LineOutput.write(
                "\(operation.id)  \(QueueText.kind(operation.kind)) \(place): \(QueueText.state(of: operation))"
                    + "\(branch)\n")
        }
    }

    /// Opens the tree whose queue a command is about.
    private static func open(
        _ call: Call, isOnline: Bool, _ consequence: String,
        _ body: @escaping @Sendable (OpenTree) async throws(Failure) -> Void
    ) async throws(Failure) {
        let pointer = call.value("in")
        try await OpenTree.run(call, isOnline: isOnline, isAboutQueue: true) { open throws(Failure) in
            try await open.in(pointer, isOffline: !isOnline, consequence, body)
        }
    }

    private static func operations(_ open: OpenTree) async throws(Failure) -> [QueuedOperation] {
        let tree = open.tree
        return try await growing("cannot read the queue") { () throws(TreeError) in try await tree.queue }
    }

    /// The operations that a call names; those that wait for the user, or with `--all` every one, without names.
    private static func chosen(_ call: Call, _ open: OpenTree) async throws(Failure) -> [QueuedOperation] {
        let all = try await operations(open)
        let words = call.arguments("ID")
        guard !words.isEmpty else {
            let chosen = call.flag("all") ? all : all.filter(\.needsApp)
            guard !chosen.isEmpty else { throw Failure("no change waits for you", .notFound) }
            return chosen
        }
        var chosen = [QueuedOperation]()
        for word in words {
            guard let number = Int64(word) else {
                throw Failure("'\(Screen.safe(word))' is not a number of the queue", .usage)
            }
            guard let operation = all.first(where: { $0.id.number == number }) else {
                throw Failure("no change \(number) waits", .notFound)
            }
            chosen.append(operation)
        }
        return chosen
    }

    static func retry(_ call: Call) async throws(Failure) {
        try await open(call, isOnline: true, "nothing was sent") { open throws(Failure) in
            try await open.ready("nothing was sent")
            try await retry(open, call)
        }
    }

    /// Sends changes of an open tree again, and waits until the server has them.
    package static func retry(_ open: OpenTree, _ call: Call) async throws(Failure) {
        let tree = open.tree
        var failure: Failure?
        for operation in try await chosen(call, open) {
            let place = await QueueText.place(of: operation, in: tree)
            do throws(Failure) {
                if operation.needsApp {
                    try await growing("cannot send \(place)") { () throws(TreeError) in
                        try await tree.retry(operation.id)
                    }
                }
                let what = "\(QueueText.kind(operation.kind)) \(place)"
                try await open.confirm([operation.id], what, earlier: [operation.id])
                try LineOutput.write("\(place) is confirmed\n")
            } catch {
                guard error.code == .refused || error.code == .failure, !error.endsCommand else { throw error }
                Terminal.writeError("thicket: \(error.text)\n")
                failure = Failure("", error.code)
            }
        }
        if let failure { throw failure }
    }

    static func discard(_ call: Call) async throws(Failure) {
        try await open(call, isOnline: false, "nothing was dropped") { open throws(Failure) in
            try await discard(open, call)
        }
    }

    /// Drops changes of an open tree.
    package static func discard(_ open: OpenTree, _ call: Call) async throws(Failure) {
        let tree = open.tree
        // The newest first: earlier ones may be needed by it.
        for operation in try await chosen(call, open).reversed() {
            let place = await QueueText.place(of: operation, in: tree)
            do throws(TreeError) { try await tree.discard(operation.id) } catch {
                // An earlier one took it along.
                if error.code == .notFound { continue }
                throw Failure("cannot drop the change of \(place)", tree: error)
            }
            try LineOutput.write("the change \(operation.id) of \(place) is dropped\n")
        }
    }
}
