public import ThicketProtocol
import ThicketTree
public import ThicketTreeShape

/// When another key than the root's is renewed after a member was removed.
public enum Rekey: Sendable, Hashable {
    /// The root at once, every other node when it is written the next time. What is written later is unreadable for the
    /// removed member, even with a full copy of the server's data; what it could read before stays under its keys.
    case lazy
    /// All nodes as soon as the server has the list: each gets another key, and its content is sealed again and
    /// uploaded under another one. It goes on in the background and in later runs of the program
    /// (`TreeSharing.rekeyProgress`). Then nothing that is stored opens for the removed member. The tags of names do
    /// not change: with the help of the server a removed member can still confirm a name that it guesses.
    case eager
}

/// The shared branches of a tree: the members of each branch and their letters. Get it from `Treesystem.sharing`.
///
/// ```swift
/// try await tree.sharing.share(album.id, with: [ben: .readWrite, cleo: .read])
/// try await tree.sharing.remove(cleo, from: album.id)
/// ```
///
/// Each change is in the store when its call returns, and is one record whatever the size of the branch. Keys are
/// wrapped for accounts whose keys the key log has verified, and for no others.
public struct TreeSharing: Sendable {
    let tree: Treesystem

    init(_ tree: Treesystem) { self.tree = tree }

    /// Lets other accounts into a branch, or gives members other letters. The others stay as they are.
    ///
    /// - Parameters:
    ///   - id: a node below `home`, neither in a shared branch nor with one below it; or the root of one.
    ///   - members: at most `TreeLimits.shareMembersMax` with those that are there.
    /// - Returns: the operation.
    /// - Throws: `notFound`, `sharing`, `noKeys`, `limit`, `store`, `closed`.
    @discardableResult
    public func share(
        _ id: NodeID, with members: [UserID: SharePermissions], options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> OperationID {
        guard !members.isEmpty, members.values.allSatisfy({ !$0.isEmpty }) else {
            throw TreeError(.sharing, "a member has letters", reason: "no-letters")
        }
        return try await change(ShareChange(members), id, options)
    }

    /// Gives a member other letters. A member that loses the right to read or to write needs another epoch of the
    /// branch's key, like one that is removed.
    ///
    /// - Throws: as `share`.
    @discardableResult
    public func setPermissions(
        _ permissions: SharePermissions, of user: UserID, in id: NodeID, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> OperationID { try await share(id, with: [user: permissions], options: options) }

    /// Removes a member. The server serves it no more, and the branch has another key from then on.
    ///
    /// - Parameter rekey: when the other keys are renewed. Only the owner begins an eager re-key.
    /// - Throws: as `share`; `sharing` for an account that is no member.
    @discardableResult
    public func remove(
        _ user: UserID, from id: NodeID, rekey: Rekey = .lazy, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> OperationID {
        guard try await members(of: id)?[user] != nil else {
            throw TreeError(.sharing, "the account is not a member of the branch", reason: "not-member")
        }
        return try await change(ShareChange([user: []], renews: rekey == .eager), id, options, rekey)
    }

    /// Ends sharing: the root is an ordinary node with another key, which no member has.
    ///
    /// - Throws: as `share`; `sharing` for a node that is not shared.
    @discardableResult
    public func unshare(
        _ id: NodeID, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> OperationID { try await change(ShareChange(isEnd: true), id, options) }

    /// The members of a branch and their letters, without the owner and with the changes that wait for the server.
    ///
    /// - Parameter id: the root.
    /// - Returns: nil for a node that is not the root of a shared branch.
    /// - Throws: `store`, `closed`.
    public func members(of id: NodeID) async throws(TreeError) -> [UserID: SharePermissions]? {
        try await Self.act(tree) { skeleton throws(TreeError) in try ShareChanges.members(of: id, skeleton) }
    }

    /// The roots of the shared branches that this device knows, in the order of their ids.
    ///
    /// - Throws: `store`, `closed`.
    public var roots: [NodeID] {
        get async throws(TreeError) {
            try await Self.act(tree) { skeleton throws(TreeError) in skeleton.branches.known.keys.sorted() }
        }
    }

    /// The account that has written the newest record of a node in a shared branch. This device has verified its
    /// signature, and that the list permits the account to write there.
    ///
    /// - Returns: nil for a node that is not shown, or whose record has no signature: it is in no shared branch, or
    ///   from before the branch was shared.
    /// - Throws: `store`, `closed`.
    public func author(of id: NodeID) async throws(TreeError) -> UserID? {
        try await Self.act(tree) { skeleton throws(TreeError) in
            guard let row = try skeleton.store.row(id), row.state == .open, let text = row.record else { return nil }
            return (try? NodeRecord(parsing: text, from: .server))?.signature?.author
        }
    }

    /// What happens to shared branches from now on, after the transaction that made it. A reader that is slow misses
    /// the oldest of more than `StreamLimits.eventsMax` events: `members(of:)` has the newest state.
    public var events: AsyncStream<ShareEvent> { tree.shareEvents.stream() }

    private func change(
        _ change: ShareChange, _ id: NodeID, _ options: ChangeOptions, _ rekey: Rekey = .lazy
    ) async throws(TreeError) -> OperationID {
        try await Self.act(tree) { skeleton throws(TreeError) in
            try ShareChanges.add(change, to: id, rekey: rekey, queueing: options.queueing, &skeleton)
        }
    }

    static func act<Value: Sendable>(
        _ tree: isolated Treesystem, _ body: @Sendable (inout TreeSkeleton) throws(TreeError) -> Value
    ) throws(TreeError) -> Value { try tree.act { machine throws(TreeError) in try body(&machine.skeleton) } }
}

extension Treesystem {
    /// The shared branches of the tree.
    public nonisolated var sharing: TreeSharing { TreeSharing(self) }
}
