import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree share`, `perm` and `unshare`: which accounts have a branch of the own tree.
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
            let node = try await root(argument, in: open)
            let receivers = try await Receivers.find(all.map(\.text), in: open, unshared)
            let tree = open.tree
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
            try await open.confirmList(operation, "share \(TreeText.named(argument.path))")
            let names = receivers.all.map { "\(Screen.safe($0.text)) (\(members[$0.user]?.text ?? ""))" }
            try LineOutput.write("\(TreeText.shown(argument.path)) is shared with \(Receivers.list(names))\n")
            Terminal.writeError(
                "'thicket tree invite \(TreeText.named(argument.path)) "
                    + "\(receivers.all.map { Screen.safe($0.text) }.joined(separator: " "))' sends invitations\n")
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
        guard all.isEmpty || all.contains(.read) else {
            throw Failure("letters without r are for drop boxes, which no command can use yet: add r", .usage)
        }
        guard !all.isEmpty else {
            throw Failure("a member has letters, such as r or rw; 'thicket tree unshare' removes it", .usage)
        }
        return all
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
                    "\(TreeText.named(path)) is a branch of another account: its owner shares it", .usage)
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
            let node = try await root(argument, in: open)
            let user = try await member(text, of: node, argument, in: open)
            let tree = open.tree
            let operation = try await growing(unchanged) { () throws(TreeError) in
                try await tree.sharing.setPermissions(letters, of: user, in: node.id)
            }
            let name = Screen.safe(text)
            try await open.confirmList(operation, "give \(name) other letters")
            try LineOutput.write("\(name) has \(letters.text) in \(TreeText.shown(argument.path))\n")
        }
    }

    /// A member of a shared branch, by a word of the command line.
    private static func member(
        _ text: String, of node: Node, _ argument: TreeArgument, in open: OpenTree
    ) async throws(Failure) -> UserID {
        let (tree, path) = (open.tree, TreeText.named(argument.path))
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
            let node = try await root(argument, in: open)
            let (tree, path) = (open.tree, TreeText.shown(argument.path))
            guard !text.isEmpty else {
                let operation = try await growing(unchanged) { () throws(TreeError) in
                    try await tree.sharing.unshare(node.id)
                }
                try await open.confirmList(operation, "end the sharing of \(TreeText.named(argument.path))")
                return try LineOutput.write("\(path) is shared no more\n")
            }
            let user = try await member(text, of: node, argument, in: open)
            let operation = try await growing(unchanged) { () throws(TreeError) in
                try await tree.sharing.remove(user, from: node.id)
            }
            let name = Screen.safe(text)
            try await open.confirmList(operation, "remove \(name)")
            try LineOutput.write("\(name) is removed from \(path)\n")
            try await removeRequests(of: user, root: node.id, open)
        }
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
