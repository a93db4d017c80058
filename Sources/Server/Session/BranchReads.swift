import ThicketProtocol
import ThicketTreeShape

/// What readers answer to members of shared branches.
struct BranchReads {
    let reader: any StoreReader
    let bucket: BucketRow
    let member: BranchMember

    /// Whether the list on the root permits the member to read.
    func isReader() throws(StoreError) -> Bool {
        guard try !reader.hasEnded(member.tree.user, in: member.tree.app) else { return false }
        return try reader.readers(of: member.root, in: bucket)?.contains(member.user) ?? false
    }

    /// Whether a node is in the branch.
    func contains(_ node: NodeID) throws(StoreError) -> Bool {
        var (place, depth) = (NodeParent.node(node), 0)
        while case .node(let ancestor) = place, depth <= TreeLimits.depthMax {
            guard let found = try reader.place(of: ancestor, in: bucket) else { return false }
            if ancestor == member.root { return true }
            (place, depth) = (found.parent, depth + 1)
        }
        return false
    }

    /// Whether the member may read an object: a node of the branch at its newest version.
    func permits(_ key: EntityKey, _ version: Version) throws(StoreError) -> Bool {
        guard let node = NodeID(text: key.text), try isReader(), try contains(node) else { return false }
        return try reader.entity(key, in: bucket)?.version == version
    }

    /// The lists of children of parents in the branch. In the place of `home` is the root alone; any other parent has
    /// no children, as one that does not exist.
    func children(_ read: ChildRead) throws(StoreError) -> [StoredChildren] {
        var inside = [NodeParent]()
        for parent in read.parents {
            if case .node(let node) = parent, try contains(node) { inside.append(parent) }
        }
        var known = read
        known.parents = inside
        let lists = inside.isEmpty ? [] : try reader.children(known, in: bucket)
        let found = [NodeParent: StoredChildren](zip(inside, lists)) { first, _ in first }
        var all = [StoredChildren]()
        for parent in read.parents {
            all.append(parent == .trunk(.home) ? try rootList() : found[parent] ?? StoredChildren())
        }
        return all
    }

    private func rootList() throws(StoreError) -> StoredChildren {
        guard let key = try? EntityKey(member.root.text), let head = try reader.head(of: key, in: bucket),
            let body = head.body, let place = try reader.place(of: member.root, in: bucket)
        else { return StoredChildren() }
        return StoredChildren(nodes: [
            StoredChild(
                node: member.root, gid: head.record.gid, tag: place.tag, version: head.record.version, body: body,
                stats: nil)
        ])
    }
}
