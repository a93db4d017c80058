import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Changes of the server: from the log, from listings, and single nodes that were requested.
extension TreeMachine {
    /// A change of the log. It is applied if it continues the version that this device has; a change that was applied
    /// before is ignored, and for one that does not fit the whole record is requested.
    mutating func apply(_ change: AppliedChange) throws(TreeError) {
        guard let id = NodeID(text: change.key.text) else {
            return try reportFault(IntegrityFault(NodeID(0), .form, "a change of something that is not a node"))
        }
        let row = try store.row(id)
        guard change.operation == .modify else { return try removed(id, at: change.ev) }
        let known = row?.version ?? 0
        if change.ev <= known { return try addStamps(change, to: row) }
        guard (change.sv ?? 0) == known, let diff = change.diff.flatMap({ try? ObjectDiff($0) }),
            let object = try? JSONDiff.applyWhole(diff, to: try base(id, row))
        else { return try want(id, change.ev) }
        try received(id, object, version: change.ev)
    }

    /// What a change of the log applies to: the newest record of the server, genuine or not.
    private func base(_ id: NodeID, _ row: NodeRow?) throws(TreeError) -> JSONObject {
        let text = try store.quarantined(id) ?? row?.record
        guard let text, let object = (try? JSONValue(parsing: text))?.objectValue else { return JSONObject() }
        return object
    }

    /// The server's stamps come with the change; the answer to a batch does not have them.
    private mutating func addStamps(_ change: AppliedChange, to row: NodeRow?) throws(TreeError) {
        guard var row, row.version == change.ev, let text = row.record,
            var record = try? NodeRecord(parsing: text, from: .server), record.stamps.changed == nil,
            let diff = change.diff.flatMap({ try? ObjectDiff($0) }),
            let object = try? JSONDiff.applyWhole(diff, to: record.object.without(RecordKey.stampNames)),
            let stamped = try? NodeRecord(object, from: .server), stamped.metadata == record.metadata
        else { return }
        record.stamps = stamped.stamps
        (row.record, row.changed) = (record.object.serialized(), record.stamps.changed ?? row.changed)
        try write(row)
    }

    /// A record of the server that is newer than what this device has.
    mutating func received(_ id: NodeID, _ object: JSONObject, version: Version) throws(TreeError) {
        if channel.wanted[id] != nil { try wantNoMore(id) }
        let text = object.serialized()
        let record: NodeRecord
        do throws(RecordFault) { record = try NodeRecord(object, from: .server) } catch {
            return try quarantine(IntegrityFault(id, .form, error.description), version, text)
        }
        try show(id, record, text, version, reports: true)
    }

    // MARK: - Showing a record

    /// Opens a record and shows the node.
    ///
    /// - Parameter reports: whether the app is told what changed.
    mutating func show(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, reports: Bool = false
    ) throws(TreeError) {
        var waiting = [(id, record, text, version)]
        while let (id, record, text, version) = waiting.popLast() {
            guard try showOne(id, record, text, version, reports) else { continue }
            waiting += try uncovered(below: id)
        }
    }

    /// The records below a node that can be shown now: those that arrived before their parent, and those that are no
    /// longer in a branch that is removed here. Nodes without a record are shown at once.
    private mutating func uncovered(
        below id: NodeID
    ) throws(TreeError) -> [(NodeID, NodeRecord, [UInt8], Version)] {
        let isShown = try store.row(id)?.state == .open
        var (found, places) = ([(NodeID, NodeRecord, [UInt8], Version)](), [id])
        while let place = places.popLast() {
            for row in try store.allChildren(of: .node(place)) {
                guard row.state == .unopened || (isShown && row.state.isConcealed && !isDeleted(row.id)) else {
                    continue
                }
                if let text = row.record, let record = try? NodeRecord(parsing: text, from: .server) {
                    found.append((row.id, record, text, row.version))
                } else if row.version == 0 {
                    guard queue.has(row.id) else {
                        try forgetUnsent(row)
                        continue
                    }
                    var row = row
                    row.state = .open
                    try write(row)
                    places.append(row.id)
                }
            }
        }
        return found
    }

    /// - Returns: whether the node's keys are known now.
    private mutating func showOne(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ reports: Bool
    ) throws(TreeError) -> Bool {
        guard let parent = try parentKeys(of: record.parent) else {
            try keepUnopened(id, record, text, version)
            return false
        }
        let opened: OpenedNode
        do throws(NodeFault) { opened = try keyring.opener.open(record, id, below: parent) } catch {
            guard case .nameMismatch(let node) = error else {
                try quarantine(IntegrityFault(id, .seal, error.description), version, text)
                return false
            }
            keyring.keep(node.childKeys, of: id)
            try quarantine(IntegrityFault(id, .nameMismatch, error.description), version, text)
            return true
        }
        try accept(opened, text, version, reports)
        return true
    }

    /// What opens and makes records below a place; nil when the place is not known yet.
    mutating func parentKeys(of place: NodeParent) throws(TreeError) -> ParentKeys? {
        let store = store
        return try keyring.keys(of: place) { id throws(TreeError) in
            let newest = try store.quarantined(id)
            let known = try store.row(id)?.record
            guard let text = newest ?? known else { return nil }
            return try? NodeRecord(parsing: text, from: .server)
        }
    }

    private mutating func keepUnopened(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version
    ) throws(TreeError) {
        var row = try store.row(id) ?? NodeRow(id, parent: record.parent, name: nil, state: .unopened)
        (row.version, row.record, row.changed, row.scan) = (
            version, text, record.stamps.changed, channel.scanID ?? row.scan
        )
        if !queue.fields(of: id).contains(.place) { (row.parent, row.name) = (record.parent, nil) }
        if !row.state.isConcealed { row.state = .unopened }
        try write(row)
    }

    /// The last good record stays; the version is the newest, so that a change of this device repairs the record.
    private mutating func quarantine(
        _ fault: IntegrityFault, _ version: Version, _ text: [UInt8]
    ) throws(TreeError) {
        var row =
            try store.row(fault.node)
            ?? NodeRow(fault.node, parent: .trunk(.home), name: nil, state: .quarantined)
        if row.state == .unopened { row.state = .quarantined }
        (row.version, row.scan) = (version, channel.scanID ?? row.scan)
        if row.state == .quarantined {
            row.record = text
            if let record = try? NodeRecord(parsing: text, from: .server) { row.parent = record.parent }
        }
        try write(row)
        try store.quarantine(fault, version, text)
        try reportFault(fault)
    }

    mutating func reportFault(_ fault: IntegrityFault) throws(TreeError) { events.append(.integrity(fault)) }

    /// Makes a genuine record the server's state of the node, and shows what local operations do not write.
    private mutating func accept(
        _ opened: OpenedNode, _ text: [UInt8], _ version: Version, _ reports: Bool
    ) throws(TreeError) {
        let id = opened.id
        let old = try store.row(id)
        if let operation = try sentOperation(of: opened.record, id) {
            return try confirm(operation, opened, version: version, row: old)
        }
        var row = old ?? NodeRow(id, parent: opened.record.parent, name: opened.name, state: .open)
        let before = old.map { $0.state == .open } == true ? try shown(row) : nil
        let theirs = try changes(from: old, to: opened)
        (row.version, row.record, row.scan) = (version, text, channel.scanID ?? row.scan)
        row.changed = opened.record.stamps.changed ?? row.changed
        let mine = view(opened, in: &row)
        row.state = try state(of: row)
        // Removed, and created again by another device before this device's removal was answered.
        if old == nil, row.state == .leaving { row.state = .covered }
        try write(row)
        try breakCycle(through: row)
        try store.releaseQuarantine(id)
        try stopWaiting(id, version)
        keyring.keep(opened.childKeys, of: id)
        if old?.version == 0 {
            try createdElsewhere(id)
            try store.releaseKept(id)
        }
        guard row.state == .open else { return try hide(row, before) }
        if !mine.contains(.place) { try clearPlace(of: row) }
        if reports { try report(row, before, theirs) }
        try meet(theirs, mine, opened, row)
    }

    /// Whether a node is shown, or removed with the branch that it is in.
    func state(of row: NodeRow) throws(TreeError) -> NodeRow.State {
        if isDeleted(row.id) { return .leaving }
        guard case .node(let id) = row.parent else { return .open }
        guard try store.row(id)?.state.isConcealed == true else { return .open }
        return row.state == .leaving ? .leaving : .covered
    }

    /// A node that was to be removed is shown again, with what is below it.
    mutating func uncover(_ row: NodeRow, _ node: Node, _ path: TreePath) throws(TreeError) {
        events.append(.discovered(node, path))
        for (id, record, text, version) in try uncovered(below: row.id) {
            try show(id, record, text, version, reports: true)
        }
    }

    /// Shows what the server has, except for what waiting operations write.
    ///
    /// - Returns: what they write.
    @discardableResult
    func view(_ opened: OpenedNode, in row: inout NodeRow) -> WriteFields {
        let mine = queue.fields(of: row.id)
        if !mine.contains(.place) { (row.parent, row.name) = (opened.record.parent, opened.name) }
        if !mine.contains(.content) { (row.content, row.modified) = (opened.contentInfo, opened.metadata.modified) }
        if !mine.contains(.tags) { row.tags = opened.metadata.appTags }
        if !mine.contains(.burnTime) { row.burnTime = opened.record.burnTime }
        return mine
    }

    /// A node came into a branch that is removed here: it is removed with the rest, or shown again with what is left.
    private mutating func hide(_ row: NodeRow, _ before: (node: Node, path: TreePath)?) throws(TreeError) {
        guard let before else { return }
        events.append(.deleted(before.node, before.path))
        for id in try store.branch(of: row.id) {
            guard var row = try store.row(id), row.state == .open else { continue }
            let shown = try shown(row)
            row.state = .covered
            try write(row)
            if let shown { events.append(.deleted(shown.node, shown.path)) }
        }
    }

    func isDeleted(_ id: NodeID) -> Bool { queue.operations(of: id).contains(where: \.isDelete) }

    /// What another device changed between two records of a node.
    private func changes(from old: NodeRow?, to opened: OpenedNode) throws(TreeError) -> WriteFields {
        guard let text = old?.record, let base = try? NodeRecord(parsing: text, from: .server) else { return [] }
        var changes = WriteFields()
        if base.parent != opened.record.parent || base.tag != opened.record.tag { changes.insert(.place) }
        if base.data?.id != opened.record.data?.id { changes.insert(.content) }
        if base.burnTime != opened.record.burnTime { changes.insert(.burnTime) }
        return changes
    }

    private mutating func report(
        _ row: NodeRow, _ before: (node: Node, path: TreePath)?, _ theirs: WriteFields
    ) throws(TreeError) {
        guard let (node, path) = try shown(row) else { return }
        guard let before else { return events.append(.discovered(node, path)) }
        if before.node.parent != node.parent || before.node.name != node.name {
            events.append(.moved(node, from: before.path, to: path))
        }
        var change = NodeChange()
        if before.node.content?.id != node.content?.id { change.insert(.data) }
        if before.node.tags != node.tags { change.insert(.tags) }
        if before.node.burnTime != node.burnTime { change.insert(.burnTime) }
        if !change.isEmpty { events.append(.modified(node, change, path)) }
    }

    // MARK: - Removal

    /// The server has removed a node.
    mutating func removed(_ id: NodeID, at version: Version) throws(TreeError) {
        if channel.wanted[id] != nil { try wantNoMore(id) }
        guard let row = try store.row(id), row.version > 0, row.version <= version else { return }
        if try isWanted(row) { return try keepRemoved(row) }
        let before = row.state == .open ? try shown(row) : nil
        for operation in queue.operations(of: id).reversed() where !(operation.isDelete && operation.isSending) {
            try drop(operation)
        }
        hasWritten = true
        try store.removeRow(id)
        keyring.forget(id)
        try release(below: id)
        if let before { events.append(.deleted(before.node, before.path)) }
    }

    /// Whether local changes would be lost with the node: its new content, or nodes that were put below it here.
    private func isWanted(_ row: NodeRow) throws(TreeError) -> Bool {
        let contents = queue.operations(of: row.id).filter { $0.fields.contains(.content) }
        if contents.contains(where: { row.state != .leaving || !$0.isSending }) { return true }
        for child in try store.allChildren(of: .node(row.id)) where child.state == .open || child.state == .covered {
            if child.version == 0 || queue.fields(of: child.id).contains(.place) { return true }
        }
        return false
    }

    /// Keeps a removed node here, until the app decides whether it is created again.
    mutating func keepRemoved(_ row: NodeRow) throws(TreeError) {
        var row = row
        let wasShown = row.state == .open
        let opened = try open(row)
        let content = opened.flatMap { (try? $0.inlineContent()) ?? nil }
        (row.version, row.record, row.state) = (0, nil, .open)
        try write(row)
        try store.keep(row.id, opened?.kept.octets.withUnsafeBytes { Array($0) } ?? [])
        if opened == nil { keyring.forget(row.id) }
        var operation: PendingOperation
        if let first = queue.operations(of: row.id).first(where: { !$0.isDelete }) {
            operation = first
        } else {
            let id = try enqueue(row.id, .write([]))
            guard let made = queue[id] else { return }
            operation = made
        }
        let hadContent = operation.fields.contains(.content)
        operation.kind = .write(operation.fields.union([.creation, .place, .tags, .burnTime]))
        (operation.origin, operation.target, operation.state) = (nil, row.place, .held(.removed))
        if !hadContent, let content {
            operation.kind = .write(operation.fields.union(.content))
            operation.content = .held
            try store.setHeldContent(operation.id, HeldContent.octets(content))
        }
        try write(operation)
        // Versions of the removed node mean nothing for the new one.
        try stopWaiting(row.id, .max)
        try follow(operation)
        guard let (node, path) = try shown(row) else { return }
        if !wasShown { try uncover(row, node, path) }
        events.append(.conflict(.removed(node)))
    }

    /// Operations that put nodes below one that is created again come after it.
    private mutating func follow(_ creation: PendingOperation) throws(TreeError) {
        for id in queue.ids where id != creation.id {
            guard var operation = queue[id], operation.target?.parent == .node(creation.node),
                operation.node != creation.node
            else { continue }
            operation.dependencies.insert(creation.id)
            try write(operation)
        }
        for id in queue.breakCycles(through: creation.id) {
            if let operation = queue[id] { try write(operation) }
        }
    }

    /// The node as the server has it; nil when its record does not open.
    mutating func open(_ row: NodeRow) throws(TreeError) -> OpenedNode? {
        guard let text = row.record, let record = try? NodeRecord(parsing: text, from: .server),
            let parent = try parentKeys(of: record.parent)
        else { return nil }
        return try? keyring.opener.open(record, row.id, below: parent)
    }

    // MARK: - Nodes whose newest record is requested

    mutating func want(_ id: NodeID, _ version: Version) throws(TreeError) {
        hasWritten = true
        guard channel.wanted.count < TreeChannel.wantedMax else {
            channel.wanted = [:]
            try storeWanted()
            return try scanAgain()
        }
        channel.wanted[id] = max(version, channel.wanted[id] ?? 0)
        try storeWanted()
        ask(id)
    }

    mutating func wantNoMore(_ id: NodeID) throws(TreeError) {
        hasWritten = true
        channel.wanted[id] = nil
        try storeWanted()
    }

    private func storeWanted() throws(TreeError) {
        let list = channel.wanted.sorted { $0.key < $1.key }.map { "\($0.key.text).\($0.value)" }
        try store.setNamedValue("wanted", list.isEmpty ? nil : list.joined(separator: ","))
    }
}

extension OpenedNode {
    /// Sizes and place of the content.
    var contentInfo: Node.ContentInfo? {
        guard let data = record.data, let access = metadata.content else { return nil }
        switch data {
        case .blob(let id, let length, let blob):
            return Node.ContentInfo(id: id, sizes: access.sizes, storedBytes: length, blob: blob)
        case .inline(let id, let sealed):
            return Node.ContentInfo(id: id, sizes: access.sizes, storedBytes: UInt64(sealed.count), blob: nil)
        case .withheld(let id, let length, _):
            return Node.ContentInfo(id: id, sizes: access.sizes, storedBytes: UInt64(length), blob: nil)
        }
    }
}

extension RecordKey {
    /// The server's stamps.
    static let stampNames: Set<String> = Set([RecordKey.changed, .created, .sender].map(\.rawValue))
}

extension JSONObject {
    func without(_ names: Set<String>) -> JSONObject {
        JSONObject(pairs.filter { !names.contains($0.key) }.map { (key: $0.key, value: $0.value) })
    }
}
