import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Sending the queue (treesystem 4.7). One batch is in flight at a time; it holds everything that is ready, in an order
/// that respects the dependencies, because the server makes the operations of a batch in order.
extension TreeMachine {
    /// Starts what can be started. Runs at the end of each turn.
    mutating func pump() throws(TreeError) {
        guard link.isOpen, channel.phase == .live, !push.isPaused, !push.waitsForToken else { return }
        try prepareContents()
        guard push.retryAt == nil else { return }
        if push.inFlight != nil { return try sendAgain() }
        guard !queue.isEmpty else { return }
        let chosen = queue.next(max: PushState.operationsMax) { operation in
            operation.content.isReady && operation.waitsFor == nil && push.pauses[operation.id] == nil
        }
        if !chosen.isEmpty { try send(chosen) }
    }

    // MARK: - Contents

    /// Asks for the contents of the first operations that need one.
    private mutating func prepareContents() throws(TreeError) {
        guard push.asked.count < PushState.contentsMax else { return }
        for id in queue.ids where !push.asked.contains(id) {
            guard let operation = queue[id], operation.state == .waiting, !operation.content.isReady else { continue }
            if try store.row(operation.node)?.state == .leaving {
                try sendEmpty(operation)
            } else if try prepareContent(of: operation) {
                push.asked.insert(id)
            }
            if push.asked.count >= PushState.contentsMax { return }
        }
    }

    /// The node is removed here; it is created only because others depend on it.
    private mutating func sendEmpty(_ operation: PendingOperation) throws(TreeError) {
        var operation = operation
        operation.content = .none
        try write(operation)
    }

    private mutating func prepareContent(of operation: PendingOperation) throws(TreeError) -> Bool {
        switch operation.content {
        case .ask:
            guard let row = try store.row(operation.node), let (node, path) = try shown(row) else { return false }
            actions.append(.ask(operation.id, node, path))
        case .source:
            guard let path = try store.heldContent(operation.id) else { return false }
            actions.append(.spool(operation.id, path: String(decoding: path, as: UTF8.self)))
        case .spooled: actions.append(.upload(operation.id))
        case .none, .held, .uploaded: return false
        }
        return true
    }

    /// What the app, or the disk, gave as the content of an operation.
    package enum Provided: Sendable {
        case none
        /// Content for the record.
        case held(NodeContent)
        /// The state of an upload, for `TreeStore.spool`; nothing is uploaded yet.
        case spooled([UInt8])
        /// A file of the app that is to be spooled.
        case source(path: String)
        /// The content cannot be provided now; the operation waits for the app.
        case unavailable
    }

    package mutating func provided(_ id: OperationID, _ content: Provided) throws(TreeError) {
        push.asked.remove(id)
        guard var operation = queue[id], !operation.content.isReady else { return }
        hasWritten = true
        switch content {
        case .none: operation.content = .none
        case .held(let content):
            operation.content = .held
            try store.setHeldContent(id, HeldContent.octets(content))
        case .spooled(let state):
            operation.content = .spooled
            try store.setSpool(id, state)
        case .source(let path):
            operation.content = .source
            try store.setHeldContent(id, Array(path.utf8))
        case .unavailable: operation.state = .held(.content)
        }
        try write(operation)
        if case .unavailable = content {
            events.append(
                .operationFailed(id, operation.node, TreeError(.content, "the app could not provide the content")))
        }
    }

    /// The blob of an operation is complete at the server.
    package mutating func uploaded(_ id: OperationID, _ state: [UInt8]) throws(TreeError) {
        push.asked.remove(id)
        guard var operation = queue[id], operation.content == .spooled else { return }
        operation.content = .uploaded
        try store.setSpool(id, state)
        try write(operation)
    }

    // MARK: - Sending

    private mutating func send(_ chosen: [OperationID]) throws(TreeError) {
        var draft = BatchDraft()
        for unit in units(chosen) {
            if draft.bytes > PushState.bytesMax { break }
            try seal(unit, into: &draft)
        }
        guard !draft.sent.isEmpty else { return }
        let id = BatchID.random(keyring.random.bytes)
        for (place, sent) in draft.sent.enumerated() {
            guard var operation = queue[sent.operation] else { continue }
            operation.state = .sending
            try write(operation)
            try store.setSent(sent, request: id.text, place: place)
        }
        push.inFlight = PushState.InFlight(id: id, operations: draft.sent.map(\.operation))
        try sendAgain()
    }

    /// What is sent together or not at all: single operations, and groups.
    private func units(_ chosen: [OperationID]) -> [[OperationID]] {
        var units = [[OperationID]]()
        for id in chosen {
            if let group = queue[id]?.group, let last = units.last?.last, queue[last]?.group == group {
                units[units.count - 1].append(id)
            } else {
                units.append([id])
            }
        }
        return units
    }

    /// Seals a unit; if one of its operations cannot be made, the draft stays as it is, and the others wait for it.
    private mutating func seal(_ unit: [OperationID], into draft: inout BatchDraft) throws(TreeError) {
        let canBeSealed = unit.allSatisfy { id in
            guard let operation = queue[id] else { return true }
            return operation.dependencies.isDisjoint(with: draft.excluded) && !draft.again.contains(operation.node)
        }
        guard canBeSealed else { return draft.excluded.formUnion(unit) }
        let before = unit.count > 1 ? draft : nil
        for id in unit {
            // Sealing may drop operations, and with them dependencies of others.
            guard let operation = queue[id] else { continue }
            do throws(TreeError) { try seal(operation, into: &draft) } catch {
                if error.code == .store { throw error }
                if let before { draft = before }
                draft.excluded.formUnion(unit)
                if try !replaceLostPlace(of: operation) { try fail(operation, error) }
                return
            }
        }
    }

    private mutating func sendAgain() throws(TreeError) {
        guard let inFlight = push.inFlight, !inFlight.isSent else { return }
        guard let sent = try store.sent() else {
            push.inFlight = nil
            return
        }
        var body = Array("{\"id\":\"\(inFlight.id.text)\",\"ops\":[".utf8)
        for (place, operation) in sent.operations.enumerated() {
            if place > 0 { body.append(0x2C) }
            body += operation.body
        }
        body += Array("]}".utf8)
        push.inFlight?.isSent = true
        isSending = true
        actions.append(.batch(inFlight.id, body))
    }

    /// Operations of a batch that is being made, and what their nodes are after them.
    private struct BatchDraft {
        var sent = [TreeStore.Sent]()
        var bytes = 0
        var records = [NodeID: (record: NodeRecord, version: Version)]()
        /// Operations that are not in the batch although they were chosen.
        var excluded = Set<OperationID>()
        /// Nodes that are created again: the server goes on with their versions, which this device does not know, so a
        /// later operation of theirs is in another batch.
        var again = Set<NodeID>()

        mutating func add(_ operation: PendingOperation, _ json: JSONValue) {
            let body = json.serialized()
            sent.append(TreeStore.Sent(operation: operation.id, body: body))
            bytes += body.count
        }
    }

    /// Seals an operation from the newest state of its node.
    private mutating func seal(_ operation: PendingOperation, into draft: inout BatchDraft) throws(TreeError) {
        guard let row = try store.row(operation.node) else { return try drop(operation) }
        var operation = operation
        if operation.isCreation, row.version > 0 {
            // Another device has created the removed node again.
            operation.kind = .write(operation.fields.subtracting(.creation))
            try write(operation)
        }
        let version = draft.records[row.id]?.version ?? row.version
        if operation.isDelete {
            guard version > 0 else {
                try drop(operation)
                return try forgetUnsent(row)
            }
            return draft.add(operation, TreeOperation.deleteTree(try removal(operation, version)).json)
        }
        let record = try record(operation, row, version, draft)
        draft.records[row.id] = (record, version + 1)
        if version == 0 { if try store.kept(row.id) != nil { draft.again.insert(row.id) } }
        draft.add(operation, TreeOperation.put(row.id, source: version, record).json)
    }

    private func removal(_ operation: PendingOperation, _ version: Version) throws(TreeError) -> BranchRemoval {
        let kept = try store.deletion(operation.id) ?? ([], 3)
        var known = [NodeID: Version]()
        for start in stride(from: 0, to: kept.known.count - 23, by: 24) {
            guard let id = NodeID(octets: kept.known[start..<start + 16]) else { continue }
            known[id] = kept.known[start + 16..<start + 24].reduce(0) { $0 << 8 | Version($1) }
        }
        let source = known.removeValue(forKey: operation.node) ?? version
        return BranchRemoval(
            operation.node, source: source, known: known, includesOutdated: kept.options & 1 != 0,
            includesUnknown: kept.options & 2 != 0)
    }

    private mutating func record(
        _ operation: PendingOperation, _ row: NodeRow, _ version: Version, _ draft: BatchDraft
    ) throws(TreeError) -> NodeRecord {
        let known = draft.records
        let store = store
        let lookUp = { (id: NodeID) throws(TreeError) -> NodeRecord? in
            if let made = known[id] { return made.record }
            guard let text = try store.row(id)?.record else { return nil }
            return try? NodeRecord(parsing: text, from: .server)
        }
        let base = try lookUp(row.id)
        let place = operation.target?.parent ?? base?.parent ?? row.parent
        // Keys of nodes that are created in this batch are not kept: the batch may be refused.
        guard let parent = try keyring.keys(of: place, keeps: false, lookUp) else {
            throw TreeError(.quarantined, "the parent's record does not open")
        }
        let name = operation.target?.name ?? row.name
        let content = try draftContent(operation)
        let kept = try version > 0 ? nil : store.kept(row.id).flatMap { KeptNode(octets: SecureBytes(copying: $0)) }
        do throws(SealFault) {
            if version == 0 {
                guard let name else { throw SealFault.badAppTags }
                return try keyring.sealer.create(
                    NodeDraft(
                        name, content: content ?? .none, modified: row.modified, appTags: row.tags,
                        burnTime: row.burnTime), row.id, below: parent, again: kept)
            }
            guard let base, let above = try? keyring.keys(of: base.parent, keeps: false, lookUp),
                let opened = try? keyring.opener.open(base, row.id, below: above)
            else { throw SealFault.otherEpoch }
            let edit = NodeEdit(
                name: operation.target?.name, content: content, modified: content == nil ? nil : row.modified,
                appTags: operation.fields.contains(.tags) ? row.tags : nil,
                burn: operation.fields.contains(.burnTime) ? row.burnTime.map { .at($0) } ?? .never : nil)
            return try keyring.sealer.edit(opened, edit, below: parent, replacing: version)
        } catch {
            throw TreeError(.content, "the record could not be made: \(error)")
        }
    }

    private func draftContent(_ operation: PendingOperation) throws(TreeError) -> DraftContent? {
        guard operation.fields.contains(.content) else { return nil }
        switch operation.content {
        case .none: return DraftContent.none
        case .held:
            guard let content = try store.heldContent(operation.id).flatMap(HeldContent.content) else {
                throw TreeError(.content, "the kept content is damaged")
            }
            return .inline(content)
        case .uploaded:
            guard let record = try store.spool(operation.id).flatMap(SpoolRecord.init(octets:)), let blob = record.blob
            else { throw TreeError(.content, "the kept plan of the content is damaged") }
            return .blob(record.plan, blob)
        case .spooled, .ask, .source: throw TreeError(.content, "the content is not ready")
        }
    }

    /// An operation cannot be sent: it waits for the app, with those that depend on it.
    mutating func fail(_ operation: PendingOperation, _ error: TreeError) throws(TreeError) {
        if try isGivenUp(operation) { return }
        var operation = operation
        operation.state = .failed(error.reason ?? error.detail)
        try write(operation)
        events.append(.operationFailed(operation.id, operation.node, error))
    }
}
