internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Changes of lists by this device: queued like every local change, and sealed from the newest list when they are sent.
enum ShareChanges {
    /// Changes the list of a branch, begins or ends sharing.
    ///
    /// - Parameter rekey: when the other keys of the branch are renewed.
    /// - Throws: `notFound`, `sharing`, `noKeys`, `limit`, `store`.
    static func add(
        _ change: ShareChange, to id: NodeID, rekey: Rekey = .lazy,
        queueing: TreeMachine.Queueing = TreeMachine.Queueing(), _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> OperationID {
        try skeleton.checkLimit()
        guard skeleton.messages.identity != nil else {
            throw TreeError(.noKeys, "the session has no keys with which lists are signed")
        }
        let row = try skeleton.shownRow(id)
        try check(change, row, skeleton)
        var queueing = queueing
        // Each change is a list of its own.
        queueing.isKept = true
        let operation = try skeleton.enqueue(id, .write(.sharing), queueing)
        try skeleton.store.setShareChange(operation, change)
        if rekey == .eager {
            guard skeleton.branches.memberRoot == nil else {
                throw TreeError(.sharing, "only the owner begins an eager re-key", reason: "owner-only")
            }
            try Rekeying.plan(id, after: operation, &skeleton)
        }
        return operation
    }

    private static func check(
        _ change: ShareChange, _ row: NodeRow, _ skeleton: TreeSkeleton
    ) throws(TreeError) {
        let members = try members(of: row.id, skeleton)
        guard change.members[skeleton.keyring.keys.tree.owner] == nil else {
            throw TreeError(.sharing, "the owner is not a member of its own branch", reason: "owner")
        }
        guard !change.isEnd || members != nil else {
            throw TreeError(.sharing, "the node is not shared", reason: "not-shared")
        }
        let count = change.members.filter { !$0.value.isEmpty }.count + (members ?? [:]).count
        guard count <= TreeLimits.shareMembersMax else {
            throw TreeError(.limit, "a branch has at most \(TreeLimits.shareMembersMax) members")
        }
        if let root = skeleton.branches.memberRoot {
            guard root == row.id else { throw TreeError(.sharing, "only the root has a list", reason: "nested-list") }
            return try checkMember(change, skeleton.branches.known[root]?.state.list, skeleton)
        }
        guard try skeleton.store.path(of: .node(row.id))?.trunk == .home else {
            throw TreeError(.sharing, "only nodes below home are shared", reason: "trunk")
        }
        let above = try Branches.root(of: row.parent, skeleton)
        let below = try skeleton.store.branch(of: row.id).dropFirst()
        if above != nil || below.contains(where: { skeleton.branches.known[$0] != nil }) {
            throw TreeError(.sharing, "a branch is neither in a shared one nor has one in it", reason: "nested-list")
        }
    }

    /// What only the owner changes: the end of sharing, and which members may share.
    private static func checkMember(
        _ change: ShareChange, _ list: ShareList?, _ skeleton: TreeSkeleton
    ) throws(TreeError) {
        let user = skeleton.messages.identity?.user
        guard let list, let user, list.member(user)?.permissions.contains(.share) == true else {
            throw TreeError(.sharing, "the list does not let this account share the branch", reason: "no-share")
        }
        let changesSharers = change.members.contains { member, letters in
            letters.contains(.share) != (list.member(member)?.permissions.contains(.share) ?? false)
        }
        if change.isEnd || changesSharers {
            throw TreeError(.sharing, "only the owner decides which members may share", reason: "owner-only")
        }
    }

    /// The letters of the members as this device has them, its waiting changes included.
    ///
    /// - Returns: nil for a node that is not shared.
    static func members(of id: NodeID, _ skeleton: TreeSkeleton) throws(TreeError) -> [UserID: SharePermissions]? {
        let list = skeleton.branches.known[id]?.state.list
        var members = list.map { ShareChange().letters(after: $0) }
        for operation in skeleton.queue.operations(of: id) where operation.fields.contains(.sharing) {
            guard let change = try skeleton.store.shareChange(operation.id) else { continue }
            members =
                change.isEnd ? nil : (members ?? [:]).merging(change.members) { $1 }.filter { !$0.value.isEmpty }
        }
        return members
    }

    // MARK: - Keys

    /// The accounts whose newest keys an operation needs.
    static func accounts(_ operation: PendingOperation, _ skeleton: TreeSkeleton) -> Set<UserID> {
        guard operation.fields.contains(.sharing),
            let change = (try? skeleton.store.shareChange(operation.id)) ?? nil
        else { return [] }
        let list = skeleton.branches.known[operation.node]?.state.list
        var accounts = change.accounts(after: list, keys(skeleton))
        // A member wraps the root's next key for the owner too.
        if skeleton.branches.memberRoot == operation.node, change.needsEpoch(after: list, keys(skeleton)) {
            accounts.insert(skeleton.keyring.keys.tree.owner)
        }
        return accounts
    }

    static func isReady(_ operation: PendingOperation, _ skeleton: TreeSkeleton) -> Bool {
        accounts(operation, skeleton).allSatisfy { skeleton.messages.keys[KeyQuestion($0)] != nil }
    }

    private static func keys(_ skeleton: TreeSkeleton) -> [UserID: PublicKeys] {
        var keys = [UserID: PublicKeys]()
        for (question, found) in skeleton.messages.keys where question.keyID == nil { keys[question.user] = found }
        return keys
    }

    /// Questions for the keys that waiting changes need.
    static func questions(_ skeleton: TreeSkeleton) -> Set<KeyQuestion> {
        var questions = Set<KeyQuestion>()
        for id in skeleton.queue.shares {
            guard let operation = skeleton.queue[id], operation.state == .waiting else { continue }
            questions.formUnion(accounts(operation, skeleton).map { KeyQuestion($0) })
        }
        return questions
    }

    // MARK: - Sealing

    /// The record of a root with the changed list.
    ///
    /// - Throws: `SealFault`.
    static func record(
        _ change: ShareChange, _ root: OpenedNode, below parent: ParentKeys?, replacing version: Version,
        _ skeleton: TreeSkeleton
    ) throws(SealFault) -> NodeRecord {
        guard let identity = skeleton.messages.identity else { throw .missingKeys }
        let known = keys(skeleton)
        var wanted = change.accounts(after: root.record.shareList, known)
        if skeleton.branches.memberRoot == root.id { wanted.insert(skeleton.keyring.keys.tree.owner) }
        return try skeleton.keyring.sealer.share(
            root, change, keys: known.filter { wanted.contains($0.key) },
            below: skeleton.branches.memberRoot == root.id ? nil : parent, replacing: version, by: identity)
    }
}
