public import ThicketCrypto
public import ThicketProtocol

/// Why a list is not believed. The server refuses a record with such a list, and devices quarantine it.
public enum ShareListError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The list is not signed with the verified keys of its author.
    case notSigned
    /// The author is neither the owner nor a member with a grant of the owner.
    case noGrant
    /// A member changed what only the owner changes: grants, or which members may share.
    case beyondGrant
    /// The list does not follow the one before it: another version or digest.
    case notNext
    /// A reader was removed, or has other keys, without another epoch; or an epoch was skipped.
    case badEpoch
    /// The owner is among the members.
    case ownerListed
    /// A member that may share has other keys than those of its grant, and they are not verified as the member's.
    case unknownSharer

    /// A sentence without content of the list.
    public var description: String {
        switch self {
        case .notSigned: "the list is not signed with verified keys of its author"
        case .noGrant: "the author of the list is not the owner, and has no grant"
        case .beyondGrant: "only the owner changes grants, and which members may share"
        case .notNext: "the list does not follow the one before it"
        case .badEpoch: "without a removed reader the key stays the same, and with one it is the next"
        case .ownerListed: "the owner is not a member of the list"
        case .unknownSharer: "a member that may share has other keys than its grant, which are not verified as its own"
        }
    }
}

extension ShareList {
    /// Verified keys of an account, by the id of the keys; nil for keys that no look-up has verified.
    public typealias Keys = (_ user: UserID, _ keyID: String) -> Ed25519.VerifyingKey?

    /// Checks the signatures of a list: its author's, and those of the grants.
    ///
    /// - Parameters:
    ///   - place: the branch.
    ///   - keys: verified keys of the author, the owner and `replacedSharers`.
    /// - Throws: `ownerListed`, `notSigned`, `noGrant`, `unknownSharer`.
    public func checkSignatures(at place: Place, _ keys: Keys) throws(ShareListError) {
        let owner = place.tree.owner
        guard member(owner) == nil else { throw .ownerListed }
        guard let key = keys(signature.author, signature.keyID),
            key.isSignature(signature.octets, of: form(at: place))
        else { throw .notSigned }
        for grant in grants {
            guard let key = keys(owner, grant.ownerKeyID),
                key.isSignature(grant.signature, of: Self.grantForm(grant, at: place))
            else { throw .noGrant }
        }
        guard signature.author == owner || hasGrant(signature.author, signature.keyID) else { throw .noGrant }
        guard replacedSharers.allSatisfy({ keys($0.user, $0.keyID) != nil }) else { throw .unknownSharer }
    }

    /// Members that may share and have other keys than those that their grants name: they have replaced them. The grant
    /// still names the keys with which such a member signs lists, until the owner's next list gives it another one.
    public var replacedSharers: [Member] {
        sharers.filter { member in
            !grants.contains { $0.user == member.user && $0.keyID.utf8.elementsEqual(member.keyID.utf8) }
        }
    }

    /// Whether the same members may share in two lists, with the same letters. Their keys may be others: which ones
    /// change the list is decided by the grants.
    package func hasSameSharers(as other: ShareList) -> Bool {
        sharers.elementsEqual(other.sharers) { $0.user == $1.user && $0.permissions == $1.permissions }
    }

    /// Whether the owner lets these keys change the list.
    private func hasGrant(_ user: UserID, _ keyID: String) -> Bool {
        grants.contains { $0.user == user && $0.keyID.utf8.elementsEqual(keyID.utf8) && $0.fromEpoch <= epoch }
    }

    /// Checks that the list may follow another one. The signatures of both were checked.
    ///
    /// - Parameters:
    ///   - before: the list before; nil for the first list of a branch, and for one that is shared again: its list
    ///     names the last one, which only devices that knew it can compare.
    ///   - place: the branch.
    /// - Throws: `notNext`, `badEpoch`, `noGrant`, `beyondGrant`.
    public func checkFollows(_ before: ShareList?, at place: Place) throws(ShareListError) {
        guard let before else {
            guard (version == 1) == (previous == nil) else { throw .notNext }
            guard signature.author == place.tree.owner else { throw .noGrant }
            return
        }
        guard version == before.version + 1, previous == before.digest(at: place) else { throw .notNext }
        let isSameEpoch = epoch == before.epoch
        guard isSameEpoch || epoch == before.epoch &+ 1, isSameEpoch == (commitment == before.commitment),
            !isSameEpoch || before.members.allSatisfy({ isKept($0) })
        else { throw .badEpoch }
        guard signature.author != place.tree.owner else { return }
        guard before.member(signature.author)?.permissions.contains(.share) == true,
            before.hasGrant(signature.author, signature.keyID)
        else { throw .noGrant }
        guard grants == before.grants, hasSameSharers(as: before) else { throw .beyondGrant }
    }

    /// Whether a reader of the list before still opens what is written under the same epoch.
    private func isKept(_ reader: Member) -> Bool {
        guard reader.permissions.contains(.read) else { return true }
        guard let now = member(reader.user) else { return false }
        return now.permissions.contains(.read) && now.keyID.utf8.elementsEqual(reader.keyID.utf8)
    }

    private var sharers: [Member] { members.filter { $0.permissions.contains(.share) } }
}
