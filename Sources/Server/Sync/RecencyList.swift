/// A member of a `RecencyList`. Owned by the shard's thread, like the list.
class RecencyNode {
    fileprivate(set) unowned(unsafe) var newer: RecencyNode?
    fileprivate(set) unowned(unsafe) var older: RecencyNode?
    fileprivate(set) var isListed = false
    /// Bytes this member is counted with; changed through the list only.
    fileprivate(set) var countedBytes = 0
}

/// Members in order of last use, with the bytes they hold: what a bounded cache forgets first stands at the end.
///
/// The list does not keep its members alive; whoever owns them removes them here before letting go.
final class RecencyList<Member: RecencyNode> {
    private unowned(unsafe) var newest: RecencyNode?
    private unowned(unsafe) var oldestNode: RecencyNode?
    /// Bytes of all members.
    private(set) var bytes = 0
    private(set) var count = 0

    /// The member that was not used for longest.
    var oldest: Member? { oldestNode.map { unsafeDowncast($0, to: Member.self) } }

    /// Puts a member in front, counted with `bytes`; a new member joins.
    func use(_ member: Member, bytes memberBytes: Int) {
        bytes += memberBytes - member.countedBytes
        member.countedBytes = memberBytes
        guard newest !== member else { return }
        if member.isListed { unlink(member) } else { count += 1 }
        member.isListed = true
        member.newer = nil
        member.older = newest
        newest?.newer = member
        newest = member
        if oldestNode == nil { oldestNode = member }
    }

    /// Counts a member that is in with other bytes, and leaves it in its place.
    func count(_ member: Member, bytes memberBytes: Int) {
        bytes += memberBytes - member.countedBytes
        member.countedBytes = memberBytes
    }

    /// Takes a member out; nothing happens when it is not in.
    func remove(_ member: Member) {
        guard member.isListed else { return }
        unlink(member)
        member.isListed = false
        bytes -= member.countedBytes
        member.countedBytes = 0
        count -= 1
    }

    private func unlink(_ member: RecencyNode) {
        let newer = member.newer
        let older = member.older
        if let newer { newer.older = older } else { newest = older }
        if let older { older.newer = newer } else { oldestNode = newer }
        member.newer = nil
        member.older = nil
    }
}
