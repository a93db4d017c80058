public import ThicketProtocol

/// The removal of a node together with what is below it, as far as the sender knows it (feature T10).
///
/// A node is *known* when `known` lists it or when it is the root of the removal. It is *outdated* when it is known
/// with another version than the current one. The removal keeps outdated and unknown nodes unless it includes them, and
/// with each node that it keeps all nodes between it and the root, which is then kept too.
public struct BranchRemoval: Sendable, Hashable {
    /// The root of the branch.
    public var node: NodeID
    /// The version of the root that the sender knows, from 1.
    public var source: Version
    /// The nodes below the root that the sender knows, with their versions.
    public var known: [NodeID: Version]
    /// Whether outdated nodes are removed too.
    public var includesOutdated: Bool
    /// Whether unknown nodes are removed too.
    public var includesUnknown: Bool

    /// A removal, which is not checked.
    public init(
        _ node: NodeID, source: Version, known: [NodeID: Version] = [:], includesOutdated: Bool = false,
        includesUnknown: Bool = false
    ) {
        (self.node, self.source, self.known) = (node, source, known)
        (self.includesOutdated, self.includesUnknown) = (includesOutdated, includesUnknown)
    }

    /// Whether a node of the branch is removed, if everything below it is.
    ///
    /// - Parameters:
    ///   - other: the node.
    ///   - current: its version.
    public func removes(_ other: NodeID, at current: Version) -> Bool {
        guard let version = other == node ? source : known[other] else { return includesUnknown }
        return version == current || includesOutdated
    }

    static let members: Set<String> = ["op", "id", "sv", "known", "outdated", "unknown"]

    init(_ object: CallObject, _ node: NodeID) throws(TreeCallFault) {
        self.init(
            node, source: try object.number("sv", 1...TreeLimits.versionMax), known: try Self.known(object),
            includesOutdated: try object.flag("outdated"), includesUnknown: try object.flag("unknown"))
    }

    private static func known(_ object: CallObject) throws(TreeCallFault) -> [NodeID: Version] {
        guard object.contains("known") else { return [:] }
        guard case .object(let listed) = try object.value("known"), !listed.isEmpty else { throw .badValue("known") }
        var known = [NodeID: Version](minimumCapacity: listed.count)
        for (key, value) in listed.pairs {
            guard let node = NodeID(text: key), let version = CallObject.number(value, 1...TreeLimits.versionMax) else {
                throw .badValue("known")
            }
            known[node] = version
        }
        return known
    }

    var json: JSONValue {
        var object: JSONObject = ["op": "deleteTree", "id": .string(node.text), "sv": .version(source)]
        if !known.isEmpty {
            let listed = known.sorted { $0.key < $1.key }
            object["known"] = .object(JSONObject(listed.map { (key: $0.key.text, value: .version($0.value)) }))
        }
        object["outdated"] = .bool(includesOutdated)
        object["unknown"] = .bool(includesUnknown)
        return .object(object)
    }
}
