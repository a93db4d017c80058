import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

/// Shared branches of a sweep: lists of the owner, and batches of members. Signatures are not part of it.
extension TreeSweepAuthor {
    /// Shares a node, changes its list, or ends that; nil if a list may not be there.
    mutating func share(_ node: NodeID, _ draft: inout TreeSweepState) -> TreeOperation? {
        if let list = draft.nodes[node]?.list {
            let next = roll(3) == 0 ? nil : Self.list(on: node, after: list)
            return put(node, &draft) { $0.list = next }
        }
        guard let parent = draft.nodes[node]?.parent, draft.mayHaveLists(parent),
            draft.branch(node).allSatisfy({ draft.nodes[$0]?.list == nil }), let list = Self.list(on: node, after: nil)
        else { return nil }
        return put(node, &draft) { $0.list = list }
    }

    /// The next list of a branch: without the reader, which begins an epoch, or with it again.
    private static func list(on root: NodeID, after before: ShareList?) -> ShareList? {
        guard let app = try? AppID("sweep"), let owner = try? TreeSweepServer.owner(),
            let writer = try? UserID(TreeSweepState.writer), let reader = try? UserID(TreeSweepState.reader),
            let signature = try? RecordSignature(
                author: owner, keyID: "k", octets: [UInt8](repeating: 5, count: Ed25519.signatureBytes))
        else { return nil }
        let ends = before?.member(reader) != nil
        let epoch = (before?.epoch ?? 0) + (ends ? 1 : 0)
        var members = [ShareList.Member(writer, [.read, .write], keyID: "k")]
        if !ends { members.append(ShareList.Member(reader, [.read], keyID: "k")) }
        let place = ShareList.Place(TreePlace(app: app, owner: owner), root: root)
        return ShareList(
            version: (before?.version ?? 0) + 1, epoch: epoch,
            commitment: [UInt8](repeating: UInt8(truncatingIfNeeded: epoch + 2), count: NodeKey.bytesCount),
            members: members, previous: before?.digest(at: place), signature: signature)
    }

    /// A batch of a member in a branch. That of an account that may not write is refused, and so is one that ends
    /// with a node outside of the branch; nil without a branch.
    mutating func memberBatch(_ now: Int64) -> Action? {
        var draft = state
        guard let root = pick(draft.roots), let list = draft.nodes[root]?.list,
            let writer = try? UserID(TreeSweepState.writer), let reader = try? UserID(TreeSweepState.reader)
        else { return nil }
        let mayWrite = roll(5) > 0
        let member = mayWrite ? writer : reader
        // An account that is in no list is refused too.
        var isRefused = !mayWrite || list.member(member) == nil
        var operations = [create(in: root, &draft, by: member)].compactMap(\.self)
        for _ in 0..<roll(4) { if let next = change(in: root, &draft, by: member) { operations.append(next) } }
        if operations.isEmpty { return nil }
        let outside = draft.nodes.keys.sorted().filter { draft.audience(of: $0) != root }
        if roll(5) == 0, let node = pick(outside) {
            var copy = draft
            if let bad = put(node, &copy, by: member, { $0.parent = .node(root) }) {
                operations.append(bad)
                isRefused = true
            }
        }
        draft.refer(at: now)
        let id = BatchID.random { count in (0..<count).map { _ in UInt8(truncatingIfNeeded: roll(256)) } }
        let body = JSONValue.object(TreeBatch(id: id, operations).object).serialized()
        return .batch(id, body: body, after: isRefused ? nil : draft)
    }

    private mutating func create(
        in root: NodeID, _ draft: inout TreeSweepState, by member: UserID
    ) -> TreeOperation? {
        let places = draft.branch(root).filter { draft.depth(of: .node($0)) < 8 }
        guard draft.nodes.count < 70, let parent = pick(places), let tag = tag() else { return nil }
        let node = NodeID.random { count in (0..<count).map { _ in UInt8(truncatingIfNeeded: roll(256)) } }
        draft.nodes[node] = TreeSweepState.Node(parent: .node(parent), tag: tag, version: 0)
        return put(node, &draft, by: member) { _ in }
    }

    /// Another name, another place in the branch, or a removal.
    private mutating func change(
        in root: NodeID, _ draft: inout TreeSweepState, by member: UserID
    ) -> TreeOperation? {
        guard let node = pick(Array(draft.branch(root).dropFirst())), let tag = tag() else { return nil }
        let below = draft.branch(node)
        switch roll(3) {
        case 0: return put(node, &draft, by: member) { $0.tag = tag }
        case 1:
            let places = draft.branch(root).filter { !below.contains($0) && draft.depth(of: .node($0)) < 8 }
            guard let parent = pick(places) else { return nil }
            return put(node, &draft, by: member) { ($0.parent, $0.tag) = (.node(parent), tag) }
        default:
            guard below.count == 1, let version = draft.nodes.removeValue(forKey: node)?.version else { return nil }
            return .delete(node, source: version)
        }
    }
}
