import ThicketProtocol
import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// Order of the children of a node.
public enum ChildOrder: Sendable, Hashable {
    /// By folded name.
    case name
    /// The last changed first, by the server's clock; nodes that are not uploaded by this device's.
    case newestFirst
}

extension TreeStore {
    package func row(_ id: NodeID) throws(TreeError) -> NodeRow? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT \(NodeRow.columns) FROM node WHERE id = ?1").bind(1, id.octets)
                .first { NodeRow($0) } ?? nil
        }
    }

    package func write(_ row: NodeRow) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            let statement = try database.statement(
                """
                INSERT INTO node (\(NodeRow.columns), fold)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
                ON CONFLICT (id) DO UPDATE SET (\(NodeRow.columns), fold) =
                (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
                """)
            row.bind(to: statement)
            try statement.run()
        }
        if row.state != .open { hid() }
        links[row.id] = NodeLink(parent: row.parent, name: row.name, state: row.state)
    }

    /// Notes that a listing had a node.
    package func setScan(_ scan: Int64, of id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("UPDATE node SET scan = ?2 WHERE id = ?1").bind(1, id.octets).bind(2, scan).run()
        }
    }

    /// Remembers that the server had a node that is created again.
    package func keep(_ id: NodeID, _ secret: [UInt8]) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO kept (id, secret) VALUES (?1, ?2)").bind(1, id.octets)
                .bind(2, secret).run()
        }
    }

    /// What is kept of a node that the server had; nil for a node that it never had.
    package func kept(_ id: NodeID) throws(TreeError) -> [UInt8]? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT secret FROM kept WHERE id = ?1").bind(1, id.octets).first { $0.bytes(0) }
        }
    }

    /// The node is at the server again, or gone here too.
    package func releaseKept(_ id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM kept WHERE id = ?1").bind(1, id.octets).run()
        }
    }

    package func removeRow(_ id: NodeID) throws(TreeError) {
        links.remove(id)
        try sql { (database) throws(SQLiteError) in
            for query in [
                "DELETE FROM node WHERE id = ?1", "DELETE FROM quarantine WHERE id = ?1",
                "DELETE FROM kept WHERE id = ?1", "DELETE FROM awaiting WHERE node = ?1",
            ] {
                try database.statement(query).bind(1, id.octets).run()
            }
        }
    }

    /// The shown nodes with this name below a parent: one, except for a moment while changes of the server arrive.
    package func rows(at place: Place) throws(TreeError) -> [NodeRow] {
        try rows(
            """
            SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 AND fold = ?2 AND state = 0
            ORDER BY version DESC, id
            """
        ) { $0.bind(1, place.parent.stored).bind(2, place.folded) }
    }

    /// - Parameters:
    ///   - offset: rows to leave out.
    ///   - limit: rows at most.
    package func children(
        of parent: NodeParent, order: ChildOrder, offset: Int, limit: Int
    ) throws(TreeError) -> [NodeRow] {
        let query =
            switch order {
            case .name: "SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 AND state = 0 ORDER BY fold, id"
            case .newestFirst:
                "SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 AND state = 0 ORDER BY changed DESC, id"
            }
        return try rows(query + " LIMIT ?2 OFFSET ?3") {
            $0.bind(1, parent.stored).bind(2, Int64(limit)).bind(3, Int64(offset))
        }
    }

    /// All rows below a parent, whatever their state.
    package func allChildren(of parent: NodeParent) throws(TreeError) -> [NodeRow] {
        try rows("SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 ORDER BY id") { $0.bind(1, parent.stored) }
    }

    /// The rows below a parent that are not shown: those that wait for their parent, are quarantined, or are removed
    /// here. The condition is that of the index.
    package func hiddenChildren(of parent: NodeParent) throws(TreeError) -> [NodeRow] {
        guard mayHaveHidden else { return [] }
        return try rows("SELECT \(NodeRow.columns) FROM node WHERE parent = ?1 AND state <> 0 ORDER BY id") {
            $0.bind(1, parent.stored)
        }
    }

    package func hasChildren(_ parent: NodeParent) throws(TreeError) -> Bool {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT 1 FROM node WHERE parent = ?1 AND state = 0 LIMIT 1")
                .bind(1, parent.stored).first { _ in true } ?? false
        }
    }

    /// The folded names below a parent.
    package func names(below parent: NodeParent) throws(TreeError) -> Set<[UInt8]> {
        try sql { (database) throws(SQLiteError) in
            var names = Set<[UInt8]>()
            try database.statement("SELECT fold FROM node WHERE parent = ?1 AND state = 0 AND fold IS NOT NULL")
                .bind(1, parent.stored).forEach { names.insert($0.bytes(0)) }
            return names
        }
    }

    /// Nodes that the server had and that the listing with this number did not have.
    package func unlisted(scan: Int64) throws(TreeError) -> [NodeID] {
        try sql { (database) throws(SQLiteError) in
            var ids = [NodeID]()
            try database.statement("SELECT id FROM node WHERE version > 0 AND scan <> ?1 ORDER BY id")
                .bind(1, scan).forEach { if let id = NodeID(octets: $0.bytes(0)) { ids.append(id) } }
            return ids
        }
    }

    /// Shown nodes whose parent does not exist or is not shown; none, except within a turn.
    package func orphans() throws(TreeError) -> [NodeID] {
        try sql { (database) throws(SQLiteError) in
            var ids = [NodeID]()
            try database.statement(
                """
                SELECT id FROM node WHERE state = 0 AND length(parent) = 16
                    AND parent NOT IN (SELECT id FROM node WHERE state = 0)
                """
            ).forEach { if let id = NodeID(octets: $0.bytes(0)) { ids.append(id) } }
            return ids
        }
    }

    /// Nodes that are concealed as part of a branch that is removed here, although their parent is not concealed: the
    /// roots of removals that wait, and nodes that must be shown again.
    package func stranded() throws(TreeError) -> [NodeID] {
        try sql { (database) throws(SQLiteError) in
            var ids = [NodeID]()
            try database.statement(
                """
                SELECT id FROM node WHERE state <> 0 AND state IN (3, 4)
                    AND parent NOT IN (SELECT id FROM node WHERE state <> 0 AND state IN (3, 4))
                """
            ).forEach { if let id = NodeID(octets: $0.bytes(0)) { ids.append(id) } }
            return ids
        }
    }

    /// Nodes that wait for their parent, with the records of the server.
    package func unopened() throws(TreeError) -> [(id: NodeID, record: [UInt8])] {
        try sql { (database) throws(SQLiteError) in
            var rows = [(id: NodeID, record: [UInt8])]()
            try database.statement(
                "SELECT id, record FROM node WHERE state <> 0 AND state = 1 AND version > 0 ORDER BY id"
            ).forEach { if let id = NodeID(octets: $0.bytes(0)) { rows.append((id, $0.bytes(1))) } }
            return rows
        }
    }

    /// Nodes that wait for their parent and that operations put below another one, with the records of the server.
    package func strayed() throws(TreeError) -> [(id: NodeID, record: [UInt8])] {
        try sql { (database) throws(SQLiteError) in
            var rows = [(id: NodeID, record: [UInt8])]()
            try database.statement(
                """
                SELECT node.id, node.record FROM operation JOIN node ON node.id = operation.node
                WHERE operation.to_parent IS NOT NULL AND node.state = 1 AND node.version > 0
                """
            ).forEach { if let id = NodeID(octets: $0.bytes(0)) { rows.append((id, $0.bytes(1))) } }
            return rows
        }
    }

    /// Whether a lazy skeleton has all children of a place.
    package func isListed(_ parent: NodeParent) throws(TreeError) -> Bool {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT 1 FROM listed WHERE parent = ?1").bind(1, parent.stored)
                .first { _ in true } ?? false
        }
    }

    package func setListed(_ parent: NodeParent, _ isListed: Bool) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            let query =
                isListed ? "INSERT OR IGNORE INTO listed (parent) VALUES (?1)" : "DELETE FROM listed WHERE parent = ?1"
            try database.statement(query).bind(1, parent.stored).run()
        }
    }

    package func listedParents() throws(TreeError) -> [NodeParent] {
        try sql { (database) throws(SQLiteError) in
            var parents = [NodeParent]()
            try database.statement("SELECT parent FROM listed ORDER BY length(parent), parent").forEach {
                if let parent = NodeParent(stored: $0.bytes(0)) { parents.append(parent) }
            }
            return parents
        }
    }

    /// Nodes that the server does not have and no operation creates.
    package func unsent() throws(TreeError) -> [NodeID] {
        try sql { (database) throws(SQLiteError) in
            var ids = [NodeID]()
            try database.statement(
                "SELECT id FROM node WHERE version = 0 AND id NOT IN (SELECT node FROM operation)"
            ).forEach { if let id = NodeID(octets: $0.bytes(0)) { ids.append(id) } }
            return ids
        }
    }

    /// How many nodes are shown.
    package func shownCount() throws(TreeError) -> Int {
        Int(
            try sql { (database) throws(SQLiteError) in
                try database.integer("SELECT count(*) FROM node WHERE state = 0") ?? 0
            })
    }

    private func rows(_ query: String, _ bind: (Statement) -> Void) throws(TreeError) -> [NodeRow] {
        try sql { (database) throws(SQLiteError) in
            var rows = [NodeRow]()
            let statement = try database.statement(query)
            bind(statement)
            try statement.forEach { if let row = NodeRow($0) { rows.append(row) } }
            return rows
        }
    }

    // MARK: - Quarantine

    /// The newest record of a node that did not open.
    package func quarantined(_ id: NodeID) throws(TreeError) -> [UInt8]? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT record FROM quarantine WHERE id = ?1").bind(1, id.octets)
                .first { $0.bytes(0) }
        }
    }

    /// The quarantined records with a kind of fault, in the order of ids.
    package func quarantined(_ kind: IntegrityFault.Kind) throws(TreeError) -> [(id: NodeID, record: [UInt8])] {
        try sql { (database) throws(SQLiteError) in
            var rows = [(id: NodeID, record: [UInt8])]()
            try database.statement("SELECT id, record FROM quarantine WHERE kind = ?1 ORDER BY id")
                .bind(1, kind.rawValue)
                .forEach { if let id = NodeID(octets: $0.bytes(0)) { rows.append((id, $0.bytes(1))) } }
            return rows
        }
    }

    package func hasQuarantined() throws(TreeError) -> Bool {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT 1 FROM quarantine LIMIT 1").first { _ in true } ?? false
        }
    }

    package func quarantine(_ fault: IntegrityFault, _ version: Version, _ record: [UInt8]) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement(
                "INSERT OR REPLACE INTO quarantine (id, version, record, kind, detail) VALUES (?1, ?2, ?3, ?4, ?5)"
            )
            .bind(1, fault.node.octets).bind(2, version).bind(3, record).bind(4, fault.kind.rawValue)
            .bind(5, fault.detail).run()
        }
    }

    package func releaseQuarantine(_ id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM quarantine WHERE id = ?1").bind(1, id.octets).run()
        }
    }

    /// The faults of all quarantined records, in the order of ids.
    package func faults() throws(TreeError) -> [IntegrityFault] {
        try sql { (database) throws(SQLiteError) in
            var faults = [IntegrityFault]()
            try database.statement("SELECT id, kind, detail FROM quarantine ORDER BY id").forEach { row in
                guard let id = NodeID(octets: row.bytes(0)), let kind = IntegrityFault.Kind(rawValue: row.text(1))
                else { return }
                faults.append(IntegrityFault(id, kind, row.text(2)))
            }
            return faults
        }
    }
}

extension TreeStore {
    /// The nodes from a place up to the trunk, the place included; at most `TreeLimits.depthMax`.
    package func ancestors(of place: NodeParent) throws(TreeError) -> [NodeID] {
        var (ids, next) = ([NodeID](), place)
        while case .node(let id) = next, ids.count < TreeLimits.depthMax, let link = try link(of: id) {
            ids.append(id)
            next = link.parent
        }
        return ids
    }

    /// Whether a node is shown; nil for an unknown one.
    package func state(of id: NodeID) throws(TreeError) -> NodeRow.State? { try link(of: id)?.state }

    private func link(of id: NodeID) throws(TreeError) -> NodeLink? {
        if let known = links[id] { return known }
        let link = try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT parent, name, state FROM node WHERE id = ?1").bind(1, id.octets)
                .first { NodeLink($0) } ?? nil
        }
        if let link { links[id] = link }
        return link
    }

    /// The path of a place; nil when a node on the way is not known or has no name.
    package func path(of place: NodeParent) throws(TreeError) -> TreePath? {
        var (names, next) = ([NodeName](), place)
        while names.count <= TreeLimits.depthMax {
            switch next {
            case .trunk(let trunk): return TreePath(trunk, names: names.reversed())
            case .node(let id):
                guard let link = try link(of: id), let name = link.name else { return nil }
                names.append(name)
                next = link.parent
            }
        }
        return nil
    }

    /// The place that a path names: a trunk or a node; nil when there is none.
    func place(at path: TreePath) throws(TreeError) -> NodeParent? {
        var place = NodeParent.trunk(path.trunk)
        for name in path.names {
            guard let row = try rows(at: Place(place, name)).first else { return nil }
            place = .node(row.id)
        }
        return place
    }

    func row(at path: TreePath) throws(TreeError) -> NodeRow? {
        guard case .node(let id)? = try place(at: path) else { return nil }
        return try row(id)
    }

    /// Levels below a node: 0 without children; at most `most`.
    package func height(of node: NodeID, upTo most: Int) throws(TreeError) -> Int {
        try sql { (database) throws(SQLiteError) in
            let depth = try database.statement(Self.branchQuery + "SELECT max(depth) FROM branch")
                .bind(1, node.octets).bind(2, Int64(most)).first { $0.integer(0) }
            return Int(depth ?? 0)
        }
    }

    /// The nodes of a branch, parents first, the root included.
    package func branch(of root: NodeID) throws(TreeError) -> [NodeID] {
        // A node is visited once, also in a store that is damaged.
        var (ids, known) = ([NodeID](), Set<NodeID>())
        try sql { (database) throws(SQLiteError) in
            try database.statement(Self.branchQuery + "SELECT id FROM branch ORDER BY depth")
                .bind(1, root.octets).bind(2, Int64(2 * TreeLimits.depthMax))
                .forEach { row in
                    if let id = NodeID(octets: row.bytes(0)), known.insert(id).inserted { ids.append(id) }
                }
        }
        return ids
    }

    /// The ids below ?1 with their depths, at most ?2. It reads an index only: a branch may be large.
    private static let branchQuery = """
        WITH RECURSIVE branch (id, depth) AS (
            SELECT ?1, 0 UNION ALL
            SELECT node.id, depth + 1 FROM branch JOIN node INDEXED BY node_name ON node.parent = branch.id
            WHERE depth < ?2)

        """
}
