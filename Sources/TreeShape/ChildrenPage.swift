public import ThicketProtocol

/// The answer to a `ChildrenQuery`: `{"current":…,"children":[…]}`.
public struct ChildrenPage: Sendable, Hashable {
    /// The lists contain every change up to this position, and perhaps later ones. A device that follows the log from
    /// here misses nothing; it ignores changes to versions that it has.
    public var current: ChangeVersion
    /// One list for each parent, in the order of the query.
    public var lists: [ChildList]

    /// A page.
    public init(current: ChangeVersion, _ lists: [ChildList]) { (self.current, self.lists) = (current, lists) }

    /// Reads the body of an answer.
    ///
    /// - Throws: `TreeCallFault` for every deviation; the records are not read (`ListedNode.record`).
    public init(parsing text: [UInt8]) throws(TreeCallFault) {
        let value = try CallObject.parse(text, bytesMax: Self.bytesMax, maxDepth: Self.depthMax)
        let object = try CallObject(value, ["current", "children"])
        var lists = [ChildList]()
        for list in try object.list("children") { lists.append(try ChildList(list)) }
        self.init(current: try object.position("current"), lists)
    }

    /// Bytes of an answer: a page, and the first node of each list, which comes in any case.
    public static let bytesMax: Int =
        TreeLimits.childrenBytesMax + (TreeLimits.childrenParentsMax + 1) * TreeLimits.recordBytesMax * 2
    /// Page, lists, list, nodes, node, and a record.
    private static let depthMax: Int = 5 + TreeLimits.jsonDepthMax

    /// The page as JSON, in its written form.
    public var object: JSONObject {
        ["current": .string(current.text), "children": .array(lists.map(\.json))]
    }
}

/// A page of the children of one node or trunk: `{"parent":…,"nodes":[…],"next":…}`.
public struct ChildList: Sendable, Hashable {
    /// The parent.
    public var parent: NodeParent
    /// Its children, in the order of the query.
    public var nodes: [ListedNode]
    /// `before` for the next page; nil when this is the last one.
    public var next: String?

    /// A list.
    public init(of parent: NodeParent, _ nodes: [ListedNode], next: String?) {
        (self.parent, self.nodes, self.next) = (parent, nodes, next)
    }

    init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["parent", "nodes", "next"])
        guard let parent = NodeParent(text: try object.text("parent")) else { throw .badValue("parent") }
        var nodes = [ListedNode]()
        for node in try object.list("nodes") { nodes.append(try ListedNode(node)) }
        self.init(of: parent, nodes, next: object.contains("next") ? try object.text("next") : nil)
    }

    var json: JSONValue {
        var object: JSONObject = ["parent": .string(parent.text), "nodes": .array(nodes.map(\.json))]
        if let next { object["next"] = .string(next) }
        return .object(object)
    }
}
