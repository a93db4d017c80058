import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol
public import ThicketTreeShape

/// Records of the roots of shared branches (treesystem 4.10; decision 0067).
extension NodeSealer {
    /// The record of a root with another list, or without one. Whatever the branch's size, it is the only record that
    /// is written. The lists of a branch that is shared again go on from its last one, with another key.
    ///
    /// - Parameters:
    ///   - node: the root as it was opened. Its list is the one that this device believes.
    ///   - change: what changes.
    ///   - keys: newest verified keys, at least of `change.accounts`.
    ///   - parent: the keys of the parent; nil at a member, which writes neither place nor name of the root.
    ///   - base: the version of the root's record that is replaced.
    ///   - author: the owner, or a member with the owner's grant.
    /// - Throws: `badShare`, `missingKeys`, `unusableKey`, and as `edit`.
    public func share(
        _ node: OpenedNode, _ change: ShareChange, keys: [UserID: PublicKeys], below parent: ParentKeys?,
        replacing base: Version, by author: MessageIdentity
    ) throws(SealFault) -> NodeRecord {
        var (metadata, record) = try edited(node, NodeEdit(), replacing: base)
        let (before, place) = (record.shareList, ShareList.Place(tree, root: node.id))
        if change.isEnd {
            guard author.user == tree.owner, let parent, let before else { throw .badShare }
            (record.shareList, metadata.endedList) = (nil, EndedList(before, at: place))
            record.wraps.removeAll { $0.isUserWrap }
            let node = OpenedNode(tree: tree, id: node.id, record: record, metadata: metadata, key: node.key)
            return try edit(node, below: parent, replacing: base, by: author, renewing: true)
        }
        let ended = before == nil ? metadata.endedList : nil
        var list = try ShareDraft(change, before, after: ended, keys, by: author, at: place).list
        metadata.endedList = nil
        // The author of a message has its key, and so has each former reader.
        let renews = before.map { $0.epoch != list.epoch } ?? (node.metadata.origin != nil || ended != nil)
        var key = node.key
        if renews {
            (key, metadata.earlierKeys) = (newKey(), try EarlierKey.list(of: node))
            record.epoch = before == nil && ended == nil ? record.epoch + 1 : list.epoch
        }
        record.commitment = Self.commitment(key)
        (list.epoch, list.commitment) = (record.epoch, record.commitment)
        list = try ShareDraft.signed(list, by: author, at: place)
        record.shareList = list
        let owners = record.wraps.filter { $0.reader == .parent || $0.isWrap(for: tree.owner) }
        try wrap(key, of: list, keys, isNew: renews, in: &record, node.id)
        record.wraps.removeAll { $0.reader == .parent }
        if let parent {
            record.wraps.append(parent.wrap(key, of: node.id, epoch: record.epoch, in: tree, random))
        } else if renews {
            // A member has not the key of the parent: the owner finds the key in a wrap of its own, until it writes the
            // root the next time.
            record.wraps.append(try wrap(key, for: tree.owner, keys, epoch: record.epoch, node.id))
        } else {
            record.wraps += owners
        }
        return try sealing(metadata, with: key, in: record, node.id, by: author)
    }

    /// Wraps for exactly the readers in the list; those that stay under one key keep theirs.
    private func wrap(
        _ key: NodeKey, of list: ShareList, _ keys: [UserID: PublicKeys], isNew: Bool, in record: inout NodeRecord,
        _ id: NodeID
    ) throws(SealFault) {
        var wraps = record.wraps.filter { !$0.isUserWrap }
        for member in list.members where member.permissions.contains(.read) {
            let known = record.wraps.first { $0.isWrap(for: member.user) && $0.keyID == member.keyID }
            if let known, !isNew {
                wraps.append(known)
                continue
            }
            guard let reader = keys[member.user], reader.id.utf8.elementsEqual(member.keyID.utf8) else {
                throw .missingKeys
            }
            wraps.append(try wrap(key, for: member.user, keys, epoch: list.epoch, id))
        }
        record.wraps = wraps
    }

    /// A key for an account that the verified list names, or for the owner.
    private func wrap(
        _ key: NodeKey, for user: UserID, _ keys: [UserID: PublicKeys], epoch: UInt32, _ id: NodeID
    ) throws(SealFault) -> RecordWrap {
        guard let reader = keys[user] else { throw .missingKeys }
        let context = KeyWrap(of: id, in: tree, epoch: epoch, for: user, keyID: reader.id)
        guard let sealed = try? context.seal(key.secret, to: reader.encryption) else { throw .unusableKey }
        return RecordWrap(.user(user, keyID: reader.id), sealed: sealed)
    }

    /// The record with which a member replaces that of a root: place, tag, key, wraps and list stay.
    ///
    /// - Throws: `badShare` for another name; as `edit`.
    public func editRoot(
        _ node: OpenedNode, _ edit: NodeEdit, replacing base: Version, by author: MessageIdentity
    ) throws(SealFault) -> NodeRecord {
        guard edit.name == nil else { throw .badShare }
        let (metadata, record) = try edited(node, edit, replacing: base)
        return try sealing(metadata, with: node.key, in: record, node.id, by: author)
    }
}

extension RecordWrap {
    fileprivate var isUserWrap: Bool { if case .user = reader { true } else { false } }
}

/// The next list of a branch.
private struct ShareDraft {
    let list: ShareList

    /// - Parameter ended: the last list of a branch that was shared before; nil while it has a list.
    /// - Throws: `badShare`, `missingKeys`.
    init(
        _ change: ShareChange, _ before: ShareList?, after ended: EndedList?, _ keys: [UserID: PublicKeys],
        by author: MessageIdentity, at place: ShareList.Place
    ) throws(SealFault) {
        let owner = place.tree.owner
        guard change.members[owner] == nil else { throw .badShare }
        let renews = change.needsEpoch(after: before, keys)
        var members = [ShareList.Member]()
        let letters = change.letters(after: before)
        guard letters.count <= TreeLimits.shareMembersMax else { throw .badShare }
        for (user, permissions) in letters.sorted(by: { Self.precedes($0.key, $1.key) }) {
            let known = before?.member(user)
            let isOpen = renews || known == nil || change.needsKeys(of: user, in: before)
            guard let keyID = isOpen ? keys[user]?.id : known?.keyID else { throw .missingKeys }
            members.append(ShareList.Member(user, permissions, keyID: keyID))
        }
        let epoch = before.map { $0.epoch + (renews ? 1 : 0) } ?? ended.map { $0.epoch + 1 } ?? 0
        var grants = before?.grants ?? []
        if author.user == owner {
            grants = try Self.grants(members, before, epoch, by: author, at: place)
        } else if let before, !Self.sharers(before.members).elementsEqual(Self.sharers(members), by: Self.isSame) {
            throw .badShare
        }
        let pending: RecordSignature
        do throws(RecordFault) {
            pending = try RecordSignature(pending: author.user, keyID: Self.keyID(of: author, before, at: place))
        } catch { throw .outOfBounds }
        list = ShareList(
            version: (before?.version ?? ended?.version ?? 0) + 1, epoch: epoch, commitment: before?.commitment ?? [],
            members: members, grants: grants, previous: before?.digest(at: place) ?? ended?.digest, signature: pending)
    }

    /// With which keys the author signs: a member with those that its grant names, which it keeps when it has others.
    /// The owner's next list with those gives it another grant.
    private static func keyID(of author: MessageIdentity, _ list: ShareList?, at place: ShareList.Place) -> String {
        guard author.user != place.tree.owner, let grant = list?.grants.first(where: { $0.user == author.user }),
            author.keys(grant.keyID) != nil
        else { return author.keys.id }
        return grant.keyID
    }

    /// The owner's grants for the members that may share.
    private static func grants(
        _ members: [ShareList.Member], _ before: ShareList?, _ epoch: UInt32, by owner: MessageIdentity,
        at place: ShareList.Place
    ) throws(SealFault) -> [ShareList.Grant] {
        sharers(members).map { member in
            let known = before?.grants.first { $0.user == member.user && $0.keyID == member.keyID }
            if let known { return known }
            var grant = ShareList.Grant(
                member.user, keyID: member.keyID, fromEpoch: epoch, ownerKeyID: owner.keys.id, signature: [])
            grant.signature = owner.signing.signature(of: ShareList.grantForm(grant, at: place))
            return grant
        }
    }

    private static func sharers(_ members: [ShareList.Member]) -> [ShareList.Member] {
        members.filter { $0.permissions.contains(.share) }
    }

    /// Whether a member has the same letters; its keys may be others.
    private static func isSame(_ left: ShareList.Member, _ right: ShareList.Member) -> Bool {
        left.user == right.user && left.permissions == right.permissions
    }

    private static func precedes(_ left: UserID, _ right: UserID) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    static func signed(
        _ list: ShareList, by author: MessageIdentity, at place: ShareList.Place
    ) throws(SealFault) -> ShareList {
        var list = list
        let keyID = list.signature.keyID
        guard let key = author.signing(keyID) else { throw .missingKeys }
        do throws(RecordFault) {
            list.signature = try RecordSignature(
                author: author.user, keyID: keyID, octets: key.signature(of: list.form(at: place)))
        } catch { throw .outOfBounds }
        return list
    }
}
