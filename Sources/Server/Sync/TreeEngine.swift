import ThicketProtocol
import ThicketTreeShape

/// Decides one change of a tree against the node's newest state and a view of the tree; performs no I/O.
///
/// Nothing is merged: a change is accepted only on the current version, and the record that it makes is stored as a
/// whole, with the server's stamps.
struct TreeEngine {
    /// Maximum bytes of a stored object as compact JSON, if an operator has set it below that of records.
    let documentBytesMax: Int
    /// Version before the first version of a key that never existed (raised by restores).
    let versionBase: Version
    /// Milliseconds since 1970.
    let now: Int64

    /// - Parameters:
    ///   - source: `sv`; nil for a new node.
    ///   - state: newest state; nil when the key never existed.
    ///   - sender: the account that has sent or created the node, if it is not the owner of the tree; nil: the one
    ///     that is known.
    func decide<View: TreeView>(
        _ change: TreeChange, source: Version?, state: ObjectState?, in tree: View, from sender: UserID? = nil
    ) throws(View.Failure) -> ChangeEngine.Outcome {
        if case .removal = change.action { return try removal(change, source: source, state: state, in: tree) }
        let source = source ?? 0
        if let refusal = try TreeCheck.refusal(ofReplacing: source, at: change.node, in: tree) {
            return .failure(ChangeRejection(refusal))
        }
        let live = state.flatMap { $0.isDeleted ? nil : $0 }
        let record: NodeRecord
        do throws(ChangeRejection) { record = try change.record(onto: live.map { Self.unstamped($0.value) }) } catch {
            return .failure(error)
        }
        if let refusal = try TreeCheck.refusal(of: record, at: change.node, replacing: source, in: tree) {
            return .failure(ChangeRejection(refusal))
        }
        return stored(record, replacing: live, after: state?.version ?? versionBase, from: sender)
    }

    private func removal<View: TreeView>(
        _ change: TreeChange, source: Version?, state: ObjectState?, in tree: View
    ) throws(View.Failure) -> ChangeEngine.Outcome {
        guard let state else { return .failure(ChangeRejection(TreeRefusal.nodeMissing)) }
        guard !state.isDeleted else { return .failure(ChangeRejection(.emptyChange, "already removed")) }
        if let refusal = try TreeCheck.refusal(ofRemoving: change.node, at: source ?? 0, in: tree) {
            return .failure(ChangeRejection(refusal))
        }
        return .success(.removal(of: state))
    }

    private static func unstamped(_ object: JSONObject) -> JSONObject {
        var object = object
        for stamp: RecordKey in [.changed, .created, .sender] { object.remove(stamp.rawValue) }
        return object
    }

    /// - Parameter live: the state that is replaced; nil for a new node.
    private func stored(
        _ record: NodeRecord, replacing live: ObjectState?, after version: Version, from sender: UserID?
    ) -> ChangeEngine.Outcome {
        let before = live?.value
        var record = record
        let now = max(0, min(now, TreeLimits.timeMax))
        record.stamps = RecordStamps(
            changed: now, created: before?[RecordKey.created.rawValue]?.intValue ?? now,
            sender: sender ?? Self.keptSender(of: before, in: record))
        let object = record.object
        let size = object.serializedSize
        guard size <= max(documentBytesMax, live?.size ?? 0) else {
            return .failure(ChangeRejection(RecordFault.tooLarge))
        }
        return .success(
            Decision(
                isRemoval: false, source: live?.version, edit: .value(Self.diff(from: before, to: object)),
                state: ObjectState(version: version + 1, isDeleted: false, value: object, size: size)))
    }

    /// The sender of a node stays known while its owner leaves it at its place, and is forgotten with a move.
    private static func keptSender(of before: JSONObject?, in record: NodeRecord) -> UserID? {
        guard let before, before[RecordKey.parent.rawValue]?.stringValue == record.parent.text,
            let sender = before[RecordKey.sender.rawValue]?.stringValue
        else { return nil }
        return try? UserID(sender)
    }

    /// Whole members only: a text difference of ciphertext would be as long as the text.
    private static func diff(from before: JSONObject?, to after: JSONObject) -> ObjectDiff {
        var operations = [(key: String, operation: Operation)]()
        for (key, value) in after.pairs {
            guard let old = before?[key] else {
                operations.append((key, .insert(value)))
                continue
            }
            if old != value { operations.append((key, .replace(value))) }
        }
        for key in before?.keys ?? [] where !after.contains(key) { operations.append((key, .remove)) }
        return ObjectDiff(operations)
    }
}
