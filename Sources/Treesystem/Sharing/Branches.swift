import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records of shared branches as they arrive (decision 0067): believed by the list of the branch, kept until keys are
/// looked up, or quarantined.
enum Branches {
    /// Whether a record that was opened may be shown now.
    ///
    /// - Returns: nil for one that is in no shared branch.
    static func admit(
        _ opened: OpenedNode, _ text: [UInt8], _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool? {
        if skeleton.branches.isEmpty, opened.record.shareList == nil { return nil }
        guard let root = try root(of: opened, skeleton) else { return nil }
        let arrival = Arrival(
            opened: opened, text: text, version: version, root: root, row: try skeleton.store.row(opened.id))
        if arrival.isKnown, !skeleton.branches.waitingNodes.contains(opened.id) { return true }
        if try wasAccepted(arrival, &skeleton) { return true }
        let verdict = try judge(arrival, &skeleton)
        try endWaiting(opened.id, &skeleton)
        if case .waits = verdict {} else { try DeliveredRecords.end(opened.id, version, &skeleton) }
        switch verdict {
        case .believed:
            try Rekeying.arrived(opened.record, opened.id, in: root, &skeleton)
            return true
        case .waits(let user, let keyID):
            try wait(opened.id, text, version, KeyQuestion(user, keyID: keyID), &skeleton)
        case .refused(let fault):
            // Nothing is sealed with a key that is not believed.
            skeleton.keyring.forget(opened.id)
            try skeleton.quarantine(IntegrityFault(opened.id, .sharing, fault.description), version, text)
        }
        return false
    }

    /// A record as it arrived.
    private struct Arrival {
        let opened: OpenedNode
        let text: [UInt8]
        let version: Version
        /// The branch that it is in.
        let root: NodeID
        /// What this device has of the node.
        let row: NodeRow?

        var id: NodeID { opened.id }
        var record: NodeRecord { opened.record }
        /// Whether it is what the device shows already.
        var isKnown: Bool { row.map { $0.record == text && ($0.state == .open || $0.state.isConcealed) } ?? false }

        /// The version of the record that the device shows.
        var knownVersion: Version {
            guard let row, row.state != .unopened, row.state != .quarantined else { return 0 }
            // The version of a row is also that of a record that waits or was refused.
            let record = row.record.flatMap { try? NodeRecord(parsing: $0, from: .server) }
            return record.map { min(row.version, $0.base + 1) } ?? 0
        }
    }

    // MARK: - Places

    /// The root of the shared branch that a place is in; nil if it is in none.
    static func root(of place: NodeParent, _ skeleton: TreeSkeleton) throws(TreeError) -> NodeID? {
        try root(of: place, skeleton.branches, skeleton.store)
    }

    static func root(of place: NodeParent, _ book: BranchBook, _ store: TreeStore) throws(TreeError) -> NodeID? {
        if book.isEmpty { return nil }
        if let root = book.memberRoot { return root }
        return try store.ancestors(of: place).first { book.known[$0] != nil }
    }

    private static func root(of opened: OpenedNode, _ skeleton: TreeSkeleton) throws(TreeError) -> NodeID? {
        if opened.record.shareList != nil || skeleton.branches.known[opened.id] != nil { return opened.id }
        return try root(of: opened.parent, skeleton)
    }

    /// With which keys this device signs what it writes of a node at a place; nil outside of shared branches.
    ///
    /// - Parameter id: the node, which may be the root of a branch.
    static func author(
        of id: NodeID, at place: NodeParent, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> MessageIdentity? {
        guard skeleton.branches.known[id] != nil else {
            return try root(of: place, skeleton) == nil ? nil : skeleton.messages.identity
        }
        return skeleton.messages.identity
    }

    /// Whether a node leaves the audience of a branch when it is moved from one place to another.
    static func leaves(_ old: NodeParent, for new: NodeParent, _ skeleton: TreeSkeleton) throws(TreeError) -> Bool {
        if old == new { return false }
        guard let root = try root(of: old, skeleton) else { return false }
        return try Self.root(of: new, skeleton) != root
    }

    /// Whether what is written of a node waits: for keys of its own newest record, or of one above it.
    static func isWaiting(_ id: NodeID, _ skeleton: TreeSkeleton) -> Bool {
        let waiting = skeleton.branches.early.union(skeleton.branches.waitingNodes)
        if waiting.isEmpty { return false }
        if waiting.contains(id) { return true }
        let above = try? skeleton.store.row(id).map { try skeleton.store.ancestors(of: $0.parent) }
        return above?.contains { waiting.contains($0) } ?? false
    }

    /// The root of another account's branch stays where it is.
    static func checkMovable(_ id: NodeID, _ book: BranchBook) throws(TreeError) {
        if id == book.memberRoot { throw fixed }
    }

    static let fixed = TreeError(.trunk, "the root of another account's branch is fixed, and nothing is beside it")

    /// A shown node is not shown for now, because its parent is not known: its record is not judged again.
    static func keepAccepted(_ row: NodeRow, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard !skeleton.branches.isEmpty else { return }
        skeleton.branches.accepted[row.id] = row.version
        try skeleton.store.setBranchAccepted(row.id, row.version)
    }

    private static func wasAccepted(_ arrival: Arrival, _ skeleton: inout TreeSkeleton) throws(TreeError) -> Bool {
        guard let version = skeleton.branches.accepted.removeValue(forKey: arrival.id) else { return false }
        skeleton.hasWritten = true
        try skeleton.store.setBranchAccepted(arrival.id, nil)
        return version == arrival.version && arrival.row?.record == arrival.text
    }

    // MARK: - Judging

    private static func judge(
        _ arrival: Arrival, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> BranchState.Verdict {
        let record = arrival.record
        let place = ShareList.Place(skeleton.keyring.keys.tree, root: arrival.root)
        let messages = skeleton.messages
        let keys = { (user: UserID, keyID: String) in Self.key(user, keyID, messages) }
        let known = skeleton.branches.known[arrival.root]
        let state = known?.state ?? BranchState(place)
        let isOwn = try skeleton.sentOperation(of: record, arrival.id) != nil
        if arrival.id != arrival.root {
            if isOwn { return .believed }
            let (did, came) = (try action(arrival, skeleton), how(arrival, known?.since, skeleton))
            let verdict = state.judge(record, arrival.id, did, came, keys)
            guard case .refused(.notPermitted) = verdict else { return verdict }
            // The list that permits it may be the one that waits for keys.
            if let question = skeleton.branches.question(of: arrival.root), let keyID = question.keyID {
                return .waits(question.user, keyID: keyID)
            }
            let earlier =
                skeleton.branches.delivered.list(of: arrival.id, arrival.version, in: arrival.root)
                ?? skeleton.branches.unreached.list(of: arrival.root)
            return earlier.map { BranchState(place, list: $0).judge(record, arrival.id, did, came, keys) } ?? verdict
        }
        guard let list = record.shareList else {
            let verdict = isOwn ? .believed : state.judgeEnd(record, arrival.id, how(arrival, nil, skeleton), keys)
            if verdict == .believed { try end(arrival.root, &skeleton) }
            return verdict
        }
        if known == nil, let fault = skeleton.branches.invite?.fault(of: list, at: place) { return .refused(fault) }
        let verdict = state.judge(list, keys)
        guard verdict == .believed else { return verdict }
        var next = state
        next.believe(list)
        let action: ShareAction =
            state.list == list ? .change(isRoot: true, depth: 0, hasContent: record.data != nil) : .share
        let judged = isOwn ? .believed : next.judge(record, arrival.id, action, how(arrival, nil, skeleton), keys)
        if judged == .believed { try believe(next, arrival.row, &skeleton) }
        return judged
    }

    private static func key(_ user: UserID, _ keyID: String, _ messages: MessageState) -> BranchState.KnownKey {
        if let own = messages.identity, own.user == user, let keys = own.keys(keyID) { return .verified(keys.identity) }
        let question = KeyQuestion(user, keyID: keyID)
        if let keys = messages.keys[question] { return .verified(keys.identity) }
        return messages.absent.contains(question) ? .absent : .unknown
    }

    /// Whether an unsigned record was requested before the list was believed: it arrives after it.
    private static func isFromBefore(_ arrival: Arrival, _ skeleton: TreeSkeleton) -> Bool {
        skeleton.branches.requested[arrival.id].map { arrival.version <= $0 } ?? false
    }

    private static func how(
        _ arrival: Arrival, _ since: Int64?, _ skeleton: TreeSkeleton
    ) -> BranchState.Arrival {
        // A record that waited for its parent, or for keys, has the number of the reading that brought it.
        let hasWaited = arrival.row?.state == .unopened || skeleton.branches.waitingNodes.contains(arrival.id)
        let scan = skeleton.listing ?? (hasWaited ? arrival.row?.scan : nil).flatMap { $0 > 0 ? $0 : nil }
        return BranchState.Arrival(
            version: arrival.version, known: arrival.knownVersion, isListed: scan != nil || skeleton.branches.isListing,
            isFromBefore: since == unreached || (since != nil && scan == since) || isFromBefore(arrival, skeleton))
    }

    private static func action(_ arrival: Arrival, _ skeleton: TreeSkeleton) throws(TreeError) -> ShareAction {
        let above = try skeleton.store.ancestors(of: arrival.opened.parent)
        let depth = (above.firstIndex(of: arrival.root) ?? above.count) + 1
        let hasContent = arrival.record.data != nil
        return arrival.knownVersion == 0
            ? .create(depth: depth, hasContent: hasContent, others: 0)
            : .change(isRoot: false, depth: depth, hasContent: hasContent)
    }

    // MARK: - Lists

    private static func believe(
        _ state: BranchState, _ row: NodeRow?, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard let list = state.list else { return }
        let root = state.place.root
        let before = skeleton.branches.known[root]
        if before?.state.list == list { return }
        let scan = skeleton.listing ?? row.flatMap { $0.scan > 0 ? $0.scan : nil }
        let since = before == nil ? scan : before?.since
        skeleton.hasWritten = true
        if let earlier = before?.state.list { try DeliveredRecords.keep(under: earlier, of: root, &skeleton) }
        skeleton.branches.known[root] = BranchBook.Known(state: state, since: since)
        if before?.state.list?.epoch != list.epoch { skeleton.keyring.forgetAll() }
        try skeleton.store.setBranch(root, list, since: since)
        if before == nil { try keepRequested(&skeleton) }
        skeleton.actions.append(.sharing(.changed(root, list.members, epoch: list.epoch)))
    }

    /// Records that are requested now may be from before the list.
    private static func keepRequested(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        var found = TreeChannel.wanted(stored: try skeleton.store.namedValue("wanted"))
        // Those of a member have the number of the reading that brought them.
        if skeleton.branches.memberRoot == nil {
            for (id, _) in try skeleton.store.unopened() { found[id] = try skeleton.store.row(id)?.version }
        }
        skeleton.branches.requested.merge(found) { max($0, $1) }
        var channel = TreeChannel()
        channel.wanted = skeleton.branches.requested
        try skeleton.store.setNamedValue(requested, channel.storedWanted)
    }

    private static let requested = "branch-wanted"

    private static func end(_ root: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        skeleton.branches.known[root] = nil
        try skeleton.store.removeBranch(root)
        skeleton.actions.append(.sharing(.ended(root)))
    }

    /// The server has a record of this device.
    static func confirmed(
        _ opened: OpenedNode, _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard let list = opened.record.shareList else {
            if skeleton.branches.known[opened.id] != nil { try end(opened.id, &skeleton) }
            return
        }
        let place = ShareList.Place(skeleton.keyring.keys.tree, root: opened.id)
        var state = skeleton.branches.known[opened.id]?.state ?? BranchState(place)
        if let known = state.list, known.version >= list.version { return }
        let earlier = state.list
        state.believe(list)
        let isFirst = skeleton.branches.known[opened.id] == nil
        try believe(state, nil, &skeleton)
        if isFirst { try setSince(unreached, of: opened.id, &skeleton) }
        if let earlier { try UnreachedLists.confirmed(opened.id, version, after: earlier, &skeleton) }
    }

    /// In place of the number of a reading: the list is this device's own, and the log has not reached it. What it
    /// brings until then is from before.
    private static let unreached: Int64 = -1

    private static func setSince(
        _ since: Int64?, of root: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard let list = skeleton.branches.known[root]?.state.list else { return }
        skeleton.hasWritten = true
        skeleton.branches.known[root]?.since = since
        try skeleton.store.setBranch(root, list, since: since)
    }

    /// The log has reached a record of this device.
    static func reached(_ id: NodeID, _ version: Version, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        try UnreachedLists.reached(id, version, &skeleton)
        guard skeleton.branches.known[id]?.since == unreached else { return }
        try setSince(nil, of: id, &skeleton)
        try keepRequested(&skeleton)
    }

    private static func reachedAll(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        for root in skeleton.branches.known.keys { try reached(root, .max, &skeleton) }
    }

    /// A node that was the root of a branch is gone.
    static func removed(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        try endWaiting(id, &skeleton)
        try Rekeying.ended(id, &skeleton)
        if skeleton.branches.accepted.removeValue(forKey: id) != nil {
            try skeleton.store.setBranchAccepted(id, nil)
        }
        if skeleton.branches.known[id] != nil { try end(id, &skeleton) }
    }

    // MARK: - Waiting for keys

    /// The record waits among those that are not shown; the last good one stays.
    static func wait(
        _ id: NodeID, _ text: [UInt8], _ version: Version, _ question: KeyQuestion, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        let fault = IntegrityFault(id, .awaitingKeys, "keys of its author are not known yet")
        try skeleton.quarantine(fault, version, text, reports: false)
        skeleton.branches.wait(id, for: question)
        try skeleton.store.setBranchWaiting(id, question)
    }

    static func endWaiting(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.branches.early.remove(id)
        guard skeleton.branches.waitingNodes.contains(id) else { return }
        skeleton.hasWritten = true
        skeleton.branches.endWaiting(id)
        try skeleton.store.endBranchWaiting(id)
    }

    /// A record that does not open waits if one above it waits, whose newest key may open it.
    ///
    /// - Returns: whether it waits.
    static func waits(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        if skeleton.branches.waitingNodes.isEmpty { return false }
        let above = try skeleton.store.ancestors(of: record.parent)
        guard let waiting = above.first(where: { skeleton.branches.waitingNodes.contains($0) }),
            let question = skeleton.branches.question(of: waiting)
        else { return false }
        try wait(id, text, version, question, &skeleton)
        return true
    }

    /// Judges again what waited for keys that are known now. Runs at the end of each turn.
    static func verify(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        if skeleton.branches.hasReachedLog { try reachedAll(&skeleton) }
        if skeleton.branches.waitingNodes.isEmpty { return }
        var ready = [(depth: Int, id: NodeID)]()
        for (question, nodes) in skeleton.branches.waiting
        where skeleton.messages.keys[question] != nil || skeleton.messages.absent.contains(question) {
            for id in nodes { ready.append((try skeleton.store.ancestors(of: .node(id)).count, id)) }
        }
        // From the top down: what is below a node is judged by its list, and opened with its key.
        for (_, id) in ready.sorted(by: { ($0.depth, $0.id) < ($1.depth, $1.id) }) {
            // A node that was removed meanwhile, and is kept here, has no version.
            guard let text = try skeleton.store.quarantined(id), let row = try skeleton.store.row(id), row.version > 0,
                let record = try? NodeRecord(parsing: text, from: .server)
            else {
                try endWaiting(id, &skeleton)
                continue
            }
            try skeleton.show(id, record, text, row.version, reports: true)
        }
    }

    /// Reads from the store what is kept in memory.
    static func read(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        var book = BranchBook(memberRoot: skeleton.branches.memberRoot, invite: skeleton.branches.invite)
        for (root, list, since) in try skeleton.store.branches() {
            let state = BranchState(ShareList.Place(skeleton.keyring.keys.tree, root: root), list: list)
            book.known[root] = BranchBook.Known(state: state, since: since)
        }
        book.requested = TreeChannel.wanted(stored: try skeleton.store.namedValue(requested))
        book.accepted = try skeleton.store.branchAccepted()
        book.delivered = try DeliveredRecords.read(skeleton.store)
        book.unreached = try UnreachedLists.read(skeleton.store)
        book.rekeys = try Rekeying.read(skeleton.store)
        for (node, question) in try skeleton.store.branchWaiting() { book.wait(node, for: question) }
        skeleton.branches = book
        try EarlyRecords.read(&skeleton)
    }
}
