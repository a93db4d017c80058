import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree shared`: the branches that several accounts have.
enum SharedListing {
    static func run(_ call: Call) async throws(Failure) {
        let isOffline = call.flag("offline")
        try await TreeListing.reading(call) { open throws(Failure) in
            let messages = open.tree.messages
            if !isOffline {
                _ = try await growing("the inbox was not read") { () throws(TreeError) in
                    try await messages.lookUpAuthors()
                }
            }
            var names = try await AuthorNames(open)
            let pointers = try await open.pointers()
            if !isOffline { try await prove(&names, pointers.map(\.node), open) }
            try await own(names, open, call)
            try await others(pointers, names, open, call, isOffline: isOffline)
        }
    }

    /// Looks up names that are known here: of owners from their invitations, of members from their messages.
    private static func prove(_ names: inout AuthorNames, _ pointers: [Node], _ open: OpenTree) async throws(Failure) {
        let tree = open.tree
        let letters = try await growing("the inbox was not read") { () throws(TreeError) in
            try await tree.children(of: .trunk(.inbox))
        }
        let owners = pointers.compactMap { node in
            node.branch.flatMap { invite in OwnerName(node).map { (user: invite.owner, name: $0.text) } }
        }
        try await names.prove(owners, open)
        try await names.prove(letters, open)
    }

    // MARK: - Own branches

    private static func own(_ names: AuthorNames, _ open: OpenTree, _ call: Call) async throws(Failure) {
        let (tree, what) = (open.tree, "the shared branches were not read")
        let (roots, departures) = try await growing(what) { () throws(TreeError) in
            (try await tree.sharing.roots, try await tree.sharing.departures)
        }
        for root in roots {
            let (path, members) = try await growing(what) { () throws(TreeError) in
                (try await tree.path(of: root), try await tree.sharing.members(of: root) ?? [:])
            }
            guard let path else { continue }
            let leaving = Set(departures.filter { $0.root == root }.map(\.member))
            let sorted = members.sorted { names.name(of: $0.key) < names.name(of: $1.key) }
            guard !call.flag("json") else {
                let list = sorted.map { user, letters -> JSONValue in
                    .object([
                        "user": .string(user.text), "name": .string(names.name(of: user)),
                        "letters": .string(letters.text), "leaves": .bool(leaving.contains(user)),
                    ])
                }
                let line: JSONObject = [
                    "path": .string(path.description), "root": .string(root.text), "members": .array(list),
                ]
                try LineOutput.write(JSONValue.object(line).serializedText + "\n")
                continue
            }
            try LineOutput.write("\(TreeText.shown(path))\n")
            for (user, letters) in sorted {
                let name = Screen.safe(names.name(of: user))
                let request =
                    leaving.contains(user)
                    ? "  asks to leave: 'thicket tree unshare \(TreeText.named(path)) \(name)' does it" : ""
                try LineOutput.write("    \(letters.text)  \(name) (\(names.standing(of: user)))\(request)\n")
            }
        }
    }

    // MARK: - Branches of other accounts

    private static func others(
        _ pointers: [(path: TreePath, node: Node)], _ names: AuthorNames, _ open: OpenTree, _ call: Call,
        isOffline: Bool
    ) async throws(Failure) {
        for pointer in pointers {
            guard let invite = pointer.node.branch else { continue }
            let state = try await state(of: pointer, invite, open, isOffline: isOffline)
            guard !call.flag("json") else {
                var line: JSONObject = [
                    "path": .string(pointer.path.description), "root": .string(invite.root.text),
                    "owner": .string(invite.owner.text), "name": .string(names.name(of: invite.owner)),
                    "state": .string(state.word),
                ]
                if let letters = state.letters { line["letters"] = .string(letters.text) }
                try LineOutput.write(JSONValue.object(line).serializedText + "\n")
                continue
            }
            let owner = Screen.safe(names.name(of: invite.owner))
            try LineOutput.write(
                "\(TreeText.shown(pointer.path))  of \(owner) (\(names.standing(of: invite.owner)))  \(state.text)\n")
        }
    }

    private struct State {
        let letters: SharePermissions?
        let word: String

        var text: String {
            switch word {
            case "shared": "you have \(letters?.text ?? "")"
            case "revoked": "is not open for you to read: sharing has ended, or it is a drop box"
            case "unread": "was not read on this machine yet"
            default: "cannot be read now"
            }
        }
    }

    private static func state(
        of pointer: (path: TreePath, node: Node), _ invite: BranchInvite, _ open: OpenTree, isOffline: Bool
    ) async throws(Failure) -> State {
        let branch = try await open.branch(at: pointer.path, pointer.node)
        var trouble: Failure?
        if !isOffline {
            do throws(Failure) { try await branch.ready() } catch { trouble = error }
        }
        let isRevoked = await branch.tree.sharing.isRevoked
        let members = try? await branch.tree.sharing.members(of: invite.root)
        await branch.tree.close()
        if let trouble, trouble.endsCommand, !isRevoked { throw trouble }
        if isRevoked { return State(letters: nil, word: "revoked") }
        if trouble != nil { return State(letters: nil, word: "unreachable") }
        let own = try await open.people("the shared branches were not read").user
        let letters = members?.first { same($0.key.text, own) }?.value
        return State(letters: letters, word: letters == nil ? "unread" : "shared")
    }
}
