import ThicketProtocol
import ThicketTreeShape

/// A change of a tree whose form has been checked: it replaces, creates or removes one node (decision 0093).
struct TreeChange: Sendable {
    enum Action: Sendable {
        /// `d`: the whole record.
        case whole(NodeRecord)
        /// `v`: members to set or remove in the current record. What results is not checked yet.
        case members([(key: String, value: JSONValue?)])
        /// `-`.
        case removal
    }

    let node: NodeID
    let action: Action

    /// A change that an operation of a batch makes.
    init(_ action: Action, of node: NodeID) { (self.action, self.node) = (action, node) }

    /// Checks the key and everything that does not depend on the node's state.
    init(_ change: CheckedChange) throws(ChangeRejection) {
        // What follows from such a ccid, `tx`, must be true.
        guard BatchMark(ccid: change.changeID.text) == nil else { throw ChangeRejection(TreeRefusal.batchChangeID) }
        // The key of an `EMPTY` is the bucket's own name.
        if case .empty = change.intent { throw ChangeRejection(TreeRefusal.wholeTree) }
        do throws(TreeRefusal) { node = try TreeCheck.node(of: change.key.text) } catch {
            throw ChangeRejection(error)
        }
        switch change.intent {
        case .remove: action = .removal
        case .modify(nil, .object(let sent)?): action = .whole(try Self.record(sent))
        case .modify(let sent?, nil): action = .members(try Self.members(sent))
        case .modify, .empty: throw ChangeRejection(TreeRefusal.badChange)
        }
    }

    private static func record(_ sent: JSONFragment) throws(ChangeRejection) -> NodeRecord {
        try checkSize(sent)
        guard let object = sent.object else { throw ChangeRejection(TreeRefusal.badChange) }
        do throws(RecordFault) { return try NodeRecord(object, from: .device) } catch { throw ChangeRejection(error) }
    }

    /// Differences inside values are refused: ciphertext has none that mean anything (treesystem 4.2, rule 2).
    private static func members(_ sent: JSONFragment) throws(ChangeRejection) -> [(key: String, value: JSONValue?)] {
        try checkSize(sent)
        guard let diff = try? ObjectDiff(sent) else { throw ChangeRejection(TreeRefusal.badChange) }
        var members = [(key: String, value: JSONValue?)]()
        for (key, operation) in diff.operations {
            switch operation {
            case .insert(let value), .replace(let value): members.append((key, value))
            case .remove: members.append((key, nil))
            case .increment, .object, .list, .listText, .text: throw ChangeRejection(TreeRefusal.badChange)
            }
        }
        return members
    }

    /// A text that is too long even if every byte is an escape is not parsed. The operations of a `v` take less than
    /// the record's members again.
    private static func checkSize(_ sent: JSONFragment) throws(ChangeRejection) {
        guard case .node(let node) = sent else { return }
        let bytesMax = 2 * TreeLimits.recordBytesMax * Limits.jsonEscapeBytesMax
        guard node.rawBytes.count <= bytesMax else { throw ChangeRejection(RecordFault.tooLarge) }
    }

    /// The record after the change.
    ///
    /// - Parameter current: the stored record without stamps; nil for a new node.
    func record(onto current: JSONObject?) throws(ChangeRejection) -> NodeRecord {
        switch action {
        case .whole(let record): return record
        case .removal: throw ChangeRejection(TreeRefusal.badChange)
        case .members(let members):
            var object = current ?? JSONObject()
            for (key, value) in members {
                if let value {
                    object[key] = value
                } else if object.remove(key) == nil {
                    throw ChangeRejection(TreeRefusal.badChange)
                }
            }
            do throws(RecordFault) { return try NodeRecord(object, from: .device) } catch {
                throw ChangeRejection(error)
            }
        }
    }
}
