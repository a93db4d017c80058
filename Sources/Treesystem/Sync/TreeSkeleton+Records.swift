import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Showing what the server has, apart from what local changes write.
extension TreeSkeleton {
    // MARK: - Showing a record

    /// Opens a record and shows the node.
    ///
    /// - Parameters:
    ///   - opened: the node, if it was opened before.
    ///   - reports: whether the app is told what changed.
    mutating func show(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ opened: OpenedNode? = nil,
        reports: Bool = false
    ) throws(TreeError) {
        let root = id
        var waiting = [(id, record, text, version)]
        while let (id, record, text, version) = waiting.popLast() {
            guard try showOne(id, record, text, version, id == root ? opened : nil, reports) else { continue }
            waiting += try uncovered(below: id, reports)
        }
    }

    /// The records below a node that can be shown now: those that arrived before their parent, and those that are no
    /// longer in a branch that is removed here. Nodes without a record are shown at once.
    private mutating func uncovered(
        below id: NodeID, _ reports: Bool
    ) throws(TreeError) -> [(NodeID, NodeRecord, [UInt8], Version)] {
        let isShown = try store.state(of: id) == .open
        var (found, places) = (try MissingParents.records(below: id, &self), [id])
        while let place = places.popLast() {
            for row in try store.hiddenChildren(of: .node(place)) {
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
                    if row.state.isConcealed { mayBeStranded = true }
                    row.state = .open
                    try write(row)
                    if reports, let (node, path) = try shown(row) { events.append(.discovered(node, path)) }
                    places.append(row.id)
                }
            }
        }
        return found
    }

    /// - Returns: whether what is below the node can be opened and may be shown now.
    private mutating func showOne(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ known: OpenedNode?, _ reports: Bool
    ) throws(TreeError) -> Bool {
        if let known {
            try accept(known, text, version, reports)
            return try store.state(of: id) != .unopened
        }
        guard let parent = try keys(for: record, id) else {
            if try MissingParents.quarantine(id, record, text, version, &self) { return true }
            try keepUnopened(id, record, text, version)
            return false
        }
        let opened: OpenedNode
        do throws(NodeFault) { opened = try keyring.open(record, id, below: parent) } catch {
            guard case .nameMismatch(let node) = error else {
                if try Branches.waits(id, record, text, version, &self) { return false }
                if try EarlyRecords.waits(id, record, text, version, for: error, &self) { return false }
                if branches.memberRoot != nil, record.isDeposit(id) {
                    // Only the owner opens it, until it writes it.
                    let fault = IntegrityFault(id, .awaitingKeys, "a deposit is sealed to the owner of the branch")
                    try quarantine(fault, version, text, reports: false)
                    return false
                }
                if case .otherKeys = error, try KeyRenewal.waits(id, record, text, version, &self) { return false }
                try quarantine(IntegrityFault(id, .seal, error.description), version, text)
                return false
            }
            keyring.keep(node.childSecrets, of: id)
            try quarantine(IntegrityFault(id, .nameMismatch, error.description), version, text)
            return try store.state(of: id) == .open
        }
        try accept(opened, text, version, reports)
        return try store.state(of: id) != .unopened
    }

    /// What opens and makes records below a place; nil when the place is not known yet.
    mutating func parentKeys(of place: NodeParent) throws(TreeError) -> ParentKeys? {
        let (store, branches, hasQuarantined) = (store, branches, hasQuarantined)
        return try keyring.keys(of: place) { id throws(TreeError) in
            // In a shared branch a key is used only of a record that is believed.
            if branches.isRoot(id), try store.state(of: id) == .quarantined { return nil }
            let mayBe = try hasQuarantined ? Branches.root(of: .node(id), branches, store) == nil : false
            let newest = mayBe ? try store.quarantined(id) : nil
            let known = try store.row(id)?.record
            if let text = newest ?? known { return (try? NodeRecord(parsing: text, from: .server)).map { .record($0) } }
            return try store.kept(id).flatMap { KeptNode(octets: SecureBytes(copying: $0)) }.map { .kept($0) }
        }
    }

    /// What opens a record; the root of another account's branch needs nothing of a parent.
    mutating func keys(for record: NodeRecord, _ id: NodeID) throws(TreeError) -> ParentKeys? {
        try parentKeys(of: id == branches.memberRoot ? .trunk(.home) : record.parent)
    }

    private mutating func keepUnopened(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version
    ) throws(TreeError) {
        try leave(id)
        var row = try store.row(id) ?? NodeRow(id, parent: record.parent, name: nil, state: .unopened)
        // A record that is shown again was not listed by that.
        if row.record != text { row.scan = listing ?? row.scan }
        (row.version, row.record, row.changed) = (version, text, record.stamps.changed)
        if queue.fields(of: id).contains(.place) {
            MissingParents.add(id, record, &strayed)
        } else {
            (row.parent, row.name) = (record.parent, nil)
        }
        if !row.state.isConcealed { row.state = .unopened }
        try write(row)
    }

    /// A shown node goes below one that this device does not have yet: it is not shown until that one is, and neither
    /// is what is below it.
    private mutating func leave(_ root: NodeID) throws(TreeError) {
        guard try store.row(root)?.state == .open else { return }
        for id in try store.branch(of: root).reversed() {
            guard var row = try store.row(id), row.state == .open else { continue }
            if let (node, path) = try shown(row) { events.append(.deleted(node, path)) }
            row.state = .unopened
            try write(row)
            try Branches.keepAccepted(row, &self)
        }
    }

    /// The last good record stays; the version is the newest, so that a change of this device repairs the record.
    mutating func quarantine(
        _ fault: IntegrityFault, _ version: Version, _ text: [UInt8], reports: Bool = true
    ) throws(TreeError) {
        var row =
            try store.row(fault.node)
            ?? NodeRow(fault.node, parent: .trunk(.home), name: nil, state: .quarantined)
        if row.state == .unopened || row.state == .awaiting { row.state = .quarantined }
        (row.version, row.scan) = (version, listing ?? row.scan)
        if row.state == .quarantined {
            row.record = text
            if let record = try? NodeRecord(parsing: text, from: .server) { row.parent = record.parent }
        }
        try write(row)
        hasQuarantined = true
        try store.quarantine(fault, version, text)
        // A change of this device repairs the record.
        try stopWaiting(fault.node, version)
        if reports { try reportFault(fault) }
    }

    mutating func reportFault(_ fault: IntegrityFault) throws(TreeError) { events.append(.integrity(fault)) }

    /// Makes a genuine record the server's state of the node, and shows what local operations do not write.
    private mutating func accept(
        _ opened: OpenedNode, _ text: [UInt8], _ version: Version, _ reports: Bool
    ) throws(TreeError) {
        let id = opened.id
        guard try Letters.admit(opened, text, version, &self) else { return }
        let old = try store.row(id)
        if let operation = try sentOperation(of: opened.record, id) {
            return try confirm(operation, opened, version: version, row: old)
        }
        if old?.state.isConcealed == true { mayBeStranded = true }
        var row = old ?? NodeRow(id, parent: opened.parent, name: opened.name, state: .open)
        let before = old.map { $0.state == .open } == true ? try shown(row) : nil
        let theirs = old?.changes(to: opened, text) ?? []
        // A record that is shown again was not listed by that.
        if old?.record != text { row.scan = listing ?? row.scan }
        (row.version, row.record) = (version, text)
        row.changed = opened.record.stamps.changed ?? row.changed
        if !queue.isEmpty { try LostContents.drop(equalTo: opened, &self) }
        let mine = view(opened, in: &row)
        // While there is a cycle, a node's state cannot be known from the nodes above it.
        let isBroken = try breakCycle(through: row)
        if isBroken { row = try store.row(id) ?? row }
        row.state = try state(of: row)
        // A listing in any order may have a node below one that it has not moved away yet: the node waits for that.
        if !isBroken, try store.ancestors(of: row.parent).contains(id) { row.state = .unopened }
        if row.state == .unopened { try leave(id) }
        try write(row)
        if hasQuarantined { try store.releaseQuarantine(id) }
        try stopWaiting(id, listing == nil ? version : .max)
        keyring.keep(opened.childSecrets, of: id)
        if old?.version == 0 || queue.operations(of: id).contains(where: \.isCreation) {
            try createdElsewhere(id)
            try store.releaseKept(id)
        }
        if row.state == .unopened { return try Branches.keepAccepted(row, &self) }
        guard row.state == .open else { return try hide(row, before) }
        if !mine.contains(.place) { try clearPlace(of: row) }
        if reports { try report(row, before, theirs) }
        try meet(theirs, mine, opened, row)
    }

    /// Whether a node is shown, or removed with the branch that it is in.
    func state(of row: NodeRow) throws(TreeError) -> NodeRow.State {
        if isDeleted(row.id) { return .leaving }
        guard case .node(let id) = row.parent else { return .open }
        let above = try store.state(of: id)
        if above == .unopened || above == .quarantined || above == .awaiting { return .unopened }
        guard above?.isConcealed == true else { return .open }
        return row.state == .leaving ? .leaving : .covered
    }

    /// A node that was to be removed is shown again, with what is below it.
    mutating func uncover(_ row: NodeRow, _ node: Node, _ path: TreePath) throws(TreeError) {
        events.append(.discovered(node, path))
        for (id, record, text, version) in try uncovered(below: row.id, true) {
            try show(id, record, text, version, reports: true)
        }
    }

    /// Shows what the server has, except for what waiting operations write.
    ///
    /// - Returns: what they write.
    @discardableResult
    func view(_ opened: OpenedNode, in row: inout NodeRow) -> WriteFields {
        let mine = queue.fields(of: row.id)
        row.show(opened, except: mine)
        return mine
    }

    /// A node came into a branch that is removed here: it is removed with the rest, or shown again with what is left.
    mutating func hide(_ row: NodeRow, _ before: (node: Node, path: TreePath)?) throws(TreeError) {
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

    private mutating func report(
        _ row: NodeRow, _ before: (node: Node, path: TreePath)?, _ theirs: WriteFields
    ) throws(TreeError) {
        guard let (node, path) = try shown(row) else { return }
        guard let before else { return events.append(.discovered(node, path)) }
        if before.node.parent != node.parent || before.node.name != node.name {
            events.append(.moved(node, from: before.path, to: path))
        }
        let change = NodeChange(from: before.node, to: node)
        if !change.isEmpty { events.append(.modified(node, change, path)) }
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
