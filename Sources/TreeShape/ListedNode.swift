public import ThicketProtocol

/// A node in a list of children: `{"id":…,"v":…,"d":{…}}`, and `n` and `t` with `ChildStats`.
public struct ListedNode: Sendable, Hashable {
    /// The node.
    public var id: NodeID
    /// Its version.
    public var version: Version
    /// What the server has as its record, with stamps; in a skeleton without content inside it (`RecordData.withheld`).
    /// It is not checked: a record that is not one concerns its node alone, and not the other nodes of the page.
    public var object: JSONObject
    /// What is below it; nil when the query did not want it.
    public var stats: ChildStats?

    /// A listed node.
    public init(_ id: NodeID, version: Version, _ record: NodeRecord, stats: ChildStats? = nil) {
        (self.id, self.version, self.object, self.stats) = (id, version, record.object, stats)
    }

    /// The record, read as one of a server.
    public var record: NodeRecord {
        get throws(RecordFault) { try NodeRecord(object, from: .server) }
    }

    init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["id", "v", "d", "n", "t"])
        guard case .object(let sent) = try object.value("d") else { throw .badValue("d") }
        (id, version) = (try object.id("id"), try object.number("v", 1...TreeLimits.versionMax))
        self.object = sent
        guard object.contains("n") else {
            guard !object.contains("t") else { throw .missing("n") }
            return
        }
        let count = Int(try object.number("n", 0...TreeLimits.versionMax))
        guard object.contains("t") == (count > 0) else { throw .badValue("t") }
        stats = ChildStats(count: count, newest: count > 0 ? try object.number("t", 0...TreeLimits.timeMax) : nil)
    }

    var json: JSONValue {
        var object: JSONObject = [
            "id": .string(id.text), "v": .version(version), "d": .object(self.object),
        ]
        if let stats {
            object["n"] = .count(stats.count)
            if let newest = stats.newest { object["t"] = .number(JSONNumber(newest)) }
        }
        return .object(object)
    }
}

/// What is directly below a listed node.
public struct ChildStats: Sendable, Hashable {
    /// Number of children.
    public var count: Int
    /// Milliseconds since 1970 of the latest change of a child, as the server saw it; nil without children.
    public var newest: Int64?

    /// Number of children and time of the latest change.
    public init(count: Int, newest: Int64?) { (self.count, self.newest) = (count, newest) }
}
