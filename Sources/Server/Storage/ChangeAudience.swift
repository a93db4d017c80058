import ThicketProtocol
public import ThicketTreeShape

/// The shared branches of a tree that a logged change belongs to, by their roots (decision 0067). A change outside of
/// them has none.
public struct ChangeAudience: Hashable, Sendable {
    /// The branch that the node is in after the change; of a removed node, the one that it was in.
    public let after: NodeID?
    /// The branch that the node was in before, if it is another one now or none.
    public let left: NodeID?
    /// Whether the node was outside of `after` before: its members do not know what the change was made on.
    public let isEntry: Bool

    /// - Returns: nil for a change outside of shared branches.
    init?(_ change: BranchChange, isRemoval: Bool, isNew: Bool) {
        guard change.before != nil || change.after != nil else { return nil }
        after = isRemoval ? change.before : change.after
        left = isRemoval || change.before == change.after ? nil : change.before
        isEntry = !isRemoval && !isNew && change.after != nil && change.before != change.after
    }

    private static let afterBit: UInt8 = 1
    private static let leftBit: UInt8 = 2
    private static let entryBit: UInt8 = 4

    /// The form in the log: a byte of bits for the members, and 16 bytes for each of the roots.
    var octets: [UInt8] {
        let bits = (after == nil ? 0 : Self.afterBit) | (left == nil ? 0 : Self.leftBit) | (isEntry ? Self.entryBit : 0)
        return [bits] + (after?.octets ?? []) + (left?.octets ?? [])
    }

    /// - Returns: nil for bytes that `octets` does not give.
    init?(octets: [UInt8]) {
        guard let bits = octets.first else { return nil }
        var roots = octets.dropFirst()
        func root(_ bit: UInt8) -> NodeID? {
            guard bits & bit != 0 else { return nil }
            defer { roots = roots.dropFirst(NodeID.bytesCount) }
            return NodeID(octets: Array(roots.prefix(NodeID.bytesCount)))
        }
        (after, left) = (root(Self.afterBit), root(Self.leftBit))
        isEntry = bits & Self.entryBit != 0
        guard roots.isEmpty, after != nil || left != nil else { return nil }
    }
}

extension ChangeRecord {
    /// The change as the members of a branch get it: as it is, as a new node if it came into the branch, or as a
    /// removal if it went out. A removal of a node stands for everything below it.
    ///
    /// - Returns: nil for a change that does not belong to the branch.
    func seen(in root: NodeID) -> ChangeRecord? {
        guard let audience else { return nil }
        if audience.after == root {
            guard audience.isEntry, kind == .modify else { return self }
            // An entry is always a keyframe.
            guard let keyframe, case .object(let object)? = try? JSONValue(parsing: keyframe) else { return self }
            let all = ObjectDiff(object.pairs.map { (key: $0.key, operation: Operation.insert($0.value)) })
            var writer = JSONWriter(reservingBytes: 2 * keyframe.count)
            all.write(to: &writer)
            return with(kind, source: nil, diff: writer.bytes)
        }
        return audience.left == root ? with(.remove, source: nil, diff: []) : nil
    }

    private func with(_ kind: ChangeKind, source: Version?, diff: [UInt8]) -> ChangeRecord {
        ChangeRecord(
            gid: gid, bucket: bucket, key: key, kind: kind, sourceVersion: source, endVersion: endVersion,
            previousOfEntity: previousOfEntity, previousKeyframe: previousKeyframe, previousOfBucket: previousOfBucket,
            clientID: clientID, changeID: changeID, timestamp: timestamp, diff: diff)
    }
}
