public import ThicketProtocol

/// The node of the caller's tree from which a copy is made, at the version that the caller knows.
public struct CopySource: Sendable, Hashable {
    /// The node.
    public var node: NodeID
    /// Its version, from 1.
    public var version: Version

    /// A source.
    public init(_ node: NodeID, version: Version) { (self.node, self.version) = (node, version) }

    init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["id", "sv"])
        self.init(try object.id("id"), version: try object.number("sv", 1...TreeLimits.versionMax))
    }

    var json: JSONValue { ["id": .string(node.text), "sv": .version(version)] }
}

/// A new node in the tree of a receiver: `{"op":"copy","id":…,"to":…,"source":{"id":…,"sv":…},"record":{…}}`; without
/// `source` when nothing in the caller's tree is copied (decision 0067).
///
/// The record is new (`s` = 0) and has `by`, `k` and `sig`, over its canonical form in the receiver's tree. A node
/// below `inbox` has one wrapped key, the receiver's. Any other node has one under its parent's key, and its parent is
/// a node that the same batch has copied into the tree before it.
public struct TreeCopy: Sendable, Hashable {
    /// The id of the new node.
    public var node: NodeID
    /// The receiver, who owns the tree; may be the caller.
    public var receiver: UserID
    /// The node that is copied; nil for a node that the caller's tree does not have.
    public var source: CopySource?
    /// The record for the receiver.
    public var record: NodeRecord

    /// A copy, which is not checked.
    public init(_ node: NodeID, to receiver: UserID, source: CopySource? = nil, _ record: NodeRecord) {
        (self.node, self.receiver, self.source, self.record) = (node, receiver, source, record)
    }

    /// Checks what needs no tree: version, signature's presence, place and wrapped key.
    public func check() throws(BatchFault.Kind) {
        guard record.base == 0 else { throw .refusal(.otherBase) }
        guard record.signature != nil else { throw .record(.unsigned) }
        guard record.wraps.count == 1, let wrap = record.wraps.first else { throw .record(.otherReaders) }
        switch (record.parent, wrap.reader) {
        case (.trunk(.inbox), .user(receiver, _)), (.node, .parent): return
        case (.trunk(.inbox), _), (.node, _): throw .record(.otherReaders)
        case (.trunk, _): throw .refusal(.parentMissing)
        }
    }

    var json: JSONValue {
        var object: JSONObject = ["op": "copy", "id": .string(node.text), "to": .string(receiver.text)]
        object["source"] = source?.json
        object["record"] = .object(record.object)
        return .object(object)
    }
}
