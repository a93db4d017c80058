public import ThicketProtocol

/// One operation of a batch.
public enum TreeOperation: Sendable, Hashable {
    /// Writes a node: `{"op":"put","id":…,"sv":…,"record":{…}}`. `source` is the version that is replaced, 0 for a new
    /// node; the record's `s` is the same number.
    case put(NodeID, source: Version, NodeRecord)
    /// Removes a node without children: `{"op":"delete","id":…,"sv":…}`. `source` is its version, from 1.
    case delete(NodeID, source: Version)
    /// Removes a branch: `{"op":"deleteTree","id":…,"sv":…,"known":{id:version},"outdated":…,"unknown":…}`; without
    /// `known` when nothing below the root is known.
    case deleteTree(BranchRemoval)
    /// Writes a new node into the tree of a receiver: `{"op":"copy",…}`.
    case copy(TreeCopy)
    /// Removes a node with its branch from a receiver's inbox: `{"op":"burn","id":…,"to":…}`. The node is still there,
    /// and the caller has sent it.
    case burn(NodeID, to: UserID)

    /// The receiver whose tree is changed; nil for the caller's own tree.
    public var receiver: UserID? {
        switch self {
        case .put, .delete, .deleteTree: nil
        case .copy(let copy): copy.receiver
        case .burn(_, let receiver): receiver
        }
    }

    /// The node that is written or removed, or the root of the branch.
    public var node: NodeID {
        switch self {
        case .put(let node, _, _), .delete(let node, _): node
        case .deleteTree(let branch): branch.node
        case .copy(let copy): copy.node
        case .burn(let node, _): node
        }
    }

    /// Nodes that the operation lists in `known`.
    var knownCount: Int { if case .deleteTree(let branch) = self { branch.known.count } else { 0 } }

    private static let putMembers: Set<String> = ["op", "id", "sv", "record"]
    private static let deleteMembers: Set<String> = ["op", "id", "sv"]
    private static let copyMembers: Set<String> = ["op", "id", "to", "source", "record"]
    private static let burnMembers: Set<String> = ["op", "id", "to"]

    /// Reads an operation in its written form.
    ///
    /// - Throws: `BatchFault.Kind` for every deviation.
    public init(parsing text: [UInt8]) throws(BatchFault.Kind) {
        let value = try Self.formed { () throws(TreeCallFault) in
            try CallObject.parse(text, bytesMax: TreeLimits.batchBytesMax, maxDepth: TreeLimits.batchDepthMax)
        }
        try self.init(value)
    }

    init(_ value: JSONValue) throws(BatchFault.Kind) {
        guard case .object(let object) = value else { throw .form(.notObject) }
        switch object["op"]?.stringValue {
        case "put": self = try Self.put(value)
        case "delete":
            let (object, node) = try Self.opened(value, Self.deleteMembers)
            self = .delete(
                node,
                source: try Self.formed { () throws(TreeCallFault) in
                    try object.number("sv", 1...TreeLimits.versionMax)
                })
        case "deleteTree":
            let (object, node) = try Self.opened(value, BranchRemoval.members)
            self = .deleteTree(try Self.formed { () throws(TreeCallFault) in try BranchRemoval(object, node) })
        case "copy": self = try Self.copy(value)
        case "burn":
            let (object, node) = try Self.opened(value, Self.burnMembers)
            self = .burn(node, to: try Self.formed { () throws(TreeCallFault) in try object.user("to") })
        default: throw .form(.badValue("op"))
        }
    }

    private static func put(_ value: JSONValue) throws(BatchFault.Kind) -> TreeOperation {
        let (object, node) = try opened(value, putMembers)
        let (source, sent) = try formed { () throws(TreeCallFault) in
            (try object.number("sv", 0...TreeLimits.versionMax), try object.value("record"))
        }
        return .put(node, source: source, try record(sent))
    }

    private static func copy(_ value: JSONValue) throws(BatchFault.Kind) -> TreeOperation {
        let (object, node) = try opened(value, copyMembers)
        let (receiver, source, sent) = try formed { () throws(TreeCallFault) in
            let source = object.contains("source") ? try CopySource(object.value("source")) : nil
            return (try object.user("to"), source, try object.value("record"))
        }
        let copy = TreeCopy(node, to: receiver, source: source, try record(sent))
        try copy.check()
        return .copy(copy)
    }

    private static func record(_ sent: JSONValue) throws(BatchFault.Kind) -> NodeRecord {
        guard case .object(let record) = sent else { throw .form(.badValue("record")) }
        do throws(RecordFault) { return try NodeRecord(record, from: .device) } catch { throw .record(error) }
    }

    /// The members, and the node that `id` names.
    private static func opened(
        _ value: JSONValue, _ members: Set<String>
    ) throws(BatchFault.Kind) -> (CallObject, NodeID) {
        let (object, key) = try formed { () throws(TreeCallFault) in
            let object = try CallObject(value, members)
            return (object, try object.text("id"))
        }
        do throws(TreeRefusal) { return (object, try TreeCheck.node(of: key)) } catch { throw .refusal(error) }
    }

    private static func formed<Value>(
        _ body: () throws(TreeCallFault) -> Value
    ) throws(BatchFault.Kind) -> Value {
        do throws(TreeCallFault) { return try body() } catch { throw .form(error) }
    }

    /// The operation as JSON, in its written form.
    public var json: JSONValue {
        switch self {
        case .put(let node, let source, let record):
            ["op": "put", "id": .string(node.text), "sv": .version(source), "record": .object(record.object)]
        case .delete(let node, let source): ["op": "delete", "id": .string(node.text), "sv": .version(source)]
        case .deleteTree(let branch): branch.json
        case .copy(let copy): copy.json
        case .burn(let node, let receiver):
            ["op": "burn", "id": .string(node.text), "to": .string(receiver.text)]
        }
    }
}
