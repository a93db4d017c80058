public import ThicketProtocol

/// A question for the children of one or more nodes.
public struct ChildrenQuery: Sendable, Hashable {
    /// The order of the children.
    public enum Order: String, Sendable, Hashable {
        /// The one that changed last comes first, in the order of the server's log.
        case newest
        /// By the letters of the tag: for the same names always the same order.
        case tag
    }

    /// From 1 to `TreeLimits.childrenParentsMax` parents, each once. One that does not exist has no children.
    public var parents: [NodeParent]
    /// Nodes per parent, from 1. Times the number of parents, it is at most `TreeLimits.childrenMax`.
    public var limit: Int
    /// The order of each list.
    public var order: Order
    /// Where the list of a single parent goes on: `next` of the page before; nil for the first page.
    public var before: String?
    /// Whether content inside records is left out: `RecordData.withheld`.
    public var isSkeleton: Bool
    /// Whether each node comes with `ChildStats`.
    public var wantsStats: Bool

    /// A query, which is not checked. Without `limit`, each of the parents has an equal part of what an answer holds,
    /// at most `TreeLimits.childrenDefault`.
    public init(
        of parents: [NodeParent], limit: Int? = nil, order: Order = .newest, before: String? = nil,
        isSkeleton: Bool = false, wantsStats: Bool = false
    ) {
        let share = min(TreeLimits.childrenDefault, TreeLimits.childrenMax / max(1, parents.count))
        (self.parents, self.limit, self.order) = (parents, limit ?? share, order)
        (self.before, self.isSkeleton, self.wantsStats) = (before, isSkeleton, wantsStats)
    }

    /// Reads the body of `POST …/children`: `{"parents":[…],"limit":…,"order":…,"fields":"skeleton","stats":true}`, all
    /// but `parents` optional. Its size is checked before it is parsed.
    ///
    /// - Throws: `TreeCallFault` for every deviation.
    public init(parsing text: [UInt8]) throws(TreeCallFault) {
        let value = try CallObject.parse(text, bytesMax: TreeLimits.childrenQueryBytesMax, maxDepth: Self.depthMax)
        let object = try CallObject(value, ["parents", "limit", "order", "fields", "stats"])
        var parents = [NodeParent]()
        for element in try object.list("parents") {
            guard let parent = element.stringValue.flatMap(NodeParent.init(text:)) else { throw .badValue("parents") }
            parents.append(parent)
        }
        self.init(of: parents)
        if object.contains("limit") { limit = Int(try object.number("limit", 1...Int64(TreeLimits.childrenMax))) }
        if object.contains("order") { order = try Self.order(object.text("order")) }
        if object.contains("fields") { isSkeleton = try Self.isSkeleton(object.text("fields")) }
        if object.contains("stats") { wantsStats = try object.flag("stats") }
        try checkCounts()
    }

    /// Reads the parameters of `GET …/children?parent=…`.
    ///
    /// - Parameter parameter: returns the value of `parent`, `limit`, `order`, `before`, `fields` or `stats`; nil when
    ///   the parameter is absent.
    /// - Throws: `TreeCallFault` for every deviation.
    public init(_ parameter: (_ name: StaticString) -> String?) throws(TreeCallFault) {
        guard let text = parameter("parent") else { throw .missing("parent") }
        guard let parent = NodeParent(text: text) else { throw .badValue("parent") }
        self.init(of: [parent], before: parameter("before"))
        if let text = parameter("limit") {
            guard let number = Int(text), String(number) == text else { throw .badValue("limit") }
            limit = number
        }
        if let text = parameter("order") { order = try Self.order(text) }
        if let text = parameter("fields") { isSkeleton = try Self.isSkeleton(text) }
        switch parameter("stats") {
        case nil, "0": break
        case "1": wantsStats = true
        default: throw .badValue("stats")
        }
        try checkCounts()
    }

    /// The query and its list.
    private static let depthMax = 2

    private static func order(_ text: String) throws(TreeCallFault) -> Order {
        guard let order = Order(rawValue: text) else { throw .badValue("order") }
        return order
    }

    private static func isSkeleton(_ text: String) throws(TreeCallFault) -> Bool {
        switch text {
        case "skeleton": return true
        case "all": return false
        default: throw .badValue("fields")
        }
    }

    private func checkCounts() throws(TreeCallFault) {
        guard (1...TreeLimits.childrenParentsMax).contains(parents.count), Set(parents).count == parents.count else {
            throw .badValue("parents")
        }
        guard (1...TreeLimits.childrenMax / parents.count).contains(limit) else { throw .badValue("limit") }
    }

    /// The body of a request for many parents, in its written form.
    public var object: JSONObject {
        var object: JSONObject = ["parents": .array(parents.map { .string($0.text) }), "limit": .count(limit)]
        if order != .newest { object["order"] = .string(order.rawValue) }
        if isSkeleton { object["fields"] = "skeleton" }
        if wantsStats { object["stats"] = true }
        return object
    }

    /// The parameters of a request for the children of the first parent, in their order; no value needs an escape.
    public var parameters: String {
        var text = "parent=\(parents.first?.text ?? "")&limit=\(limit)"
        if order != .newest { text += "&order=\(order.rawValue)" }
        if let before { text += "&before=\(before)" }
        if isSkeleton { text += "&fields=skeleton" }
        if wantsStats { text += "&stats=1" }
        return text
    }
}
