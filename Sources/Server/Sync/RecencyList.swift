/// A member of a `RecencyList`. Used only on the shard's thread, like the list.
class RecencyNode {
    fileprivate(set) unowned(unsafe) var newer: RecencyNode?
    fileprivate(set) unowned(unsafe) var older: RecencyNode?
    fileprivate(set) var isListed = false
    /// Bytes that the list counts for this member; changed only by the list.
    fileprivate(set) var countedBytes = 0
}

/// Members in order of last use, with their bytes: a bounded cache evicts from the end.
///
/// The list does not retain its members; their owner must remove them from the list before releasing them.
final class RecencyList<Member: RecencyNode> {
    private unowned(unsafe) var newest: RecencyNode?
    private unowned(unsafe) var oldestNode: RecencyNode?
    /// Bytes of all members.
    private(set) var bytes = 0
    private(set) var count = 0

    /// The least recently used member.
    var oldest: Member? { oldestNode.map { unsafeDowncast($0, to: Member.self) } }

    /// Moves a member to the front, counted with `bytes`; adds it if it is not listed.
    func touch(_ member: Member, bytes memberBytes: Int) {
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

    /// Changes the counted bytes of a listed member without moving it.
    func count(_ member: Member, bytes memberBytes: Int) {
        bytes += memberBytes - member.countedBytes
        member.countedBytes = memberBytes
    }

    /// Removes a member; no effect if it is not listed.
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
