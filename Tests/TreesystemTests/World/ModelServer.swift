import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// A server of one tree in memory: strict versions, the checks of `TreeCheck`, batches that are made once, and a log.
///
/// Written from the documents, not from the server's code, so that a client is tested against a second reading of them.
struct ModelServer: TreeView {
    struct Held {
        var record: NodeRecord
        var version: Version
    }

    private(set) var nodes = [NodeID: Held]()
    private(set) var log = [AppliedChange]()
    /// Of each change, the shared branch in which its node was before, and is after it.
    private(set) var audiences = [(before: NodeID?, after: NodeID?)]()
    /// The records of nodes that came into a branch, by the numbers of their changes.
    private(set) var entries = [Int: JSONObject]()
    /// The newest keys of accounts; none in a world of one account.
    var keys = [String: PublicKeys]()
    /// Batches that were sent again with other bytes.
    private(set) var changedBatches = 0
    private var removedAt = [NodeID: Version]()
    /// Nodes that were removed at some time.
    private(set) var removed = Set<NodeID>()
    private(set) var batches = [BatchID: (body: [UInt8], answer: TreeBatchAnswer)]()
    /// Batches that arrived, repeated ones included.
    private(set) var received = 0
    /// Why batches were refused, in order.
    private(set) var refusals = [RefusalReason]()
    var store = "store-1"
    /// Whether the devices' token may only read.
    var isReadOnly = false
    /// The account of the tree.
    var owner = "user-1"
    /// Accounts that do not accept messages of this one.
    var refusing = Set<String>()
    /// What the tree's owner has sent to the trees of others and is not there yet.
    var posted = [TreeOperation]()
    /// Node and receiver of each message that its author has burnt.
    private var burnt = Set<[String]>()
    private var time: Int64 = 1_000_000

    // MARK: TreeView

    func version(of node: NodeID) -> Version { nodes[node]?.version ?? 0 }
    func parent(of node: NodeID) -> NodeParent? { nodes[node]?.record.parent }
    func child(of parent: NodeParent, tagged tag: NodeTag) -> NodeID? {
        nodes.first { $0.value.record.parent == parent && $0.value.record.tag == tag }?.key
    }
    func height(of node: NodeID, upTo bound: Int) -> Int {
        let children = children(of: node)
        guard bound >= 0, !children.isEmpty else { return children.isEmpty ? 0 : 1 }
        return children.map { 1 + height(of: $0, upTo: bound - 1) }.max() ?? 0
    }
    func children(of node: NodeID) -> [NodeID] {
        nodes.filter { $0.value.record.parent == .node(node) }.keys.sorted()
    }

    var position: ChangeVersion { Self.position(log.count) }

    static func position(_ number: Int) -> ChangeVersion {
        guard let position = try? ChangeVersion("cv-\(number)") else { preconditionFailure("a position") }
        return position
    }

    // MARK: Batches

    var place: TreePlace {
        guard let app = try? AppID("notes"), let owner = try? UserID(owner) else { preconditionFailure("names") }
        return TreePlace(app: app, owner: owner)
    }

    /// - Parameter caller: the account of the token; nil: the owner.
    mutating func batch(_ body: [UInt8], by caller: String? = nil) -> TreeBatchAnswer {
        received += 1
        if isReadOnly { return .refused(BatchRefusal(.unauthorized, nil)) }
        let batch: TreeBatch
        do { batch = try TreeBatch(parsing: body) } catch { return .refused(BatchRefusal(error)) }
        if let known = batches[batch.id] {
            if known.body == body { return known.answer }
            changedBatches += 1
            return .refused(BatchRefusal(.duplicateChange, .batchID))
        }
        var after = self
        var (results, changes) = ([TreeOperationResult](), [AppliedChange]())
        for (index, operation) in batch.operations.enumerated() {
            do throws(BatchRefusal.Thrown) {
                results.append(try after.make(operation, by: caller ?? owner, &changes))
            } catch {
                let refusal = error.refusal(index)
                if let reason = refusal.reason { refusals.append(reason) }
                return .refused(refusal)
            }
        }
        for (index, change) in changes.enumerated() {
            var change = change
            change.ccids = [BatchMark(batch.id, index: index, of: changes.count).ccid]
            change.cv = Self.position(after.log.count + 1)
            after.log.append(change)
        }
        let answer = TreeBatchAnswer.made(position: after.position, results: results)
        (after.received, after.refusals) = (received, refusals)
        after.batches[batch.id] = (body, answer)
        self = after
        return answer
    }

    private mutating func make(
        _ operation: TreeOperation, by caller: String, _ changes: inout [AppliedChange]
    ) throws(BatchRefusal.Thrown) -> TreeOperationResult {
        switch operation {
        case .put(let id, let source, let record):
            if let refusal = TreeCheck.refusal(of: record, at: id, replacing: source, in: self) {
                throw .refused(refusal)
            }
            if let reason = refusal(of: record, at: id, by: caller) { throw .denied(reason) }
            time += 1
            let before = audience(of: id)
            var stamped = record
            stamped.stamps = RecordStamps(
                changed: time, created: nodes[id]?.record.stamps.created ?? time,
                sender: caller == owner ? nil : try? UserID(caller))
            let old = nodes[id]?.record.object ?? JSONObject()
            let diff = Self.wholeMembers(from: old, to: stamped.object)
            // Versions of a node go on after its removal, as at the server.
            let version = (source == 0 ? removedAt[id] ?? 0 : source) + 1
            nodes[id] = Held(record: stamped, version: version)
            if source > 0, before != audience(of: id) { entries[audiences.count] = stamped.object }
            audiences.append((before, audience(of: id)))
            changes.append(change(id, .modify, diff, source, version))
            return .version(version)
        case .delete(let id, let source):
            if let refusal = TreeCheck.refusal(ofRemoving: id, at: source, in: self) { throw .refused(refusal) }
            changes.append(remove(id))
            return .version(source + 1)
        case .deleteTree(let removal):
            guard nodes[removal.node] != nil else { throw .refused(.nodeMissing) }
            if caller != owner, !mayRemove(removal.node, caller) { throw .denied(.permission) }
            var outcome = BranchOutcome(removed: 0, left: 0, kept: [], hasMore: false)
            _ = sweep(removal.node, removal, &outcome, &changes)
            outcome.kept = Array(outcome.kept.prefix(TreeLimits.survivorsListedMax))
            return .branch(outcome)
        case .copy(let copy):
            if refusing.contains(copy.receiver.text) { throw .refused(.blocked) }
            posted.append(operation)
            return .version(1)
        case .burn(let id, let receiver):
            guard burnt.insert([id.text, receiver.text]).inserted else { throw .refused(.nodeMissing) }
            posted.append(operation)
            return .branch(BranchOutcome(removed: 1, left: 0, kept: [], hasMore: false))
        }
    }

    /// - Returns: whether the node is removed.
    private mutating func sweep(
        _ id: NodeID, _ removal: BranchRemoval, _ outcome: inout BranchOutcome, _ changes: inout [AppliedChange]
    ) -> Bool {
        let isEmptied = children(of: id).map { sweep($0, removal, &outcome, &changes) }.allSatisfy { $0 }
        guard isEmptied, removal.removes(id, at: version(of: id)) else {
            outcome.left += 1
            outcome.kept.append(id)
            return false
        }
        outcome.removed += 1
        changes.append(remove(id))
        return true
    }

    /// The members that differ, whole.
    private static func wholeMembers(from old: JSONObject, to new: JSONObject) -> JSONObject {
        var diff = JSONObject()
        for (key, value) in new.pairs where old[key] != value {
            diff[key] = .object(["o": .string(old[key] == nil ? "+" : "r"), "v": value])
        }
        for (key, _) in old.pairs where new[key] == nil { diff[key] = .object(["o": "-"]) }
        return diff
    }

    private mutating func remove(_ id: NodeID) -> AppliedChange {
        let version = version(of: id) + 1
        audiences.append((audience(of: id), nil))
        (nodes[id], removedAt[id]) = (nil, version)
        removed.insert(id)
        return change(id, .remove, nil, nil, version)
    }

    private func change(
        _ id: NodeID, _ operation: AppliedChange.Operation, _ diff: JSONObject?, _ source: Version?, _ end: Version
    ) -> AppliedChange {
        guard let key = try? EntityKey(id.text) else { preconditionFailure("an id is a key") }
        return AppliedChange(
            clientID: "batch", cv: Self.position(0), key: key, operation: operation,
            diff: diff.map { .value(.object($0)) }, sv: source, ev: end, ccids: [])
    }

    /// A message of another account arrives, or is burnt.
    mutating func arrive(_ operation: TreeOperation, from sender: String) {
        switch operation {
        case .copy(let copy):
            var record = copy.record
            time += 1
            record.stamps = RecordStamps(changed: time, created: time, sender: try? UserID(sender))
            forge(copy.node, record)
        case .burn(let id, _):
            guard nodes[id]?.record.parent == .trunk(.inbox), nodes[id]?.record.stamps.sender?.text == sender else {
                return
            }
            for child in children(of: id) + [id] {
                var change = remove(child)
                change.ccids = ["burnt-\(log.count)"]
                change.cv = Self.position(log.count + 1)
                log.append(change)
            }
        case .put, .delete, .deleteTree: break
        }
    }

    /// A server that lies: what it shows of a node to those that ask from now on.
    mutating func show(_ id: NodeID, _ held: Held) { nodes[id] = held }

    /// A server that lies: a record in place of a node's, as its next version, or of a new node. Nothing of it is
    /// checked.
    mutating func forge(_ id: NodeID, _ record: NodeRecord) {
        let (object, old) = (record.object, nodes[id])
        let version = (old?.version ?? 0) + 1
        let diff = Self.wholeMembers(from: old?.record.object ?? JSONObject(), to: object)
        var change = change(id, .modify, diff, version - 1, version)
        change.ccids = ["forged-\(log.count)"]
        change.cv = Self.position(log.count + 1)
        let before = audience(of: id)
        nodes[id] = Held(record: record, version: version)
        audiences.append((before, audience(of: id) ?? before))
        log.append(change)
    }

    private func mayRemove(_ id: NodeID, _ caller: String) -> Bool {
        guard let root = audience(of: id), root != id, let list = nodes[root]?.record.shareList,
            let user = try? UserID(caller)
        else { return false }
        return list.member(user)?.permissions.contains(.write) == true
    }

    /// A server that lies: nodes that no device has sent, for devices that have not read the tree yet.
    mutating func plant(_ records: [NodeID: NodeRecord]) {
        for (id, record) in records { nodes[id] = Held(record: record, version: 1) }
    }

    // MARK: Children

    /// - Parameter pageNodes: nodes of a list at most, whatever the query permits.
    func children(_ query: ChildrenQuery, pageNodes: Int) -> ChildrenPage {
        let lists = query.parents.map { parent -> ChildList in
            let all = nodes.filter { $0.value.record.parent == parent }.sorted {
                $0.value.record.tag.text < $1.value.record.tag.text
            }
            let rest = all.filter { query.before == nil || $0.value.record.tag.text > query.before ?? "" }
            let chosen = rest.prefix(min(query.limit, pageNodes))
            return ChildList(
                of: parent, chosen.map { ListedNode($0.key, version: $0.value.version, $0.value.record) },
                next: rest.count > chosen.count ? chosen.last?.value.record.tag.text : nil)
        }
        return ChildrenPage(current: position, lists)
    }

    // MARK: The channel

    /// The answers to a message of a client on channel 0, without the number of the channel.
    ///
    /// - Parameter isLive: set when the client has asked from its position: from then on it is sent changes.
    ///
    /// - Parameter member: a member that opens a branch; nil: the owner.
    func answers(
        to text: String, pageNodes: Int, isLive: inout Bool, member: (user: String, root: NodeID)? = nil
    ) -> [String] {
        if let member {
            guard serves(member.user, member.root) else { return ["auth:{\"code\":401,\"msg\":\"no-read\"}"] }
        }
        if text.hasPrefix("init:") {
            guard let body = (try? JSONValue(parsing: Array(text.dropFirst(5).utf8)))?.objectValue else { return [] }
            let command = body["cmd"]?.stringValue ?? ""
            return ["auth:\(member?.user ?? owner)", "o:{\"mode\":\"tree\",\"store\":\"\(store)\"}"]
                + answers(to: command, pageNodes: pageNodes, isLive: &isLive, member: member)
        }
        if text.hasPrefix("i:") {
            return [page(String(text.split(separator: ":", omittingEmptySubsequences: false)[2]), pageNodes)]
        }
        if text.hasPrefix("cv:") { return [since(String(text.dropFirst(3)), &isLive, member)] }
        if text.hasPrefix("e:") { return [entity(String(text.dropFirst(2)))] }
        return []
    }

    private func page(_ mark: String, _ limit: Int) -> String {
        // In the order of the texts, which is that of the keys at the server.
        let ids = nodes.keys.sorted { $0.text < $1.text }
            .drop { !mark.isEmpty && $0.text <= mark.split(separator: "/")[0] }
        let chosen = ids.prefix(limit)
        // All pages of a reading name the position before its first one.
        let current = mark.isEmpty ? position : Self.position(Int(mark.split(separator: "/")[1]) ?? 0)
        let number = current.text.dropFirst(3)
        let entries = chosen.map { id -> IndexPage.Entry in
            guard let key = try? EntityKey(id.text), let held = nodes[id] else { preconditionFailure("listed") }
            return IndexPage.Entry(key: key, version: held.version, data: .value(.object(held.record.object)))
        }
        let page = IndexPage(
            current: current, entries: entries,
            mark: ids.count > limit ? chosen.last.map { "\($0.text)/\(number)" } : nil)
        var writer = JSONWriter(reservingBytes: 1_024)
        page.write(to: &writer)
        return "i:" + String(decoding: writer.bytes, as: UTF8.self)
    }

    private func since(_ text: String, _ isLive: inout Bool, _ member: (user: String, root: NodeID)?) -> String {
        guard text.hasPrefix("cv-"), let number = Int(text.dropFirst(3)), number <= log.count,
            member.map({ !excluded($0.user, from: $0.root, after: number) }) ?? true
        else { return "cv:?" }
        isLive = true
        return changes(from: number, of: member?.root)
    }

    /// The changes after a position, as a `c` message; at most `count`.
    ///
    /// - Parameter root: of the branch of a member; nil: the owner.
    func changes(from number: Int, count: Int = .max, of root: NodeID? = nil) -> String {
        var writer = JSONWriter(reservingBytes: 1_024)
        writer.raw("[")
        let served = log.indices[number...].prefix(count).compactMap { number in
            root.map { change(number, for: $0) } ?? log[number]
        }
        for (index, change) in served.enumerated() {
            if index > 0 { writer.raw(",") }
            change.write(to: &writer)
        }
        writer.raw("]")
        return "c:" + String(decoding: writer.bytes, as: UTF8.self)
    }

    private func entity(_ text: String) -> String {
        let parts = text.split(separator: ".")
        guard parts.count == 2, let id = NodeID(text: String(parts[0])), let version = Version(parts[1]),
            let held = nodes[id], held.version == version
        else { return "e:\(text)\n?" }
        let data: JSONObject = ["data": .object(held.record.object)]
        return "e:\(text)\n" + String(decoding: data.serialized(), as: UTF8.self)
    }
}

extension BatchRefusal {
    enum Thrown: Error {
        case refused(TreeRefusal)
        /// By the rules of shared branches.
        case denied(RefusalReason)

        func refusal(_ index: Int) -> BatchRefusal {
            let refusal: TreeRefusal
            switch self {
            case .refused(let found): refusal = found
            case .denied(let reason): return BatchRefusal(reason.code, reason, operation: index)
            }
            var current: Version?
            if case .stale(let version) = refusal { current = version }
            return BatchRefusal(refusal.reason.code, refusal.reason, operation: index, current: current)
        }
    }
}
