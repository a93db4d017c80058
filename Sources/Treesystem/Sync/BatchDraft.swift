import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Operations of a batch that is being made, and what their nodes are after them. Each is sealed from the newest state
/// of its node.
struct BatchDraft {
    private(set) var sent = [TreeStore.Sent]()
    private(set) var bytes = 0
    private var records = [NodeID: (record: NodeRecord, version: Version)]()
    /// Operations that are not in the batch although they were chosen.
    private var excluded = Set<OperationID>()
    /// Nodes that are created again: the server goes on with their versions, which this device does not know, so a
    /// later operation of theirs is in another batch.
    private var again = Set<NodeID>()
    /// The numbers that messages in the batch have.
    private(set) var chains = AuthorChains()
    /// Operations that are in the batch.
    private var sealed = Set<OperationID>()
    /// Nodes that have other keys in the batch than this device knows them with.
    private var renewed = Set<NodeID>()
    /// Messages that were begun for the first of their receivers.
    private var messages = [Int64: CopyDraft]()

    private mutating func add(_ operation: PendingOperation, _ json: JSONValue) {
        let body = json.serialized()
        sealed.insert(operation.id)
        sent.append(TreeStore.Sent(operation: operation.id, body: body))
        bytes += body.count
    }

    /// Seals a unit; if one of its operations cannot be made, the draft stays as it is, and the others wait for it.
    mutating func seal(_ unit: [OperationID], _ skeleton: inout TreeSkeleton) throws(TreeError) {
        let canBeSealed = unit.allSatisfy { id in
            guard let operation = skeleton.queue[id] else { return true }
            return operation.dependencies.isDisjoint(with: excluded) && !again.contains(operation.node)
        }
        guard canBeSealed else { return excluded.formUnion(unit) }
        let before = unit.count > 1 ? self : nil
        for id in unit {
            // Sealing may drop operations, and with them dependencies of others.
            guard let operation = skeleton.queue[id], !sealed.contains(id) else { continue }
            if try Renewals.pause(operation, skeleton) {
                if let before { self = before }
                return excluded.formUnion(unit)
            }
            do throws(TreeError) { try seal(operation, &skeleton) } catch {
                if error.code == .store { throw error }
                if let before { self = before }
                excluded.formUnion(unit)
                if ContentDigests.want(operation, after: error, &skeleton) { return }
                if try skeleton.replaceLostPlace(of: operation) { return }
                if try Renewals.end(operation, error, &skeleton) { return }
                return try skeleton.fail(operation, error)
            }
        }
    }

    /// Seals an operation from the newest state of its node.
    private mutating func seal(
        _ operation: PendingOperation, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        if operation.receiver != nil { return try sealForOthers(operation, &skeleton) }
        guard let row = try skeleton.store.row(operation.node) else { return try skeleton.drop(operation) }
        var operation = operation
        if operation.isCreation, row.version > 0 {
            // Another device has created the removed node again.
            operation.kind = .write(operation.fields.subtracting(.creation))
            try skeleton.write(operation)
        }
        let version = records[row.id]?.version ?? row.version
        if operation.isDelete {
            guard version > 0 else {
                try skeleton.drop(operation)
                return try skeleton.forgetUnsent(row)
            }
            let removal = try Self.removal(operation, version, skeleton.store)
            return add(operation, TreeOperation.deleteTree(removal).json)
        }
        try renewAbove(operation, row, &skeleton)
        var rekeyed: DraftContent?
        if operation.fields.contains(.rekey), version > 0 {
            switch try rekeyStep(operation, row, &skeleton) {
            case .done:
                try Rekeying.ended(row.id, &skeleton)
                return try skeleton.drop(operation)
            case .again:
                excluded.insert(operation.id)
                return try Rekeying.prepareAgain(operation, &skeleton)
            case .seal(let content): rekeyed = content
            }
        }
        let record = try record(operation, row, version, rekeyed, &skeleton)
        records[row.id] = (record, version + 1)
        if version == 0 { if try skeleton.store.kept(row.id) != nil { again.insert(row.id) } }
        add(operation, TreeOperation.put(row.id, source: version, record).json)
    }

    /// Seals an operation on the tree of another account.
    private mutating func sealForOthers(
        _ operation: PendingOperation, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard case .copy(let receiver, let conversation) = operation.kind else {
            if let receiver = operation.receiver {
                add(operation, TreeOperation.burn(operation.node, to: receiver).json)
            }
            return
        }
        let number = operation.group ?? -operation.id.number
        let message: CopyDraft
        if let begun = messages[number] {
            message = begun
        } else {
            let next = chains.next(in: conversation, after: try skeleton.store.ownLink(conversation))
            message = try CopyDraft(operation, next, &skeleton, records.mapValues(\.record))
        }
        // A number counts only with its records: this may throw.
        let copies = try message.copies(to: receiver, skeleton)
        chains.advance(message.statement)
        messages[number] = message
        for copy in copies { add(operation, TreeOperation.copy(copy).json) }
    }

    private static func removal(
        _ operation: PendingOperation, _ version: Version, _ store: TreeStore
    ) throws(TreeError) -> BranchRemoval {
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

    /// What an operation of a re-key does with the newest record of its node.
    private func rekeyStep(
        _ operation: PendingOperation, _ row: NodeRow, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Rekeying.Step {
        let (known, store) = (records, skeleton.store)
        let lookUp = { (id: NodeID) throws(TreeError) -> NodeRecord? in
            if let made = known[id] { return made.record }
            guard let text = try store.row(id)?.record else { return nil }
            return try? NodeRecord(parsing: text, from: .server)
        }
        guard let base = try lookUp(row.id),
            let above = try skeleton.keyring.keys(
                of: base.parent, keeps: false, fresh: renewed,
                { (id: NodeID) throws(TreeError) -> TreeKeyring.KnownNode? in try lookUp(id).map { .record($0) } }),
            let opened = try? skeleton.keyring.open(base, row.id, below: above)
        else { throw TreeError(.quarantined, "the node's record does not open") }
        return try Rekeying.step(operation, opened, &skeleton)
    }

    /// - Parameter rekeyed: the content of an operation of a re-key; nil: none.
    private mutating func record(
        _ operation: PendingOperation, _ row: NodeRow, _ version: Version, _ rekeyed: DraftContent?,
        _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> NodeRecord {
        let (known, store) = (records, skeleton.store)
        let lookUp = { (id: NodeID) throws(TreeError) -> NodeRecord? in
            if let made = known[id] { return made.record }
            guard let text = try store.row(id)?.record else { return nil }
            return try? NodeRecord(parsing: text, from: .server)
        }
        let keysOf = { (id: NodeID) throws(TreeError) -> TreeKeyring.KnownNode? in
            try lookUp(id).map { .record($0) }
        }
        let base = try lookUp(row.id)
        let isRoot = row.id == skeleton.branches.memberRoot
        let place = isRoot ? .trunk(.home) : operation.target?.parent ?? base?.parent ?? row.parent
        // Keys of nodes that are created in this batch are not kept: the batch may be refused.
        guard let parent = try skeleton.keyring.keys(of: place, keeps: false, fresh: renewed, keysOf) else {
            throw TreeError(.quarantined, "the parent's record does not open")
        }
        let name = operation.target?.name ?? row.name
        let isRekey = operation.fields.contains(.rekey) && version > 0
        let content = isRekey ? rekeyed : try Self.content(of: operation, store)
        let author = try author(of: row.id, at: place, skeleton)
        let kept = try version > 0 ? nil : store.kept(row.id).flatMap { KeptNode(octets: SecureBytes(copying: $0)) }
        do throws(SealFault) {
            if version == 0 {
                guard let name else { throw SealFault.badAppTags }
                return try skeleton.keyring.sealer.create(
                    NodeDraft(
                        name, content: content ?? .none, modified: row.modified, appTags: row.tags,
                        burnTime: row.burnTime), row.id, below: parent, again: kept, by: author)
            }
            let basePlace = isRoot ? place : base?.parent ?? place
            guard let base, let above = try? skeleton.keyring.keys(of: basePlace, keeps: false, fresh: renewed, keysOf),
                let opened = try? skeleton.keyring.open(base, row.id, below: above)
            else { throw SealFault.missingKeys }
            if operation.fields.contains(.sharing) {
                guard let change = (try? store.shareChange(operation.id)) ?? nil else { throw SealFault.badShare }
                let record = try ShareChanges.record(change, opened, below: parent, replacing: version, skeleton)
                return keepRenewed(row.id, base, record)
            }
            var edit = NodeEdit(
                name: operation.target?.name, content: content,
                modified: isRekey || content == nil ? nil : row.modified,
                appTags: operation.fields.contains(.tags) ? row.tags : nil,
                burn: operation.fields.contains(.burnTime) ? row.burnTime.map { .at($0) } ?? .never : nil)
            edit.isSealedAgain = isRekey
            if isRoot, let author {
                return try skeleton.keyring.sealer.editRoot(opened, edit, replacing: version, by: author)
            }
            let leaves = (try? Branches.leaves(base.parent, for: place, skeleton)) ?? true
            let record = try skeleton.keyring.sealer.edit(
                opened, edit, below: parent, replacing: version, by: author, renewing: leaves)
            return keepRenewed(row.id, base, record)
        } catch {
            throw TreeError(.content, "the record could not be made: \(error)")
        }
    }

    private mutating func keepRenewed(_ id: NodeID, _ base: NodeRecord, _ record: NodeRecord) -> NodeRecord {
        if record.commitment != base.commitment { renewed.insert(id) }
        return record
    }

    /// With which keys a record is signed: inside of shared branches, those of this batch included.
    private func author(
        of id: NodeID, at place: NodeParent, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> MessageIdentity? {
        if let author = try Branches.author(of: id, at: place, skeleton) { return author }
        let isShared = try (skeleton.store.ancestors(of: place) + [id]).contains {
            records[$0]?.record.shareList != nil
        }
        return isShared ? skeleton.messages.identity : nil
    }

    /// What is written hangs on the newest keys of all nodes above it: those that hang on an earlier one are written
    /// first (decision 0067).
    private mutating func renewAbove(
        _ operation: PendingOperation, _ row: NodeRow, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        let above = try skeleton.store.ancestors(of: operation.target?.parent ?? row.parent)
        for (place, id) in above.enumerated().reversed() where place + 1 < above.count && records[id] == nil {
            let (known, store) = (records, skeleton.store)
            let keysOf = { (id: NodeID) throws(TreeError) -> TreeKeyring.KnownNode? in
                if let made = known[id] { return .record(made.record) }
                guard let text = try store.row(id)?.record else { return nil }
                return (try? NodeRecord(parsing: text, from: .server)).map { .record($0) }
            }
            let keys = try skeleton.keyring.keys(
                of: .node(above[place + 1]), keeps: false, fresh: renewed, keysOf)
            // Most nodes never had another key.
            guard let keys, keys.hasEarlierKeys, let text = try store.row(id)?.record,
                let record = try? NodeRecord(parsing: text, from: .server),
                let opened = try? skeleton.keyring.open(record, id, below: keys), opened.hangsOnEarlierKey
            else { continue }
            if let renewal = try Renewals.operation(of: id, &skeleton) { try seal(renewal, &skeleton) }
        }
    }

    static func content(
        of operation: PendingOperation, _ store: TreeStore
    ) throws(TreeError) -> DraftContent? {
        guard !operation.fields.isDisjoint(with: [.content, .rekey]) else { return nil }
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
}
