import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records that the log has brought while an earlier list of their branch was in force, and that could not be judged
/// then: their authors' keys, or the record itself, were not known yet. They are judged by that list.
///
/// The order is that of the log, as for every record that is judged at once: what the log brings behind a list that
/// ends its author's rights is not here.
struct DeliveredRecords: Sendable {
    private struct Key: Hashable {
        let root: NodeID
        /// The version of the list.
        let list: Int64
    }

    private struct Record {
        let version: Version
        let key: Key
    }

    /// Records at most; further ones are judged by the newest list, which refuses some that are genuine.
    static let countMax = 1_024

    private var records = [NodeID: Record]()
    private var lists = [Key: ShareList]()

    var isEmpty: Bool { records.isEmpty }

    /// A list was replaced, before which the log has brought these records. One that is here keeps its earlier list.
    mutating func add(_ found: [NodeID: Version], under list: ShareList, of root: NodeID) {
        let key = Key(root: root, list: list.version)
        for (id, version) in found.sorted(by: { $0.key < $1.key }) where records.count < Self.countMax {
            if let known = records[id], known.version >= version { continue }
            records[id] = Record(version: version, key: key)
            lists[key] = list
        }
        drop()
    }

    /// The list that was in force when the log brought a record; nil: the newest one is.
    func list(of id: NodeID, _ version: Version, in root: NodeID) -> ShareList? {
        guard let record = records[id], version <= record.version, record.key.root == root else { return nil }
        return lists[record.key]
    }

    /// A record was judged.
    ///
    /// - Returns: whether that changes what is kept.
    mutating func end(_ id: NodeID, _ version: Version) -> Bool {
        guard let record = records[id], record.version <= version else { return false }
        records[id] = nil
        drop()
        return true
    }

    /// Lists of which no record is left.
    private mutating func drop() {
        let needed = Set(records.values.map(\.key))
        lists = lists.filter { needed.contains($0.key) }
    }

    // MARK: - The store

    /// `{"lists":{ROOT:{VERSION:list}},"nodes":{ID:[version,ROOT,VERSION]}}`; nil for none.
    var stored: String? {
        if records.isEmpty { return nil }
        var (nodes, all) = (JSONObject(), [JSONValue]())
        for (key, list) in lists.sorted(by: { ($0.key.root, $0.key.list) < ($1.key.root, $1.key.list) }) {
            all.append(["root": .string(key.root.text), "list": list.json])
        }
        for (id, record) in records.sorted(by: { $0.key < $1.key }) {
            nodes[id.text] = [
                .number(JSONNumber(record.version)), .string(record.key.root.text),
                .number(JSONNumber(record.key.list)),
            ]
        }
        return JSONValue.object(["lists": .array(all), "nodes": .object(nodes)]).serializedText
    }

    init() {}

    /// Reads what was stored; what is damaged is left out, and its records are judged by the newest list.
    init(stored: String?) {
        guard let stored, let value = try? JSONValue(parsing: Array(stored.utf8)),
            case .array(let all)? = value["lists"], case .object(let nodes)? = value["nodes"]
        else { return }
        for entry in all {
            guard let root = entry["root"]?.stringValue.flatMap(NodeID.init(text:)), let json = entry["list"],
                let list = try? ShareList(json)
            else { continue }
            lists[Key(root: root, list: list.version)] = list
        }
        for (name, value) in nodes.pairs {
            guard let id = NodeID(text: name), case .array(let parts) = value, parts.count == 3,
                case .number(let version) = parts[0], case .number(let list) = parts[2],
                let root = parts[1].stringValue.flatMap(NodeID.init(text:)), let of = Int64(list.lexeme),
                let number = Version(version.lexeme), lists[Key(root: root, list: of)] != nil
            else { continue }
            records[id] = Record(version: number, key: Key(root: root, list: of))
        }
    }
}

/// What of it the skeleton keeps, in memory and in the store.
extension DeliveredRecords {
    private static let name = "branch-delivered"

    static func read(_ store: TreeStore) throws(TreeError) -> DeliveredRecords {
        DeliveredRecords(stored: try store.namedValue(name))
    }

    /// A list is replaced: what waits for keys, for its parent, or was requested, was brought under it.
    static func keep(
        under list: ShareList, of root: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        var found = TreeChannel.wanted(stored: try skeleton.store.namedValue("wanted"))
        var waiting = skeleton.branches.waitingNodes.union(skeleton.branches.early)
        waiting.formUnion(try skeleton.store.unopened().map(\.id))
        for id in waiting where id != root {
            guard let row = try skeleton.store.row(id) else { continue }
            found[id] = max(row.version, found[id] ?? 0)
        }
        found[root] = nil
        if found.isEmpty { return }
        skeleton.branches.delivered.add(found, under: list, of: root)
        try write(&skeleton)
    }

    static func end(_ id: NodeID, _ version: Version, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard skeleton.branches.delivered.end(id, version) else { return }
        try write(&skeleton)
    }

    private static func write(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        try skeleton.store.setNamedValue(name, skeleton.branches.delivered.stored)
    }
}
