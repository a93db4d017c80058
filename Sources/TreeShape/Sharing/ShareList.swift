import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// The list on the root of a shared branch, `l`: which accounts may do what there, signed (treesystem 4.10; decision
/// 0067).
///
/// The record of the root is written by every member that may write, and its signature covers the list. So the list has
/// a signature of its own: by the owner, or by a member with a grant of the owner. A device accepts no older list than
/// it has seen, and no other keys than those that the list names.
///
/// `{"n":version,"e":epoch,"c":commitment,"a":[{"u","r","k"}],"g":[{"u","k","f","o","sig"}],"h":digest,"by","k",
/// "sig"}`; `g` and `h` are left out when there is none. Members and grants are in the order of the bytes of `u`.
public struct ShareList: Sendable, Hashable {
    /// One account that has rights in the branch.
    public struct Member: Sendable, Hashable {
        /// The account.
        public var user: UserID
        /// Its rights.
        public var permissions: SharePermissions
        /// The id of its keys (`PublicKeys.id`), to which the branch's key is wrapped.
        public var keyID: String

        /// A member, which is not checked.
        public init(_ user: UserID, _ permissions: SharePermissions, keyID: String) {
            (self.user, self.permissions, self.keyID) = (user, permissions, keyID)
        }
    }

    /// The owner's word that a member may change the list: a signature under `thicket/share-grant/1`.
    public struct Grant: Sendable, Hashable {
        /// The member.
        public var user: UserID
        /// The id of its keys.
        public var keyID: String
        /// The epoch from which it counts.
        public var fromEpoch: UInt32
        /// The id of the owner's keys that signed; the owner may have others by now.
        public var ownerKeyID: String
        /// The owner's signature, 64 bytes.
        public var signature: [UInt8]

        /// A grant, which is not checked.
        public init(_ user: UserID, keyID: String, fromEpoch: UInt32, ownerKeyID: String, signature: [UInt8]) {
            (self.user, self.keyID, self.fromEpoch) = (user, keyID, fromEpoch)
            (self.ownerKeyID, self.signature) = (ownerKeyID, signature)
        }
    }

    /// Counts the lists of the branch, from 1.
    public var version: Int64
    /// The epoch of the root's key. Removing a reader begins another one.
    public var epoch: UInt32
    /// The commitment to the root's key of this epoch, 32 bytes: the same for every reader.
    public var commitment: [UInt8]
    /// Members without the owner, in the order of the bytes of their ids.
    public var members: [Member]
    /// Members that may change the list, in the same order.
    public var grants: [Grant]
    /// SHA-256 of the form of the list before; nil for the first one.
    public var previous: [UInt8]?
    /// The account that signed, the id of its keys, and its signature.
    public var signature: RecordSignature

    /// A list, which is not checked.
    public init(
        version: Int64, epoch: UInt32, commitment: [UInt8], members: [Member], grants: [Grant] = [],
        previous: [UInt8]? = nil, signature: RecordSignature
    ) {
        (self.version, self.epoch, self.commitment) = (version, epoch, commitment)
        (self.members, self.grants) = (members, grants)
        (self.previous, self.signature) = (previous, signature)
    }

    /// The member of an account; nil if it has none.
    public func member(_ user: UserID) -> Member? { members.first { $0.user == user } }

    /// The rights of an account.
    ///
    /// - Parameter owner: the owner of the tree.
    public func right(of user: UserID, owner: UserID) -> ShareRight {
        ShareRight(isOwner: user == owner, permissions: member(user)?.permissions ?? [])
    }

    /// Whether the keys of a root are wrapped for members and the owner only.
    package func permits(_ wraps: [RecordWrap], owner: UserID) -> Bool {
        wraps.allSatisfy { wrap in
            guard case .user(let user, _) = wrap.reader else { return true }
            return user == owner || member(user) != nil
        }
    }

    // MARK: Signing

    /// The branch that a list belongs to.
    public struct Place: Sendable, Hashable {
        /// The tree.
        public let tree: TreePlace
        /// The root of the branch.
        public let root: NodeID

        /// The branch below `root`.
        public init(_ tree: TreePlace, root: NodeID) { (self.tree, self.root) = (tree, root) }

        fileprivate var octets: [UInt8] {
            [tree.app.text, tree.owner.text, root.text].flatMap { ShareList.lp(Array($0.utf8)) }
        }
    }

    /// The bytes that the list's signature is over: `thicket/share-list/1` ‖ 0 ‖ place, version (8), epoch (4),
    /// commitment, digest of the list before (empty for the first), members, grants, author and key id, with lengths of
    /// 16 bits.
    public func form(at place: Place) -> [UInt8] {
        var bytes = Array("thicket/share-list/1".utf8) + [0] + place.octets
        bytes += version.octets + epoch.octets + Self.lp(commitment) + Self.lp(previous ?? [])
        bytes += UInt16(members.count).octets
        for member in members {
            bytes += Self.lp(Array(member.user.text.utf8)) + [member.permissions.rawValue]
            bytes += Self.lp(Array(member.keyID.utf8))
        }
        bytes += UInt16(grants.count).octets
        for grant in grants {
            bytes += Self.lp(Array(grant.user.text.utf8)) + Self.lp(Array(grant.keyID.utf8))
            bytes += grant.fromEpoch.octets + Self.lp(Array(grant.ownerKeyID.utf8)) + Self.lp(grant.signature)
        }
        return bytes + Self.lp(Array(signature.author.text.utf8)) + Self.lp(Array(signature.keyID.utf8))
    }

    /// The digest by which the next list names this one, over the form and the signature.
    public func digest(at place: Place) -> [UInt8] { Hash.sha256(form(at: place) + signature.octets) }

    /// The bytes that the owner signs for a grant.
    public static func grantForm(_ grant: Grant, at place: Place) -> [UInt8] {
        Array("thicket/share-grant/1".utf8) + [0] + place.octets + lp(Array(grant.user.text.utf8))
            + lp(Array(grant.keyID.utf8)) + grant.fromEpoch.octets + lp(Array(grant.ownerKeyID.utf8))
    }

    fileprivate static func lp(_ bytes: [UInt8]) -> [UInt8] { UInt16(bytes.count).octets + bytes }
}
