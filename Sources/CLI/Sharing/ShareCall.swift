import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree share`, `perm` and `unshare`: which accounts have a branch of the own tree, or one of another account
/// that lets this one share it.
enum ShareCall {
    private static let unshared = "nothing was shared"
    private static let unchanged = "nothing was changed"

    // MARK: - share

    static func share(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        var wanted = [(text: String, letters: SharePermissions?)]()
        for word in call.arguments("USER") { wanted.append(try member(word)) }
        let all = wanted
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unshared)
            try await at(argument, open, unshared) { target, node, path throws(Failure) in
                let receivers = try await Receivers.find(all.map(\.text), in: open, unshared)
                let tree = target.tree
                let before = try await growing(unshared) { () throws(TreeError) in
                    try await tree.sharing.members(of: node.id) ?? [:]
                }
                var letters = [UserID: SharePermissions]()
                for receiver in receivers.all {
                    // Of two words for one account the later one counts. A member without new letters keeps its own.
                    let word = all.last { same($0.text, receiver.text) }?.letters
                    letters[receiver.user] = word ?? before[receiver.user] ?? .read
                }
                let members = letters
                let operation = try await growing(unshared) { () throws(TreeError) in
                    try await tree.sharing.share(node.id, with: members)
                }
                try await target.confirmList(operation, "share \(TreeText.named(path))")
                let names = receivers.all.map { "\(Screen.safe($0.text)) (\(members[$0.user]?.text ?? ""))" }
                try LineOutput.write("\(TreeText.shown(path)) is shared with \(Receivers.list(names))\n")
                Terminal.writeError(
                    "'thicket tree invite \(TreeText.named(path)) "
                        + "\(receivers.all.map { Screen.safe($0.text) }.joined(separator: " "))' sends invitations\n")
            }
        }
    }

    /// `ben`, `ben:rw`; letters in any order.
    private static func member(_ word: String) throws(Failure) -> (text: String, letters: SharePermissions?) {
        guard let colon = word.lastIndex(of: ":") else { return (word, nil) }
        let letters = String(word[word.index(after: colon)...])
        return (String(word[..<colon]), try permissions(letters))
    }

    private static func permissions(_ text: String) throws(Failure) -> SharePermissions {
        var all = SharePermissions()
        for letter in text {
            guard let one = SharePermissions(text: String(letter)) else {
                throw Failure(
                    "'\(Screen.safe(text))' are not letters: r reads, w writes; s, R, L, U, W and B are in "
                        + "'thicket tree share --help'", .usage)
            }
            all.formUnion(one)
        }
        guard all.isEmpty || all.contains(.read) || !all.isDisjoint(with: [.writeOnce, .oneChild]) else {
            throw Failure("letters without r are for drop boxes, and need W or U: 'WB' is usual", .usage)
        }
        guard !all.isEmpty else {
            throw Failure("a member has letters, such as r or rw; 'thicket tree unshare' removes it", .usage)
        }
        return all
    }

    /// Runs a body with the shared node that a path names: in the own tree, or the root of another account's branch.
    static func at(
        _ argument: TreeArgument, _ open: OpenTree, _ consequence: String,
        _ body: @escaping @Sendable (_ target: OpenTree, Node, TreePath) async throws(Failure) -> Void
    ) async throws(Failure) {
        guard let pointer = try await open.pointer(on: argument.path, .branch), pointer.path == argument.path else {
            return try await body(open, try await root(argument, in: open), argument.path)
        }
        try await open.through([argument], [.branch], isOffline: false, consequence) { branch, mapped throws(Failure) in
            let path = mapped[0].path
            try await body(branch, try await TreeListing.node(at: path, in: branch), path)
        }
    }

    /// The node of the own tree that is shared.
    static func root(_ argument: TreeArgument, in open: OpenTree) async throws(Failure) -> Node {
        guard !argument.path.isTrunk else {
            throw Failure("\(TreeText.named(argument.path)) cannot be shared: name a node in home", .usage)
        }
        let tree = open.tree
        var above: TreePath? = argument.path
        // A path in another account's branch is not in the own tree.
        while let path = above, !path.isTrunk {
            let node = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
                try await tree.node(at: path)
            }
            if node?.branch != nil {
                throw Failure(
                    "\(TreeText.named(path)) is a branch of another account: only all of it is shared", .usage)
            }
            above = path.parent
        }
        return try await TreeListing.node(at: argument.path, in: open)
    }

    // MARK: - perm

    static func setPermissions(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let (text, letters) = (call.argument("USER"), try permissions(call.argument("LETTERS")))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unchanged)
            try await at(argument, open, unchanged) { target, node, path throws(Failure) in
                let user = try await member(text, of: node, path, in: target)
                let tree = target.tree
                let operation = try await growing(unchanged) { () throws(TreeError) in
                    try await tree.sharing.setPermissions(letters, of: user, in: node.id)
                }
                let name = Screen.safe(text)
                try await target.confirmList(operation, "give \(name) other letters")
                try LineOutput.write("\(name) has \(letters.text) in \(TreeText.shown(path))\n")
            }
        }
    }

    /// A member of a shared branch, by a word of the command line.
    private static func member(
        _ text: String, of node: Node, _ place: TreePath, in open: OpenTree
    ) async throws(Failure) -> UserID {
        let (tree, path) = (open.tree, TreeText.named(place))
        let members = try await growing(unchanged) { () throws(TreeError) in
            try await tree.sharing.members(of: node.id)
        }
        guard let members else {
            throw Failure("\(path) is not shared: 'thicket tree share \(path) USER' does that", .usage)
        }
        // Removing a member needs none of its keys: what is known here decides first.
        let names = try await AuthorNames(open)
        let known = members.keys.first {
            same($0.text, text) || same(names.name(of: $0).lowercased(), text.lowercased())
        }
        if let known { return known }
        let book = try await open.people(unchanged)
        let user: UserID
        do throws(PeopleError) { user = try await PeopleCall.user(text, book) } catch {
            throw Failure(unchanged, people: error, about: text)
        }
        guard members[user] != nil else {
            throw Failure(
                "\(Screen.safe(text)) is not a member of \(path): 'thicket tree shared' lists them", .notFound)
        }
        return user
    }

    // MARK: - unshare

    static func unshare(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let text = call.argument("USER")
        // An empty word is a variable of a script that is not set, and not all members.
        guard !call.arguments("USER").contains(where: \.isEmpty) else {
            throw Failure("\(unchanged): USER is empty", .usage)
        }
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unchanged)
            let isEager = call.flag("rekey")
            try await at(argument, open, unchanged) { target, node, path throws(Failure) in
                try await remove(text, from: node, path, isEager: isEager, target, own: open)
            }
        }
    }

    private static func remove(
        _ text: String, from node: Node, _ place: TreePath, isEager: Bool, _ target: OpenTree, own: OpenTree
    ) async throws(Failure) {
        let (tree, path) = (target.tree, TreeText.shown(place))
        guard !text.isEmpty else {
            guard !isEager else {
                throw Failure("\(unchanged): --rekey is about one member: name USER", .usage)
            }
            let operation = try await growing(unchanged) { () throws(TreeError) in
                try await tree.sharing.unshare(node.id)
            }
            try await target.confirmList(operation, "end the sharing of \(TreeText.named(place))")
            return try LineOutput.write("\(path) is shared no more\n")
        }
        let user = try await member(text, of: node, place, in: target)
        let operation = try await growing(unchanged) { () throws(TreeError) in
            try await tree.sharing.remove(user, from: node.id, rekey: isEager ? .eager : .lazy)
        }
        let name = Screen.safe(text)
        try await target.confirmList(operation, "remove \(name)")
        try LineOutput.write("\(name) is removed from \(path)\n")
        if isEager { try await RekeyCall.finish(node.id, place, in: target) }
        try await removeRequests(of: user, root: node.id, own)
    }

    /// Removes the messages by which a member has asked to be removed.
    private static func removeRequests(of user: UserID, root: NodeID, _ open: OpenTree) async throws(Failure) {
        let tree = open.tree
        let removals = try await growing("the request of the member stays in the inbox") { () throws(TreeError) in
            var removals = [OperationID]()
            for departure in try await tree.sharing.departures where departure.member == user && departure.root == root
            {
                if let removal = try await tree.delete(departure.message) { removals.append(removal) }
            }
            return removals
        }
        try await open.confirm(removals, "remove the request of the member")
    }
}

extension OpenTree {
    /// Waits until the server has a changed list. What it refuses, or what has no keys that may be used, is given up.
    func confirmList(_ operation: OperationID, _ what: String) async throws(Failure) {
        do throws(Failure) { try await confirm([operation], what) } catch {
            let tree = tree
            let isHeld = (try? await tree.queue)?.contains { $0.id == operation && $0.needsApp } ?? false
            guard isHeld else { throw error }
            do throws(TreeError) { try await tree.discard(operation) } catch {
                throw Failure("the change waits here: 'thicket tree queue' shows it", tree: error)
            }
            throw Failure("\(error.text). Nothing was changed", error.code)
        }
    }
}
