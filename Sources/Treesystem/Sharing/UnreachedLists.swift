import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Lists of this device that the server has confirmed and that the log has not brought yet. What the log brings until
/// then was written under the list before, and is judged by that too.
struct UnreachedLists {
    private struct Entry {
        /// The version that the root has with the newest list of this device.
        var version: Version
        /// The list that was in force before.
        let earlier: ShareList
    }

    private var entries = [NodeID: Entry]()

    init() {}

    /// The list that is in force for what the log brings now; nil: the newest one.
    func list(of root: NodeID) -> ShareList? { entries[root]?.earlier }

    /// The server has made a list of this device the root's version.
    mutating func add(_ root: NodeID, _ version: Version, after earlier: ShareList) {
        entries[root] = Entry(version: version, earlier: entries[root]?.earlier ?? earlier)
    }

    /// The log has brought a version of a root.
    ///
    /// - Returns: the list that was in force until now, if another one is from here on.
    mutating func reach(_ root: NodeID, _ version: Version) -> ShareList? {
        guard let entry = entries[root], version >= entry.version else { return nil }
        entries[root] = nil
        return entry.earlier
    }

    // MARK: - The store

    /// `[{"root":ID,"version":N,"list":list}]`; nil for none.
    var stored: String? {
        if entries.isEmpty { return nil }
        let all = entries.sorted { $0.key < $1.key }.map { (root, entry) -> JSONValue in
            ["root": .string(root.text), "version": .number(JSONNumber(entry.version)), "list": entry.earlier.json]
        }
        return JSONValue.array(all).serializedText
    }

    /// Reads what was stored; what is damaged is left out.
    init(stored: String?) {
        guard let stored, case .array(let all)? = try? JSONValue(parsing: Array(stored.utf8)) else { return }
        for value in all {
            guard let root = value["root"]?.stringValue.flatMap(NodeID.init(text:)), let json = value["list"],
                case .number(let number)? = value["version"], let version = Version(number.lexeme),
                let list = try? ShareList(json)
            else { continue }
            entries[root] = Entry(version: version, earlier: list)
        }
    }
}

/// What of it the skeleton keeps, in memory and in the store.
extension UnreachedLists {
    private static let name = "branch-unreached"

    static func read(_ store: TreeStore) throws(TreeError) -> UnreachedLists {
        UnreachedLists(stored: try store.namedValue(name))
    }

    static func confirmed(
        _ root: NodeID, _ version: Version, after earlier: ShareList, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        skeleton.branches.unreached.add(root, version, after: earlier)
        try write(&skeleton)
    }

    static func reached(_ root: NodeID, _ version: Version, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard let earlier = skeleton.branches.unreached.reach(root, version) else { return }
        try DeliveredRecords.keep(under: earlier, of: root, &skeleton)
        try write(&skeleton)
    }

    private static func write(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        try skeleton.store.setNamedValue(name, skeleton.branches.unreached.stored)
    }
}
