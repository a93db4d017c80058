import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// Shared branches of the server's tree (decision 0067, "a shared branch at the server").
extension ModelServer {
    /// The root of the nearest list at or above a node.
    func audience(of id: NodeID) -> NodeID? {
        var next: NodeID? = id
        // A server that lies may have put nodes below themselves.
        for _ in 0...TreeLimits.depthMax {
            guard let id = next, let held = nodes[id] else { return nil }
            if held.record.shareList != nil { return id }
            next = if case .node(let above) = held.record.parent { above } else { nil }
        }
        return nil
    }

    func audience(of place: NodeParent) -> NodeID? {
        if case .node(let id) = place { audience(of: id) } else { nil }
    }

    /// The epoch of a node's key.
    func epoch(of id: NodeID) -> UInt32? { nodes[id]?.record.epoch }

    /// Whether an account may open a branch.
    func serves(_ user: String, _ root: NodeID) -> Bool {
        guard let list = nodes[root]?.record.shareList, let user = try? UserID(user) else { return false }
        return list.member(user)?.permissions.contains(.read) == true
    }

    /// Why a write is refused inside of shared branches.
    func refusal(of record: NodeRecord, at id: NodeID, by caller: String) -> RefusalReason? {
        let (old, new) = (audience(of: id), record.shareList == nil ? audience(of: record.parent) : id)
        guard let user = try? UserID(caller), let ownerID = try? UserID(owner) else { return .badRecord }
        guard let root = new ?? old else { return caller == owner ? nil : .permission }
        if record.shareList != nil, audience(of: record.parent) != nil { return .nestedList }
        guard let signature = record.signature, signature.author == user, let keys = keys[caller],
            RecordSignature.verify(record, id, in: place, with: keys.identity)
        else { return new == nil && caller == owner ? nil : .signature }
        if record.shareList == nil, let new, nodes[new]?.record.epoch != record.epoch { return .epoch }
        if record.shareList != nodes[id]?.record.shareList {
            if let reason = refusal(ofList: record, at: id) { return reason }
        }
        guard caller != owner else { return nil }
        guard let list = nodes[root]?.record.shareList, old == nil || old == new else { return .permission }
        var depth = 0
        var next = record.parent
        while case .node(let above) = next, id != root {
            depth += 1
            if above == root { break }
            next = nodes[above]?.record.parent ?? .trunk(.home)
        }
        let isRoot = id == root
        if isRoot, record.parent != nodes[id]?.record.parent || record.tag != nodes[id]?.record.tag {
            return .permission
        }
        let action: ShareAction =
            isRoot && record.shareList != list
            ? .share
            : nodes[id] == nil
                ? .create(depth: depth, hasContent: record.data != nil, others: 0)
                : .change(isRoot: isRoot, depth: depth, hasContent: record.data != nil)
        return list.right(of: user, owner: ownerID).denial(of: action) == nil ? nil : .permission
    }

    private func refusal(ofList record: NodeRecord, at id: NodeID) -> RefusalReason? {
        guard let list = record.shareList else { return nil }
        let place = ShareList.Place(place, root: id)
        do throws(ShareListError) {
            try list.checkSignatures(at: place) { user, keyID in
                keys[user.text].flatMap { $0.id == keyID ? $0.identity : nil }
            }
            try list.checkFollows(nodes[id]?.record.shareList, at: place)
            return nil
        } catch { return .shareList }
    }

    /// Whether a list was written behind a position of the log that does not permit an account to read its branch.
    func excluded(_ user: String, from root: NodeID, after number: Int) -> Bool {
        log.dropFirst(number).contains { change in
            guard change.key.text == root.text else { return false }
            guard case .value(.object(let diff))? = change.diff, let list = diff["l"]?["v"] else { return false }
            let members = (try? ShareList(list))?.members ?? []
            return !members.contains { $0.user.text == user && $0.permissions.contains(.read) }
        }
    }

    /// The change of the log as a member of a branch gets it; nil for one of another audience.
    func change(_ number: Int, for root: NodeID) -> AppliedChange? {
        let (before, after) = audiences[number]
        if after == root {
            var change = log[number]
            // A node that came into the branch arrives whole, as a new one.
            guard before != root, let object = entries[number] else { return change }
            let whole = JSONObject(object.pairs.map { (key: $0.key, value: ["o": "+", "v": $0.value]) })
            (change.sv, change.diff) = (nil, .value(.object(whole)))
            return change
        }
        guard before == root else { return nil }
        var change = log[number]
        (change.operation, change.diff, change.sv) = (.remove, nil, nil)
        return change
    }

    /// The list of `home` of a branch is its root.
    func children(_ query: ChildrenQuery, of root: NodeID, pageNodes: Int) -> ChildrenPage {
        var page = children(query, pageNodes: pageNodes)
        for place in page.lists.indices {
            switch page.lists[place].parent {
            case .trunk(.home):
                let held = nodes[root].map { [ListedNode(root, version: $0.version, $0.record)] }
                page.lists[place] = ChildList(of: .trunk(.home), held ?? [], next: nil)
            case .node(let id) where audience(of: id) == root: break
            case let parent: page.lists[place] = ChildList(of: parent, [], next: nil)
            }
        }
        return page
    }
}
