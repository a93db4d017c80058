public import ThicketCrypto
public import ThicketProtocol
public import ThicketTreeShape

/// What a device believes of one shared branch: its list, and by that which records are genuine (treesystem 4.10; SP4,
/// SP5). Pure: keys of accounts are passed in.
///
/// The server shows lists and records; none of it counts before its signatures verify with keys of the key log. What
/// does not verify is quarantined, and nothing is wrapped for its readers.
public struct BranchState: Sendable, Hashable {
    /// The branch.
    public let place: ShareList.Place
    /// The newest list that is believed; nil: none yet.
    public private(set) var list: ShareList?

    /// A branch of which no list is known, or the one that was believed before.
    public init(_ place: ShareList.Place, list: ShareList? = nil) { (self.place, self.list) = (place, list) }

    /// The owner of the branch.
    public var owner: UserID { place.tree.owner }

    /// Keys of an account.
    public enum KnownKey: Sendable {
        /// Verified with the key log.
        case verified(Ed25519.VerifyingKey)
        /// The key log has no such keys of the account.
        case absent
        /// Not looked up yet.
        case unknown
    }

    /// The keys of an account, by their id.
    public typealias Keys = (_ user: UserID, _ keyID: String) -> KnownKey

    /// What a device does with a list or a record.
    public enum Verdict: Sendable, Hashable {
        /// It is genuine.
        case believed
        /// Keys of an account must be looked up first.
        case waits(UserID, keyID: String)
        /// It is quarantined.
        case refused(BranchFault)
    }

    // MARK: - Lists

    /// Judges the list of a root. A list that is believed is kept by `believe`.
    public func judge(_ list: ShareList, _ keys: Keys) -> Verdict {
        if let known = self.list {
            if known.version == list.version {
                return known.digest(at: place) == list.digest(at: place) ? .believed : .refused(.forkedList)
            }
            if list.version < known.version { return .refused(.olderList) }
        }
        if let missing = missingKeys(of: list, keys) { return missing }
        do throws(ShareListError) {
            try list.checkSignatures(at: place) { user, keyID in
                if case .verified(let key) = keys(user, keyID) { key } else { nil }
            }
            try checkFollows(list)
            return .believed
        } catch { return .refused(.list(error)) }
    }

    /// A list that was judged as believed.
    public mutating func believe(_ list: ShareList) { self.list = list }

    private func missingKeys(of list: ShareList, _ keys: Keys) -> Verdict? {
        let signers = [(list.signature.author, list.signature.keyID)] + list.grants.map { (owner, $0.ownerKeyID) }
        for (user, keyID) in signers + list.replacedSharers.map({ ($0.user, $0.keyID) }) {
            switch keys(user, keyID) {
            case .verified: continue
            case .absent: return .refused(.unknownKeys)
            case .unknown: return .waits(user, keyID: keyID)
            }
        }
        return nil
    }

    /// A device that was away sees the newest list only: it follows one of which the device knows nothing. Then what
    /// holds for each step must hold for all together, and a member's list changes nothing that only the owner changes.
    private func checkFollows(_ list: ShareList) throws(ShareListError) {
        guard let known = self.list else {
            // A reader that comes later begins with the list that it finds.
            return list.version == 1 ? try list.checkFollows(nil, at: place) : ()
        }
        guard list.version > known.version + 1 else { return try list.checkFollows(known, at: place) }
        let isSameEpoch = list.epoch == known.epoch
        guard list.epoch >= known.epoch, Int64(list.epoch - known.epoch) <= list.version - known.version,
            isSameEpoch == (list.commitment == known.commitment), !isSameEpoch || Self.keeps(known, list)
        else { throw .badEpoch }
        guard list.signature.author != owner else { return }
        guard known.grants.contains(where: { $0.user == list.signature.author }), list.grants == known.grants,
            list.hasSameSharers(as: known)
        else { throw .noGrant }
    }

    private static func keeps(_ known: ShareList, _ list: ShareList) -> Bool {
        known.members.allSatisfy { reader in
            guard reader.permissions.contains(.read) else { return true }
            guard let now = list.member(reader.user), now.permissions.contains(.read) else { return false }
            return now.keyID.utf8.elementsEqual(reader.keyID.utf8)
        }
    }

    // MARK: - Records

    /// How a record arrived, as far as that decides whether it may be without a signature or by a former member.
    public struct Arrival: Sendable {
        /// The version that the record has at the server.
        public var version: Version
        /// The version of the node that this device has; 0: none.
        public var known: Version
        /// Whether it was read in a list, not reported as a change: it may be from before the list.
        public var isListed: Bool
        /// Whether this device has read the list together with the record: the branch was not shared before.
        public var isFromBefore: Bool

        /// A record that arrived.
        public init(version: Version, known: Version, isListed: Bool, isFromBefore: Bool) {
            (self.version, self.known) = (version, known)
            (self.isListed, self.isFromBefore) = (isListed, isFromBefore)
        }
    }

    /// Judges a record inside the branch, the root's included, by the list that is believed.
    ///
    /// - Parameters:
    ///   - record: the record as the server has shown it.
    ///   - id: the node.
    ///   - action: what its author did.
    ///   - arrival: how it arrived.
    ///   - keys: keys of accounts.
    public func judge(
        _ record: NodeRecord, _ id: NodeID, _ action: ShareAction, _ arrival: Arrival, _ keys: Keys
    ) -> Verdict {
        guard let signature = record.signature else {
            let mayBe = arrival.isFromBefore || (arrival.isListed && arrival.known == 0)
            return mayBe && record.stamps.sender == nil && record.shareList == nil ? .believed : .refused(.unsigned)
        }
        if let list = record.shareList, !list.permits(record.wraps, owner: owner) {
            return .refused(.notPermitted(.noShare))
        }
        // The server's stamp names the creator of the node, and is no evidence: the signature names the author.
        guard isNext(record, arrival) else { return .refused(.replayed) }
        switch keys(signature.author, signature.keyID) {
        case .absent: return .refused(.unknownKeys)
        case .unknown: return .waits(signature.author, keyID: signature.keyID)
        case .verified(let key):
            guard RecordSignature.verify(record, id, in: place.tree, with: key) else { return .refused(.badSignature) }
        }
        guard let denial = denial(signature.author, action, record, arrival) else { return .believed }
        return .refused(.notPermitted(denial))
    }

    /// Judges a record that has the place of the root and no list: only the owner ends sharing.
    public func judgeEnd(_ record: NodeRecord, _ id: NodeID, _ arrival: Arrival, _ keys: Keys) -> Verdict {
        guard record.signature?.author == owner else { return .refused(.listMissing) }
        return judge(record, id, .share, arrival, keys)
    }

    /// A signature names the version that the record replaces, so that an earlier record is not shown again as a new
    /// one. A node that was removed and created again begins without one, at least two versions later.
    private func isNext(_ record: NodeRecord, _ arrival: Arrival) -> Bool {
        if record.base == arrival.version - 1 { return true }
        return record.base == 0 && (arrival.known == 0 || arrival.version > arrival.known + 1)
    }

    private func denial(
        _ author: UserID, _ action: ShareAction, _ record: NodeRecord, _ arrival: Arrival
    ) -> ShareDenial? {
        guard author != owner, let list else { return nil }
        let denial = list.right(of: author, owner: owner).denial(of: action)
        // What a member wrote before its right ended is of an earlier epoch (`ShareChange.endsRights`).
        if denial != nil, arrival.isListed, record.epoch < list.epoch { return nil }
        return denial
    }
}
