public import ThicketProtocol

/// The checks of a write that need the lists of a tree (treesystem 4.8, rules 5, 6, 8, 9 and 11; decision 0067). The
/// server runs them inside its transaction, before `TreeCheck`.
public struct BranchCheck: Sendable {
    /// The account that writes.
    public let actor: TreeActor
    /// The tree that it writes to.
    public let tree: TreePlace

    /// The checks of writes by one account.
    public init(_ actor: TreeActor, in tree: TreePlace) { (self.actor, self.tree) = (actor, tree) }

    /// The result of a check: the audiences of the node, or the reason for the refusal.
    public typealias Verdict = Result<BranchChange, TreeRefusal>

    // MARK: Audiences

    /// Where nodes below a parent are.
    struct Place {
        /// The root of the nearest list at or above the parent.
        var root: NodeID?
        /// Levels of such a node below the root; 0 without one.
        var depth = 0
        /// The trunk; nil when the parent does not exist, or the tree is damaged.
        var trunk: Trunk?
    }

    static func place<View: BranchView>(below parent: NodeParent, in view: View) throws(View.Failure) -> Place {
        var (found, place, depth) = (Place(), parent, 1)
        while case .node(let ancestor) = place {
            if found.root == nil, view.listRoots.contains(ancestor) { (found.root, found.depth) = (ancestor, depth) }
            // Also ends the loop in a tree that is damaged.
            guard depth <= TreeLimits.depthMax, let next = try view.parent(of: ancestor) else { return found }
            (place, depth) = (next, depth + 1)
        }
        if case .trunk(let trunk) = place { found.trunk = trunk }
        return found
    }

    /// The root of the nearest list at or above a node; nil outside of shared branches.
    public static func audience<View: BranchView>(
        of node: NodeID, in view: View
    ) throws(View.Failure) -> NodeID? {
        view.listRoots.isEmpty ? nil : try place(below: .node(node), in: view).root
    }

    /// Whether a node with a list is below a node.
    private static func hasList<View: BranchView>(below node: NodeID, in view: View) throws(View.Failure) -> Bool {
        for root in view.listRoots where root != node {
            var (place, depth) = (NodeParent.node(root), 0)
            while case .node(let ancestor) = place, depth <= TreeLimits.depthMax {
                if ancestor == node { return true }
                guard let next = try view.parent(of: ancestor) else { break }
                (place, depth) = (next, depth + 1)
            }
        }
        return false
    }

    // MARK: Writing

    /// One put, with what the tree has of its node.
    private struct Put {
        let node: NodeID
        let record: NodeRecord
        let proof: PutProof
        /// Where the record places the node.
        let below: Place
        /// The audience before the put.
        let before: NodeID?
        /// The stored record, if a check needs it.
        var current: NodeRecord?
    }

    /// Checks a record that replaces `source`, 0 for a new node.
    ///
    /// - Returns: the audiences of the node. Its place and version are checked by `TreeCheck`; here only as far as
    ///   other refusals would be misleading.
    public func put<View: BranchView>(
        _ record: NodeRecord, at node: NodeID, replacing source: Version, _ proof: PutProof, in view: View
    ) throws(View.Failure) -> Verdict {
        let exists = try view.version(of: node) > 0
        var before: NodeID?
        if exists { before = try Self.audience(of: node, in: view) }
        var put = Put(
            node: node, record: record, proof: proof, below: try Self.place(below: record.parent, in: view),
            before: before)
        if let refusal = try refusalOfUnseen(put, exists: exists, isNew: source == 0, in: view) {
            return .failure(refusal)
        }
        if let refusal = try TreeCheck.refusal(ofReplacing: source, at: node, in: view) { return .failure(refusal) }
        if put.before != nil { put.current = try view.record(of: node) }
        if let refusal = try refusalOfMember(put, in: view) { return .failure(refusal) }
        if let refusal = try refusalOfList(put, in: view) { return .failure(refusal) }
        let after = record.shareList == nil ? put.below.root : node
        guard after == nil || proof.isSigned else { return .failure(.badSignature) }
        if try hasOtherEpoch(put, in: view) { return .failure(.otherEpoch) }
        return .success(BranchChange(before: put.before, after: after, creator: creator(put, after: after)))
    }

    /// Whether the record's key is of another epoch than the branch: a removed reader may have the key above it. That
    /// of the root is checked with its list. A member without `r` does not learn the epoch; it seals to the owner.
    private func hasOtherEpoch<View: BranchView>(_ put: Put, in view: View) throws(View.Failure) -> Bool {
        guard put.record.shareList == nil, let root = put.below.root else { return false }
        if case .member = actor, try right(in: view)?.permissions.contains(.read) != true { return false }
        guard let list = try view.record(of: root)?.shareList else { return false }
        return list.epoch != put.record.epoch
    }

    /// The creator of the node, which stays known while the node is in its branch.
    private func creator(_ put: Put, after: NodeID?) -> UserID? {
        if let current = put.current { return put.before == after ? current.stamps.sender : nil }
        if case .member(let user, _) = actor { return user }
        return nil
    }

    /// Refuses a list that may not be here, or not follow the one before it, and places that lists may not have.
    private func refusalOfList<View: BranchView>(_ put: Put, in view: View) throws(View.Failure) -> TreeRefusal? {
        let isRoot = put.before == put.node
        guard let list = put.record.shareList else {
            // A branch with lists stays below home, and does not come below another list.
            guard put.below.trunk != nil, put.below.root != nil || put.below.trunk != .home else { return nil }
            return try Self.hasList(below: put.node, in: view) ? .nestedShareList : nil
        }
        guard put.below.root == nil, put.below.trunk == .home || put.below.trunk == nil else { return .nestedShareList }
        if !isRoot {
            if try Self.hasList(below: put.node, in: view) { return .nestedShareList }
            guard view.listRoots.count < TreeLimits.shareListsMax else { return .tooManyShareLists }
        }
        let stored = isRoot ? put.current?.shareList : nil
        if list == stored { return nil }
        if let fault = put.proof.listFault { return .badShareList(fault) }
        do throws(ShareListError) {
            try list.checkFollows(stored, at: ShareList.Place(tree, root: put.node))
            return nil
        } catch { return .badShareList(error) }
    }

    // MARK: Members

    /// The rights of the member; nil for the owner.
    private func right<View: BranchView>(in view: View) throws(View.Failure) -> ShareRight? {
        guard case .member(let user, let root) = actor else { return nil }
        guard view.listRoots.contains(root), let list = try view.record(of: root)?.shareList else {
            return ShareRight(isOwner: false, permissions: [])
        }
        return list.right(of: user, owner: tree.owner)
    }

    /// Refuses what the member cannot see, in the words for what does not exist.
    private func refusalOfUnseen<View: BranchView>(
        _ put: Put, exists: Bool, isNew: Bool, in view: View
    ) throws(View.Failure) -> TreeRefusal? {
        guard case .member(let user, let root) = actor, let right = try right(in: view) else { return nil }
        guard !right.permissions.isEmpty else { return .notPermitted(.noRead) }
        let reads = right.permissions.contains(.read)
        if exists {
            // A version would say what the owner has elsewhere.
            let unseen: TreeRefusal = isNew ? .repeated : .nodeMissing
            guard put.before == root else { return unseen }
            if !reads, isNew { return unseen }
            if !reads, try !isCreated(put.node, by: user, in: view) { return unseen }
        }
        guard put.node != root else { return nil }
        guard put.below.root == root else { return .parentMissing }
        guard !reads, case .node(let parent) = put.record.parent, parent != root else { return nil }
        return try isCreated(parent, by: user, in: view) ? nil : .parentMissing
    }

    private func isCreated<View: BranchView>(
        _ node: NodeID, by user: UserID, in view: View
    ) throws(View.Failure) -> Bool { try view.record(of: node)?.stamps.sender == user }

    private func refusalOfMember<View: BranchView>(_ put: Put, in view: View) throws(View.Failure) -> TreeRefusal? {
        guard case .member(let user, let root) = actor, let right = try right(in: view) else { return nil }
        if put.node == root { return refusalOfRoot(put, by: user, right) }
        guard put.record.shareList == nil else { return .nestedShareList }
        let hasContent = put.record.data != nil
        if let current = put.current {
            let readers = put.record.wraps.map(\.reader)
            guard readers == [.parent] || readers == current.wraps.map(\.reader) else { return .notPermitted(.noWrite) }
            return right.denial(of: .change(isRoot: false, depth: put.below.depth, hasContent: hasContent))
                .map { .notPermitted($0) }
        }
        let mayBeSecond = !right.permissions.isDisjoint(with: [.write, .writeOnce])
        var others = 0
        if !mayBeSecond, try view.hasChild(of: root, by: user) { others = 1 }
        let action = ShareAction.create(depth: put.below.depth, hasContent: hasContent, others: others)
        if let denial = right.denial(of: action) { return .notPermitted(denial) }
        return isWrapped(put, right) ? nil : .notPermitted(.noWrite)
    }

    /// Whether the key of a member's new node is wrapped as it must be: under the parent's key; a deposit in a drop box
    /// for the owner, and under the tag of its id, because its author has neither key nor salt of the root.
    private func isWrapped(_ put: Put, _ right: ShareRight) -> Bool {
        guard put.record.wraps.count == 1, let reader = put.record.wraps.first?.reader else { return false }
        guard !right.permissions.contains(.read), put.below.depth == 1 else { return reader == .parent }
        guard case .user(let user, _) = reader, user == tree.owner else { return false }
        return put.record.tag == NodeTag(inInbox: put.node)
    }

    /// A member changes content and, with the right, the list of the root; neither its place, name and burn time nor
    /// the keys of those that have one.
    private func refusalOfRoot(_ put: Put, by user: UserID, _ right: ShareRight) -> TreeRefusal? {
        let record = put.record
        guard let current = put.current, record.parent == current.parent, record.tag == current.tag,
            record.burnTime == current.burnTime
        else { return .notPermitted(.noWrite) }
        guard let list = record.shareList, list.permits(record.wraps, owner: tree.owner),
            record.wraps.contains(where: { $0.reader == .parent || $0.kind == "u:" + tree.owner.text })
        else { return .notPermitted(.noShare) }
        let changesList = list != current.shareList
        if changesList {
            if let denial = right.denial(of: .share) { return .notPermitted(denial) }
            guard list.signature.author == user else { return .notPermitted(.noShare) }
        }
        guard record.epoch != current.epoch || current.wraps.allSatisfy(record.wraps.contains) else {
            return .notPermitted(.noShare)
        }
        if changesList, record.data == current.data { return nil }
        return right.denial(of: .change(isRoot: true, depth: 0, hasContent: record.data != nil))
            .map { .notPermitted($0) }
    }

    // MARK: Removing

    /// Checks the removal of a node. That it has the version and no children is checked by `TreeCheck`.
    public func removal<View: BranchView>(of node: NodeID, in view: View) throws(View.Failure) -> Verdict {
        var before: NodeID?
        if try view.version(of: node) > 0 { before = try Self.audience(of: node, in: view) }
        guard case .member(let user, let root) = actor, let right = try right(in: view) else {
            return .success(BranchChange(before: before))
        }
        guard !right.permissions.isEmpty else { return .failure(.notPermitted(.noRead)) }
        guard before == root else { return .failure(.nodeMissing) }
        let isOwn = try isCreated(node, by: user, in: view)
        guard isOwn || right.permissions.contains(.read) else { return .failure(.nodeMissing) }
        if let denial = right.denial(of: .remove(isRoot: node == root, isOwn: isOwn)) {
            return .failure(.notPermitted(denial))
        }
        return .success(BranchChange(before: before))
    }
}
