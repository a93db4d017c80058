import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree invite`, `accept` and `leave`: how members get to a branch and out of it.
enum InviteCall {
    // MARK: - invite

    static func invite(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let (users, what) = (call.arguments("USER"), "nothing was sent")
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(what)
            try await ShareCall.at(argument, open, what) { target, node, place throws(Failure) in
                let receivers = try await Receivers.find(users, in: open, what)
                let (own, tree, path) = (open.tree, target.tree, TreeText.named(place))
                let isOwn = own === tree
                let members = try await growing(what) { () throws(TreeError) in
                    try await tree.sharing.members(of: node.id)
                }
                guard let members else {
                    throw Failure("\(what): \(path) is not shared; 'thicket tree share \(path) USER' does that", .usage)
                }
                if let stranger = receivers.all.first(where: { members[$0.user] == nil }) {
                    let name = Screen.safe(stranger.text)
                    throw Failure(
                        "\(what): \(name) is not a member of \(path); 'thicket tree share \(path) \(name)' does that",
                        .usage)
                }
                let sent = try await growing(what) { () throws(TreeError) in
                    if isOwn { return try await tree.sharing.invite(node.id, for: receivers.users) }
                    return try await own.sharing.invite(to: tree, for: receivers.users)
                }
                guard !call.flag("json") else {
                    return try await open.deliver(sent, to: receivers, isDraft: false, call)
                }
                try await open.deliver(sent, to: receivers, isDraft: false)
                let verb = receivers.all.count == 1 ? "is" : "are"
                try LineOutput.write("\(receivers.names) \(verb) invited to \(TreeText.shown(place))\n")
            }
        }
    }

    // MARK: - accept

    static func accept(_ call: Call) async throws(Failure) {
        let (word, at) = (
            call.argument("INVITE"), try call.value("at").map { text throws(Failure) in try TreeArgument(text) }
        )
        let what = "nothing was accepted"
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(what)
            let (tree, messages) = (open.tree, open.tree.messages)
            _ = try await growing(what) { () throws(TreeError) in try await messages.lookUpAuthors() }
            let invitation = try await invitation(word, in: open)
            let path = try await place(of: invitation, at, in: open)
            if let other = try await open.pointer(on: path, .node) {
                throw Failure(
                    "\(TreeText.named(other.path)) is a branch of another account: choose --at in your own tree", .usage
                )
            }
            var names = try await AuthorNames(open)
            let letter = try await growing(what) { () throws(TreeError) in try await tree.node(invitation.message) }
            try await names.prove([letter].compactMap(\.self), open)
            // The message goes: its author's name is kept for 'thicket tree shared', which proves it again.
            let tags = [names.provedName(of: invitation.invite.owner).flatMap(OwnerName.tag(of:))].compactMap(\.self)
            let (node, operations) = try await growing(what) { () throws(TreeError) in
                let node = try await tree.sharing.accept(invitation.message, at: path, tags: tags)
                return (node, try await tree.operations(of: node.id).map(\.id))
            }
            try await open.confirm(operations, "make \(TreeText.named(path))")
            let owner = Screen.safe(names.name(of: invitation.invite.owner))
            try LineOutput.write(
                "\(TreeText.shown(path)) is the branch '\(Screen.safe(invitation.name))' of \(owner)\n")
            // At once, so that a wrong or old list is seen now.
            let branch = try await open.branch(at: path, node)
            do throws(Failure) {
                try await branch.running(at: path) { branch throws(Failure) in
                    try await branch.ready("the branch was not read yet")
                    _ = try await branch.root(at: path)
                }
            } catch {
                guard error.text == OpenTree.revoked(path).text else { throw error }
                let name = TreeText.named(path)
                Terminal.writeError(
                    "\(name) is not open for you to read. If it is a drop box, 'thicket tree put FILE --into \(name)' puts "
                        + "files into it\n")
            }
        }
    }

    /// The invitation that a word names, or the only one.
    private static func invitation(
        _ word: String, in open: OpenTree
    ) async throws(Failure) -> TreeSharing.Invitation {
        let tree = open.tree
        let all = try await growing("the inbox was not read") { () throws(TreeError) in
            try await tree.sharing.invitations
        }
        guard word.isEmpty else {
            let id: NodeID
            if let given = NodeID(text: word) {
                id = given
            } else {
                id = try await TreeListing.node(at: try TreeArgument(word).path, in: open).id
            }
            guard let found = all.first(where: { $0.message == id }) else {
                throw Failure(
                    "\(Screen.safe(word)) is no invitation in the inbox: 'thicket tree inbox' lists them", .notFound)
            }
            return found
        }
        guard let only = all.first else {
            throw Failure(
                "no invitation waits. The owner sends one with 'thicket tree invite'; one whose author is not verified is "
                    + "named by 'thicket tree inbox'", .notFound)
        }
        guard all.count == 1 else {
            let ids = all.prefix(OpenTree.refusalsShownMax).map { "\($0.message.text) ('\(Screen.safe($0.name))')" }
            throw Failure(
                "\(all.count) invitations wait; name one of them: \(ids.joined(separator: ", "))", .usage)
        }
        return only
    }

    /// Where the pointer node goes: the given path, below it if that ends in `/`, or a free name in home.
    private static func place(
        of invitation: TreeSharing.Invitation, _ at: TreeArgument?, in open: OpenTree
    ) async throws(Failure) -> TreePath {
        if let at, !at.isContainer { return at.path }
        let (tree, above) = (open.tree, at?.path ?? TreePath(.home))
        let name: NodeName
        do throws(NodeName.Fault) { name = try NodeName(invitation.name) } catch {
            throw Failure("the branch has no name that a node can have: --at PATH gives it one", .usage)
        }
        let taken = try await growing("cannot read \(TreeText.named(above))") { () throws(TreeError) in
            try await tree.children(of: above)
        }
        return above.appending(name.free(among: taken.map(\.name)))
    }

    // MARK: - leave

    static func leave(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let what = "nothing was changed"
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(what)
            let (tree, path) = (open.tree, TreeText.named(argument.path))
            let node = try await TreeListing.node(at: argument.path, in: open)
            guard let invite = node.branch else {
                throw Failure(
                    "\(path) is not a branch of another account. 'thicket tree unshare' ends sharing, 'thicket tree rm' "
                        + "removes a node", .usage)
            }
            if try await leaveOne(node, invite.branch, argument.path, open) { return }
            try await checkSent(argument.path, node, call, open)
            let left = try await growing(what) { () throws(TreeError) in try await tree.sharing.leave(node.id) }
            let names = try await AuthorNames(open)
            let owner = names.name(of: invite.owner)
            let receivers = Receivers(all: [Receivers.Receiver(text: owner, user: invite.owner)])
            var unasked: Failure?
            do throws(Failure) { try await open.deliver(left.request, to: receivers, isDraft: false) } catch {
                // An owner that accepts no messages, or whose keys are not usable, does not keep a member.
                guard !error.endsCommand, error.code != .offline else { throw error }
                unasked = error
            }
            try await open.confirm([left.removal].compactMap(\.self), "leave \(path)")
            let client = open.client
            try await growing("the copy of the branch on this machine was not removed") { () throws(TreeError) in
                try client.removeBranch(of: invite.owner, root: invite.root)
            }
            let name = Screen.safe(owner)
            try LineOutput.write(
                "\(TreeText.shown(argument.path)) is left\(unasked == nil ? "; \(name) is asked to remove you from the list" : "")\n"
            )
            if let unasked {
                throw Failure("\(name) was not asked to remove you from the list: \(unasked.text)", unasked.code)
            }
        }
    }

    /// Of several pointer nodes for one branch, one is removed alone: the branch stays.
    ///
    /// - Returns: false when it is the only one.
    private static func leaveOne(
        _ node: Node, _ branch: BranchName, _ path: TreePath, _ open: OpenTree
    ) async throws(Failure) -> Bool {
        let others = try await open.pointers().filter { $0.node.id != node.id && $0.node.branch?.branch == branch }
        guard let other = others.first else { return false }
        let tree = open.tree
        let removal = try await growing("nothing was changed") { () throws(TreeError) in try await tree.delete(node.id)
        }
        try await open.confirm([removal].compactMap(\.self), "remove \(TreeText.named(path))")
        try LineOutput.write(
            "\(TreeText.shown(path)) is removed; you are a member still, and the branch is \(TreeText.shown(other.path))\n"
        )
        return true
    }

    /// - Throws: `refused` when changes in the branch were not sent.
    private static func checkSent(
        _ path: TreePath, _ node: Node, _ call: Call, _ open: OpenTree
    ) async throws(Failure) {
        let branch = try await open.branch(at: path, node)
        let waiting = await branch.waitingCount
        await branch.tree.close()
        guard waiting == 0 || call.flag("force") else {
            throw Failure(
                "\(Counts.changes(waiting)) here and not sent; 'thicket tree queue --in \(TreeText.named(path))' shows "
                    + "them, --force drops them", .refused)
        }
    }
}
