public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// Invitations: how a member gets to know of a branch, keeps it in its own tree, and leaves it (decision 0067).
///
/// ```swift
/// try await tree.sharing.invite(album.id, for: [ben])
/// // At Ben:
/// for invitation in try await tree.sharing.invitations {
///     let pointer = try await tree.sharing.accept(invitation.message, at: TreePath(.home, ["Ann's album"]))
///     let album = try await session.branch(of: invitation.invite.owner, root: invitation.invite.root)
/// }
/// ```
extension TreeSharing {
    /// An invitation in the inbox, whose author this device has verified.
    public struct Invitation: Sendable, Hashable {
        /// The message.
        public let message: NodeID
        /// The account that has sent it: the owner, or another member.
        public let sender: UserID
        /// The branch.
        public let invite: BranchInvite
        /// The name of the root when it was sent.
        public let name: String
    }

    /// A member's request in the inbox to be removed from a list, whose author this device has verified.
    public struct Departure: Sendable, Hashable {
        /// The message.
        public let message: NodeID
        /// The member.
        public let member: UserID
        /// The root of the branch.
        public let root: NodeID
    }

    // MARK: - The owner

    /// Sends members of a branch an invitation. Nothing of it is kept in the own tree.
    ///
    /// - Parameters:
    ///   - id: the root of a branch whose list the server has confirmed.
    ///   - users: 1 to 256 members.
    /// - Throws: `sharing` for a node that is not shared, and for an account that is no member; otherwise as
    ///   `TreeMessages.signal`.
    @discardableResult
    public func invite(
        _ id: NodeID, for users: Set<UserID>, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> TreeMessages.Sent {
        try await invite(id, in: tree, for: users, options: options)
    }

    /// Sends an invitation to a branch of another account, as a member of it that may share it.
    ///
    /// - Parameters:
    ///   - branch: the open branch.
    ///   - users: 1 to 256 of its members.
    /// - Throws: as above.
    @discardableResult
    public func invite(
        to branch: Treesystem, for users: Set<UserID>, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> TreeMessages.Sent {
        let root = try await Self.act(branch) { skeleton throws(TreeError) in skeleton.branches.memberRoot }
        guard let root else { throw TreeError(.sharing, "the tree is not a branch", reason: "not-shared") }
        return try await invite(root, in: branch, for: users, options: options)
    }

    private func invite(
        _ id: NodeID, in branch: Treesystem, for users: Set<UserID>, options: ChangeOptions
    ) async throws(TreeError) -> TreeMessages.Sent {
        let content = try await Self.act(branch) { skeleton throws(TreeError) in
            let row = try skeleton.shownRow(id)
            guard let list = skeleton.branches.known[id]?.state.list else {
                throw TreeError(.sharing, "the node is not shared, or not yet at the server", reason: "not-shared")
            }
            guard users.allSatisfy({ list.member($0) != nil }) else {
                throw TreeError(.sharing, "the account is not a member of the branch", reason: "not-member")
            }
            let invite = BranchInvite(list, at: ShareList.Place(skeleton.keyring.keys.tree, root: id))
            return NodeContent(
                metadata: BranchLetter.invite(invite).octets, data: Array((row.name?.text ?? "").utf8))
        }
        return try await tree.messages.signal(to: users, content: content, options: options)
    }

    /// Requests of members to be removed, oldest first. `remove` does it; the message stays until it is deleted.
    ///
    /// - Throws: `store`, `closed`.
    public var departures: [Departure] {
        get async throws(TreeError) {
            let own = try await Self.act(tree) { skeleton throws(TreeError) in skeleton.keyring.keys.tree.owner }
            return try await letters().compactMap { message, sender, letter, _ in
                guard case .leave(let owner, let root) = letter, owner == own else { return nil }
                return Departure(message: message, member: sender, root: root)
            }
        }
    }

    // MARK: - Members

    /// Invitations that were not accepted yet, oldest first.
    ///
    /// - Throws: `store`, `closed`.
    public var invitations: [Invitation] {
        get async throws(TreeError) {
            try await letters().compactMap { message, sender, letter, name in
                guard case .invite(let invite) = letter else { return nil }
                return Invitation(message: message, sender: sender, invite: invite, name: name)
            }
        }
    }

    /// What a message says about a branch.
    ///
    /// - Returns: nil for any other node, and while its author is not verified.
    /// - Throws: `store`, `closed`.
    public func letter(of message: NodeID) async throws(TreeError) -> BranchLetter? {
        guard let node = try await tree.node(message) else { return nil }
        return try await letter(of: node)?.letter
    }

    /// Accepts an invitation: makes a pointer node, which names the branch on all devices of the account, and removes
    /// the message.
    ///
    /// - Parameters:
    ///   - message: a message of `invitations`.
    ///   - path: where the pointer node is made; its parent exists, its name is free.
    ///   - tags: pairs of the app for the pointer node.
    /// - Returns: the pointer node.
    /// - Throws: `notFound` for any other message; otherwise as `Treesystem.createNode`.
    @discardableResult
    public func accept(
        _ message: NodeID, at path: TreePath, tags: [NodeMetadata.AppTag] = []
    ) async throws(TreeError) -> Node {
        guard case .invite(let invite)? = try await letter(of: message) else { throw .missing(message) }
        guard let tag = NodeMetadata.AppTag(Node.branchTag, BranchLetter.invite(invite).octets) else {
            throw TreeError(.limit, "the owner's id is too long for a pointer node")
        }
        return try await tree.batch { tree throws(TreeError) in
            let node = try tree.createNode(at: path, content: NodeSections(), tags: [tag] + tags)
            try tree.delete(message)
            return node
        }
    }

    /// Asks the owner of a branch to remove this account from the list, and removes the pointer node when the owner has
    /// the request. The local copy of the branch stays.
    ///
    /// - Parameter pointer: a pointer node.
    /// - Returns: the request, and the removal of the pointer.
    /// - Throws: `notFound` for any other node; otherwise as `TreeMessages.signal`.
    @discardableResult
    public func leave(
        _ pointer: NodeID
    ) async throws(TreeError) -> (request: TreeMessages.Sent, removal: OperationID?) {
        guard let invite = try await tree.node(pointer)?.branch else { throw .missing(pointer) }
        let letter = BranchLetter.leave(invite.owner, root: invite.root)
        let request = try await tree.messages.signal(
            to: [invite.owner], content: NodeContent(metadata: letter.octets))
        let options = ChangeOptions(after: Set(request.operations))
        return (request, try await tree.delete(pointer, options: options))
    }

    /// Whether the server has said that it serves the branch no more. Its changes wait until it does again.
    public var isRevoked: Bool {
        get async {
            guard case .offline(.unauthorized(let reason)) = await tree.currentStatus else { return false }
            return reason.utf8.elementsEqual(BranchChannel.revoked.utf8)
        }
    }

    // MARK: - Messages

    private typealias Letter = (message: NodeID, sender: UserID, letter: BranchLetter, name: String)

    private func letters() async throws(TreeError) -> [Letter] {
        var found = [Letter]()
        for node in try await tree.children(of: .trunk(.inbox)).reversed() {
            if let letter = try await letter(of: node) { found.append(letter) }
        }
        return found
    }

    private func letter(of node: Node) async throws(TreeError) -> Letter? {
        guard let sender = node.sender, node.parent == .trunk(.inbox), node.content?.blob == nil,
            let content = try await tree.content(of: node.id), let letter = BranchLetter(octets: content.metadata)
        else { return nil }
        return (node.id, sender, letter, String(decoding: content.data, as: UTF8.self))
    }
}

extension Node {
    /// The key of the pair that makes a node a pointer to a branch of another account.
    static let branchTag = "thicket-branch"

    /// The branch of another account that this node stands for; nil for any other node. An app that replaces the pairs
    /// of a pointer node keeps this one.
    public var branch: BranchInvite? {
        guard let tag = tags.first(where: { $0.key.utf8.elementsEqual(Self.branchTag.utf8) }),
            case .invite(let invite)? = BranchLetter(octets: tag.value)
        else { return nil }
        return invite
    }
}
