import ThicketCrypto
public import ThicketProtocol
public import ThicketTreeShape

/// A shared branch as an invitation names it, and the pointer node that a member keeps of it in its own tree (decision
/// 0067). A device that opens the branch for the first time accepts no older list than this one.
public struct BranchInvite: Sendable, Hashable {
    /// The account in whose tree the branch is.
    public let owner: UserID
    /// The root of the branch.
    public let root: NodeID
    /// The epoch of the branch's key.
    public let epoch: UInt32
    /// The version of the list.
    public let version: Int64
    /// The digest of the list, 32 bytes.
    public let digest: [UInt8]

    /// Names the branch of a list.
    public init(_ list: ShareList, at place: ShareList.Place) {
        (owner, root, epoch) = (place.tree.owner, place.root, list.epoch)
        (version, digest) = (list.version, list.digest(at: place))
    }

    fileprivate init(owner: UserID, root: NodeID, epoch: UInt32, version: Int64, digest: [UInt8]) {
        (self.owner, self.root, self.epoch) = (owner, root, epoch)
        (self.version, self.digest) = (version, digest)
    }

    /// The branch.
    public var branch: BranchName { BranchName(of: owner, root: root) }

    /// Why a list is not the one of the invitation, nor a later one.
    ///
    /// - Returns: nil for a list that may be it, or may follow it. Its signatures are not looked at.
    public func fault(of list: ShareList, at place: ShareList.Place) -> BranchFault? {
        if list.version < version || list.epoch < epoch { return .olderList }
        return list.version == version && list.digest(at: place) != digest ? .forkedList : nil
    }
}

/// What a message about a shared branch says. It is the metadata section of the message's content; the author is that
/// of the message's origin statement.
///
/// `thicket/invite/1` ‖ 0 ‖ owner with 16 bits of length ‖ root (16) ‖ epoch (4) ‖ version (8) ‖ digest (32), or
/// `thicket/leave/1` ‖ 0 ‖ owner with 16 bits of length ‖ root (16). Numbers are big-endian. A pointer node has the
/// first form.
public enum BranchLetter: Sendable, Hashable {
    /// The receiver is a member of the branch.
    case invite(BranchInvite)
    /// The author asks the owner to remove it from the list of the branch with this root.
    case leave(UserID, root: NodeID)

    private static let inviteLabel = Array("thicket/invite/1".utf8) + [0]
    private static let leaveLabel = Array("thicket/leave/1".utf8) + [0]
    private static let digestBytes = 32

    /// The written form.
    public var octets: [UInt8] {
        switch self {
        case .invite(let invite):
            Self.inviteLabel + Self.place(invite.owner, invite.root) + invite.epoch.octets + invite.version.octets
                + invite.digest
        case .leave(let owner, let root): Self.leaveLabel + Self.place(owner, root)
        }
    }

    private static func place(_ owner: UserID, _ root: NodeID) -> [UInt8] {
        UInt16(owner.text.utf8.count).octets + Array(owner.text.utf8) + root.octets
    }

    /// Reads the written form.
    ///
    /// - Returns: nil for any other bytes.
    public init?(octets: [UInt8]) {
        let isInvite = octets.starts(with: Self.inviteLabel)
        guard isInvite || octets.starts(with: Self.leaveLabel) else { return nil }
        var left = octets.dropFirst((isInvite ? Self.inviteLabel : Self.leaveLabel).count)
        func number(_ count: Int) -> UInt64? { Self.part(count, &left)?.reduce(0) { $0 << 8 | UInt64($1) } }
        guard let length = number(2), let name = Self.part(Int(length), &left),
            let owner = String(validating: name, as: UTF8.self).flatMap({ try? UserID($0) }),
            let root = Self.part(NodeID.bytesCount, &left).flatMap({ NodeID(octets: $0) })
        else { return nil }
        guard isInvite else {
            guard left.isEmpty else { return nil }
            self = .leave(owner, root: root)
            return
        }
        guard let epoch = number(4), let version = number(8), let list = Int64(exactly: version), list > 0,
            let digest = Self.part(Self.digestBytes, &left), left.isEmpty
        else { return nil }
        self = .invite(
            BranchInvite(owner: owner, root: root, epoch: UInt32(epoch), version: list, digest: Array(digest)))
    }

    /// The next bytes; nil beyond the end.
    private static func part(_ count: Int, _ left: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard left.count >= count else { return nil }
        defer { left = left.dropFirst(count) }
        return left.prefix(count)
    }
}
