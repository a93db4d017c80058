import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Branches of other accounts, which commands reach by paths that pass through pointer nodes of the own tree.
extension OpenTree {
    /// How a command means a path that ends at a pointer node.
    enum PointerUse: Sendable {
        /// The root of the branch.
        case branch
        /// The pointer node itself.
        case node
    }

    /// Runs a command in the tree that its paths are in: the own tree, or the branch of another account.
    ///
    /// - Parameters:
    ///   - arguments: all in one tree.
    ///   - consequence: what did not happen without the server, for the message.
    ///   - offline: what `--offline` does, for that message; nil: the command has no such flag.
    ///   - isAboutQueue: the command itself reports changes that wait for the user.
    /// - Throws: `usage` for paths in several trees; `refused` when the branch is not shared with this account.
    func through(
        _ arguments: [TreeArgument], _ use: [PointerUse], isOffline: Bool, _ consequence: String,
        offline: String? = nil, isAboutQueue: Bool = false,
        _ body: @escaping @Sendable (OpenTree, [TreeArgument]) async throws(Failure) -> Void
    ) async throws(Failure) {
        var pointers = [(path: TreePath, node: Node)?]()
        for (argument, use) in zip(arguments, use) { pointers.append(try await pointer(on: argument.path, use)) }
        guard let first = pointers.first, let pointer = first else {
            if let other = pointers.compactMap(\.self).first { throw Self.apart(other.path) }
            return try await body(self, arguments)
        }
        guard pointers.allSatisfy({ $0?.node.id == pointer.node.id }) else { throw Self.apart(pointer.path) }
        let branch = try await branch(at: pointer.path, pointer.node)
        try await branch.running(at: pointer.path, isAboutQueue: isAboutQueue) { branch throws(Failure) in
            if !isOffline { try await branch.ready(consequence, offline: offline) }
            let root = try await branch.root(at: pointer.path)
            let inner = TreePath(.home, names: [root.name])
            let depth = pointer.path.depth
            // The shared node may be a single file.
            let isContainer = root.content == nil && FileTag(root) == nil
            let mapped = arguments.map { argument in
                TreeArgument(
                    TreePath(.home, names: inner.names + argument.path.names.dropFirst(depth)),
                    isContainer: argument.isContainer || (argument.path.depth == depth && isContainer))
            }
            try await TreeText.Prefix(inner: inner, outer: pointer.path).during { () throws(Failure) in
                try await body(branch, mapped)
            }
        }
    }

    private static func apart(_ path: TreePath) -> Failure {
        Failure(
            "\(TreeText.named(path)) is a branch of another account, and the paths are not all in it. Copy with "
                + "'thicket tree get' and 'thicket tree put'", .usage)
    }

    /// The pointer node that a path passes through; nil for a path in the own tree.
    func pointer(
        on path: TreePath, _ use: PointerUse
    ) async throws(Failure) -> (path: TreePath, node: Node)? {
        let depth = use == .branch ? path.depth : path.depth - 1
        guard depth > 0 else { return nil }
        let tree = tree
        return try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            for depth in 1...depth {
                let above = TreePath(path.trunk, names: Array(path.names.prefix(depth)))
                guard let node = try await tree.node(at: above) else { return nil }
                if node.branch != nil { return (above, node) }
            }
            return nil
        }
    }

    /// The pointer nodes in home, in the order of their paths.
    func pointers() async throws(Failure) -> [(path: TreePath, node: Node)] {
        var found = [(path: TreePath, node: Node)]()
        try await TreeListing.each(below: TreePath(.home), in: self) { text throws(Failure) in
            if text.node.branch != nil { found.append((text.path, text.node)) }
        }
        return found
    }

    /// Runs a body in each branch of another account in which changes of this machine wait.
    ///
    /// - Parameter body: gets the path of the pointer node; of several for one branch, the first.
    func throughWaiting(
        _ body: @escaping @Sendable (OpenTree, TreePath) async throws(Failure) -> Void
    ) async throws(Failure) {
        var seen = Set<BranchName>()
        for (path, node) in try await pointers() {
            guard let invite = node.branch, seen.insert(invite.branch).inserted else { continue }
            let client = client
            let count = try await growing("the changes in \(TreeText.named(path)) were not read") {
                () throws(TreeError) in try client.waitingChanges(inBranchOf: invite.owner, root: invite.root)
            }
            guard let count, count > 0 else { continue }
            try await branch(at: path, node).running(at: path, isAboutQueue: true) { branch throws(Failure) in
                try await TreeText.Prefix(pointer: path).during { () throws(Failure) in try await body(branch, path) }
            }
        }
    }

    /// Opens the branch of a pointer node, with its own copy beside that of the tree.
    func branch(at path: TreePath, _ pointer: Node) async throws(Failure) -> OpenTree {
        guard let invite = pointer.branch else {
            throw Failure("\(TreeText.named(path)) is not a branch of another account", .usage)
        }
        let (client, account, keys) = (client, account, keys)
        return try await growing("the branch was not opened") { () throws(TreeError) in
            let tree = try await client.branch(
                of: invite.owner, root: invite.root, invite: invite, nameConflicts: .adopt)
            return OpenTree(client: client, tree: tree, account: account, keys: keys)
        }
    }

    /// The root of the branch that this is.
    func root(at path: TreePath) async throws(Failure) -> Node {
        let tree = tree
        let nodes = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            try await tree.children(of: .trunk(.home))
        }
        guard let root = nodes.first else {
            let faults = (try? await tree.quarantined)?.contains { $0.kind != .awaitingKeys } ?? false
            throw Failure(
                faults
                    ? "\(TreeText.named(path)): what the server shows of the branch is not genuine"
                    : "nothing of \(TreeText.named(path)) is on this machine yet: leave out --offline", .notFound)
        }
        return root
    }

    /// Runs a body with this branch, reports what waits for the user in it, and closes it.
    func running(
        at path: TreePath, isAboutQueue: Bool = false, _ body: @Sendable (OpenTree) async throws(Failure) -> Void
    ) async throws(Failure) {
        let conflicts = ConflictReports()
        let follower = conflicts.follow(await tree.events, in: tree, at: path)
        let result: Result<Void, Failure>
        do throws(Failure) { result = .success(try await body(self)) } catch { result = .failure(error) }
        let isRevoked = await tree.sharing.isRevoked
        let refusal = isAboutQueue ? nil : await reportRefused(in: path)
        await tree.close()
        await follower.value
        conflicts.report()
        do throws(Failure) { try result.get() } catch {
            guard isRevoked, error.code == .unauthorized else { throw error }
            throw Self.revoked(path)
        }
        if let refusal { throw Failure("", refusal) }
    }

    /// Runs a command in the branch whose pointer node an option names, or in the own tree.
    func `in`(
        _ pointer: String?, isOffline: Bool, _ consequence: String,
        _ body: @escaping @Sendable (OpenTree) async throws(Failure) -> Void
    ) async throws(Failure) {
        guard let pointer else { return try await body(self) }
        let argument = try TreeArgument(pointer)
        guard try await TreeListing.node(at: argument.path, in: self).branch != nil else {
            throw Failure("\(TreeText.named(argument.path)) is not a branch of another account", .usage)
        }
        try await through([argument], [.branch], isOffline: isOffline, consequence, isAboutQueue: true) {
            open, _ throws(Failure) in try await body(open)
        }
    }

    /// The branch is not served to this account.
    static func revoked(_ path: TreePath) -> Failure {
        let name = TreeText.named(path)
        return Failure(
            "\(name) is not shared with this account any more, or was removed. --offline shows the copy that is kept "
                + "here; 'thicket tree leave \(name)' removes it", .refused)
    }
}
