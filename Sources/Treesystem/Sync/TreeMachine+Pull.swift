import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Changes of the server: from the log, from listings, and single nodes that were requested.
extension TreeMachine {
    /// A change of the log. It is applied if it continues the version that this device has; a change that was applied
    /// before is ignored, and for one that does not fit the whole record is requested.
    mutating func apply(_ change: AppliedChange) throws(TreeError) {
        guard let id = NodeID(text: change.key.text) else {
            return try skeleton.reportFault(
                IntegrityFault(NodeID(0), .form, "a change of something that is not a node"))
        }
        let row = try store.row(id)
        guard change.operation == .modify else { return try removed(id, at: change.ev) }
        let known = row?.version ?? 0
        if row == nil, skeleton.isLazy { return try applyUnknown(change, id) }
        if change.ev <= known { return try LateStamps.add(change, to: row, &skeleton) }
        guard (change.sv ?? 0) == known, let diff = change.diff.flatMap({ try? ObjectDiff($0) }),
            let base = try base(id, row), let object = try? JSONDiff.applyWhole(diff, to: base)
        else { return try want(id, change.ev) }
        try received(id, object, version: change.ev)
    }

    /// A change of a node that a lazy skeleton does not have. It counts only if the node is, or may be, below a place
    /// whose list is known or being read; all other places are listed when they are opened.
    private mutating func applyUnknown(_ change: AppliedChange, _ id: NodeID) throws(TreeError) {
        guard let diff = change.diff.flatMap({ try? ObjectDiff($0) }) else { return try want(id, change.ev) }
        guard (change.sv ?? 0) == 0, let object = try? JSONDiff.applyWhole(diff, to: JSONObject()) else {
            if channel.wanted[id] != nil { return try want(id, change.ev) }
            // The parent is known from the record only.
            let parent = change.diff?.value.objectValue?["p"]?.objectValue?["v"]?.stringValue
            if let parent, try !isExpected(["p": .string(parent)]) { return }
            guard parent != nil || !lists.parents.isEmpty else { return }
            return try want(id, change.ev)
        }
        guard try isExpected(object) else { return }
        try received(id, object, version: change.ev)
        // All children of a new node come with the log.
        if try store.row(id)?.version == change.ev { try BranchChannel.entered(id, change.ev, &self) }
    }

    /// Whether a record is below a place whose list is known or being read.
    func isExpected(_ object: JSONObject) throws(TreeError) -> Bool {
        guard skeleton.isLazy else { return true }
        guard let parent = object["p"]?.stringValue.flatMap(NodeParent.init(text:)) else { return true }
        if lists.contains(parent) { return true }
        return try isListed(parent)
    }

    /// What a change of the log applies to; nil while the newest record is quarantined: what was sent as the record may
    /// not be what the server has.
    private func base(_ id: NodeID, _ row: NodeRow?) throws(TreeError) -> JSONObject? {
        if skeleton.hasQuarantined, try store.quarantined(id) != nil { return nil }
        guard let text = row?.record, let object = (try? JSONValue(parsing: text))?.objectValue else {
            return JSONObject()
        }
        return object
    }

    /// A record of the server that is newer than what this device has.
    mutating func received(_ id: NodeID, _ object: JSONObject, version: Version) throws(TreeError) {
        if channel.wanted[id] != nil { try wantNoMore(id) }
        let text = object.serialized()
        let record: NodeRecord
        do throws(RecordFault) { record = try NodeRecord(object, from: .server) } catch {
            return try skeleton.quarantine(IntegrityFault(id, .form, error.description), version, text)
        }
        try skeleton.show(id, record, text, version, reports: true)
    }

    /// The server has removed a node.
    mutating func removed(_ id: NodeID, at version: Version) throws(TreeError) {
        if channel.wanted[id] != nil { try wantNoMore(id) }
        lists.addRemoval(id, version)
        try BranchChannel.removed(id, &self)
        try skeleton.removed(id, at: version)
    }

    // MARK: - Nodes whose newest record is requested

    mutating func want(_ id: NodeID, _ version: Version) throws(TreeError) {
        skeleton.hasWritten = true
        guard channel.wanted.count < TreeChannel.wantedMax else {
            channel.wanted = [:]
            try store.setNamedValue("wanted", channel.storedWanted)
            return try scanAgain()
        }
        channel.wanted[id] = max(version, channel.wanted[id] ?? 0)
        try store.setNamedValue("wanted", channel.storedWanted)
        ask(id)
    }

    mutating func wantNoMore(_ id: NodeID) throws(TreeError) {
        skeleton.hasWritten = true
        channel.wanted[id] = nil
        try store.setNamedValue("wanted", channel.storedWanted)
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
