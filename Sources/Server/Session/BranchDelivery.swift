import ThicketProtocol
import ThicketTreeShape

/// How a change that belongs to shared branches is sent to the members of these branches.
public final class BranchDelivery: Sendable {
    /// The branches.
    let audience: ChangeAudience
    /// The element for the members of `audience.after`, if it is another one than the owner's.
    private let entry: [UInt8]?
    /// The element for the members of `audience.left`: a removal.
    private let removal: [UInt8]?
    /// The root whose list the change has written, replaced or ended; nil for any other node.
    let root: NodeID?
    /// The accounts that may read below `root` from then on.
    let readers: Set<UserID>
    /// Whether `root` has a list from then on.
    let hasList: Bool

    /// - Parameters:
    ///   - row: a row of the log with an audience.
    ///   - record: the record after the change; nil for a removal.
    init?(_ row: ChangeRecord, _ record: JSONObject?, _ codec: ChangeVersionCodec, tag: UInt32) {
        guard let audience = row.audience else { return nil }
        self.audience = audience
        func element(_ root: NodeID?) -> [UInt8]? {
            root.flatMap { row.seen(in: $0) }.map { ChangeElement.encode($0, codec, tag: tag) }
        }
        entry = audience.isEntry ? element(audience.after) : nil
        removal = element(audience.left)
        let node = NodeID(text: row.key.text)
        root = node != nil && (node == audience.after || node == audience.left) ? node : nil
        let list = root == nil ? nil : record?[RecordKey.shareList.rawValue]
        readers = list.map { Set(NodeRow.readers(of: $0)) } ?? []
        hasList = list != nil
    }

    /// Bytes of the elements that only members get.
    var bytes: Int { (entry?.count ?? 0) + (removal?.count ?? 0) }

    /// The element for the members of a branch; nil when the change does not belong to it.
    ///
    /// - Parameter owners: the element that the owner gets.
    func element(in root: NodeID, _ owners: [UInt8]) -> [UInt8]? {
        if audience.after == root { return entry ?? owners }
        return audience.left == root ? removal : nil
    }
}

/// What a channel of a member sees of the owner's tree.
public struct BranchMember: Sendable, Hashable {
    /// The account.
    let user: UserID
    /// The root of the branch.
    let root: NodeID
    /// The owner's tree.
    let tree: BucketID
}

extension BucketFeed.Entry {
    /// The entry as the members of a branch get it; nil when it does not belong to the branch.
    func seen(in root: NodeID) -> BucketFeed.Entry? {
        guard let branch, let element = branch.element(in: root, element) else { return nil }
        let isRemoval = isRemoval || branch.audience.after != root
        return BucketFeed.Entry(gid: gid, key: key, isRemoval: isRemoval, element: element, branch: branch)
    }

    /// Whether the account may not read its branch from this change on.
    func excludes(_ member: BranchMember) -> Bool {
        guard let branch, branch.root == member.root, branch.hasList else { return false }
        return !branch.readers.contains(member.user)
    }
}

extension ChangeRecord {
    /// Whether the change writes a list on the root of a member's branch that does not permit it to read.
    func excludes(_ member: BranchMember) -> Bool {
        guard audience != nil, NodeID(text: key.text) == member.root else { return false }
        // A change has whole members. Without a list, the branch is not shared with any account.
        guard kind == .modify, let list = (try? JSONValue(parsing: diff))?[RecordKey.shareList.rawValue]?["v"] else {
            return false
        }
        return !NodeRow.readers(of: list).contains(member.user)
    }
}
