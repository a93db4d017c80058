public import ThicketKeyLog
public import ThicketProtocol
public import ThicketTreeShape

/// What an account changes in the list of a shared branch.
public struct ShareChange: Sendable, Hashable {
    /// Members that come, or get other letters; without letters a member goes.
    public var members: [UserID: SharePermissions]
    /// Whether sharing ends: the node is an ordinary one again.
    public var isEnd: Bool
    /// Whether another epoch begins even if no right ends.
    public var renews: Bool

    /// A change; without arguments none.
    public init(_ members: [UserID: SharePermissions] = [:], isEnd: Bool = false, renews: Bool = false) {
        (self.members, self.isEnd, self.renews) = (members, isEnd, renews)
    }

    /// This change, and then another one.
    public func followed(by next: ShareChange) -> ShareChange {
        if next.isEnd { return next }
        return ShareChange(
            members.merging(next.members) { $1 }, isEnd: isEnd, renews: renews || next.renews)
    }

    /// Letters whose end begins another epoch. Of a reader, because it has the key. Of a writer, so that devices which
    /// read the branch later can distinguish what it wrote while it had the letter.
    private static let ending: [SharePermissions] = [.read, .write, .writeOnce, .oneChild]

    /// Whether another epoch begins, as far as letters decide that.
    ///
    /// - Parameter list: the list that is changed; nil: there is none.
    public func endsRights(in list: ShareList?) -> Bool {
        guard let list else { return false }
        if renews { return true }
        return list.members.contains { member in
            guard let letters = members[member.user] else { return false }
            return Self.ending.contains { member.permissions.contains($0) && !letters.contains($0) }
        }
    }

    /// The letters of all members after the change.
    public func letters(after list: ShareList?) -> [UserID: SharePermissions] {
        var letters = [UserID: SharePermissions]()
        for member in list?.members ?? [] { letters[member.user] = member.permissions }
        return letters.merging(members) { $1 }.filter { !$0.value.isEmpty }
    }

    /// Whether another epoch begins.
    ///
    /// - Parameter keys: newest verified keys. Other keys of a reader than the list has need another epoch.
    public func needsEpoch(after list: ShareList?, _ keys: [UserID: PublicKeys]) -> Bool {
        if endsRights(in: list) { return true }
        return (list?.members ?? []).contains { member in
            guard member.permissions.contains(.read), needsKeys(of: member.user, in: list),
                let known = keys[member.user]
            else { return false }
            return !known.id.utf8.elementsEqual(member.keyID.utf8)
        }
    }

    /// Whether a member gets its newest keys also without another epoch: one that changes, and one that may share and
    /// has replaced its keys, so that the owner gives a grant to keys only that it has looked up itself.
    public func needsKeys(of user: UserID, in list: ShareList?) -> Bool {
        members[user] != nil || list?.replacedSharers.contains { $0.user == user } == true
    }

    /// The accounts whose newest verified keys are needed to make the list: of members that come or change, and with
    /// another epoch of all. The owner compares each member's key with the list again before each new epoch.
    ///
    /// - Parameter keys: those that are known already.
    public func accounts(after list: ShareList?, _ keys: [UserID: PublicKeys]) -> Set<UserID> {
        if isEnd { return [] }
        let letters = letters(after: list)
        if needsEpoch(after: list, keys) { return Set(letters.keys) }
        return Set(letters.keys.filter { needsKeys(of: $0, in: list) })
    }
}
