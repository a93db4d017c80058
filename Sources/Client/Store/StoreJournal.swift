import ThicketProtocol
internal import ThicketSQLite

/// Stores changes of large objects as steps after the whole value, so that a keystroke in a large text writes a few
/// bytes.
///
/// A row of `journal` belongs to an object and a kind; rows are read in the order of their places. When the steps
/// outgrow the whole value, it is written and the steps are deleted, in the same transaction (`JournalRule`). The sizes
/// in memory mirror the file; after a failed transaction they are read again.
final class StoreJournal {
    /// The part of an object that a row continues.
    enum Kind: Int64 {
        case ghost = 1
        case later = 2
    }

    private let database: Database
    /// The ids of objects that may have rows; includes every object that has rows.
    private var owners = Set<Int64>()
    private var sizes = [Int64: JournalSizes]()

    /// Most objects whose sizes are held; all are dropped when the number is exceeded.
    private static let sizesMax = 4_096

    /// The table `journal`:
    /// - `owner`: the object's `entity.id`; `kind`: 1 for its ghost, 2 for its later edits (`Kind`).
    /// - `place`: the order of the steps, from 1; `diff`: the step, as the JSON of an object diff.
    /// - `version`: the version that a ghost's step creates; NULL for a step of edits.
    static let schema = """
        CREATE TABLE journal (
            owner INTEGER NOT NULL, kind INTEGER NOT NULL, place INTEGER NOT NULL, version INTEGER, diff BLOB NOT NULL,
            PRIMARY KEY (owner, kind, place)) WITHOUT ROWID;
        """

    init(_ database: Database) throws(SQLiteError) {
        self.database = database
        let next = try database.statement("SELECT min(owner) FROM journal WHERE owner > ?1")
        var last: Int64? = Int64.min
        while let before: Int64 = last {
            last = try next.bind(1, before).first { $0.optionalInteger(0) } ?? nil
            if let last { owners.insert(last) }
        }
    }

    /// Call it after a failed transaction: the sizes in memory may include what was rolled back.
    func forget() { sizes.removeAll() }

    // MARK: - Ghosts

    /// Appends the steps of a ghost, if `JournalRule` allows it.
    ///
    /// - Returns: false when the whole ghost must be written (`wroteGhost`).
    func append(_ steps: [GhostStep], of ghost: Ghost, _ id: Int64) throws(SQLiteError) -> Bool {
        guard let object = ghost.object, object.holds(bytes: JournalRule.ghostBytesMin) else {
            return false
        }
        var known = try sizes(of: id)
        let diffs = steps.map { Self.encode($0.diff) }
        let bytes = diffs.reduce(0) { $0 + $1.count }
        guard
            JournalRule.appends(
                steps.count, bytes: bytes, to: known.ghostChain, whole: known.ghost, wholeMin: JournalRule.ghostBytesMin
            )
        else { return false }
        for (step, diff) in zip(steps, diffs) {
            try insert(.ghost, id, version: step.version, diff, &known.ghostChain)
        }
        remember(known, id)
        return true
    }

    /// The whole ghost has been written to its row: deletes its steps.
    func wroteGhost(bytes: Int, _ id: Int64) throws(SQLiteError) {
        guard owners.contains(id) || sizes[id] != nil else { return }
        var known = try sizes(of: id)
        try end(.ghost, id, &known.ghostChain)
        known.ghost = bytes
        remember(known, id)
    }

    // MARK: - Edits

    /// Appends the steps of an object's later edits, if `JournalRule` allows it.
    ///
    /// - Returns: false when all edits must be written (`wroteEdits`).
    func append(_ steps: [ObjectDiff], _ id: Int64) throws(SQLiteError) -> Bool {
        var known = try sizes(of: id)
        guard known.edits >= JournalRule.editBytesMin else { return false }
        let diffs = steps.map(Self.encode)
        let bytes = diffs.reduce(0) { $0 + $1.count }
        guard
            JournalRule.appends(
                steps.count, bytes: bytes, to: known.laterChain, whole: known.edits, wholeMin: JournalRule.editBytesMin)
        else { return false }
        for diff in diffs { try insert(.later, id, version: nil, diff, &known.laterChain) }
        remember(known, id)
        return true
    }

    /// All edits have been written to their row, or none exist: deletes their steps.
    func wroteEdits(bytes: Int, _ id: Int64) throws(SQLiteError) {
        guard bytes >= JournalRule.editBytesMin || owners.contains(id) || sizes[id] != nil else { return }
        var known = try sizes(of: id)
        try end(.later, id, &known.laterChain)
        known.edits = bytes
        remember(known, id)
    }

    // MARK: - Reading

    /// The record of an object: `whole`, as read from its rows, with the steps applied.
    func read(_ id: Int64, over whole: EntityRecord) throws(ClientError) -> EntityRecord {
        guard owners.contains(id) else { return whole }
        let rows: [Row]
        do {
            rows = try self.rows(id)
        } catch {
            throw SQLiteLocalStore.clientError(error)
        }
        var record = whole
        do throws(DiffError) {
            var moves = [GhostStep]()
            var later = [ObjectDiff]()
            for row in rows {
                guard let diff = Self.decode(row.diff) else { throw DiffError(.malformed) }
                switch row.kind {
                case .ghost: moves.append(GhostStep(version: row.version ?? 0, diff: diff))
                case .later: later.append(diff)
                case nil: throw DiffError(.malformed)
                }
            }
            record.ghost = try whole.ghost.after(moves)
            record.edits = try whole.edits.after(later)
        } catch {
            throw ClientError(.store, "a step in the local store is damaged")
        }
        return record
    }

    private struct Row {
        let kind: Kind?
        let version: Int64?
        let diff: [UInt8]
    }

    private func rows(_ id: Int64) throws(SQLiteError) -> [Row] {
        var rows = [Row]()
        let query = "SELECT kind, version, diff FROM journal WHERE owner = ?1 ORDER BY kind, place"
        try database.statement(query).bind(1, id).forEach { (row) throws(SQLiteError) in
            rows.append(Row(kind: Kind(rawValue: row.integer(0)), version: row.optionalInteger(1), diff: row.bytes(2)))
        }
        return rows
    }

    // MARK: - Rows

    private func insert(
        _ kind: Kind, _ id: Int64, version: Version?, _ diff: [UInt8], _ chain: inout StepChain
    ) throws(SQLiteError) {
        owners.insert(id)
        try database.statement("INSERT INTO journal (owner, kind, place, version, diff) VALUES (?1, ?2, ?3, ?4, ?5)")
            .bind(1, id).bind(2, kind.rawValue).bind(3, chain.next).bind(4, version).bind(5, diff).run()
        chain.count += 1
        chain.bytes += diff.count
        chain.next += 1
    }

    private func end(_ kind: Kind, _ id: Int64, _ chain: inout StepChain) throws(SQLiteError) {
        guard chain.count > 0 else { return }
        try database.statement("DELETE FROM journal WHERE owner = ?1 AND kind = ?2")
            .bind(1, id).bind(2, kind.rawValue).run()
        chain = StepChain()
    }

    private func sizes(of id: Int64) throws(SQLiteError) -> JournalSizes {
        if let known = sizes[id] { return known }
        var found = JournalSizes()
        found.ghost = try bytes("SELECT length(object) FROM ghost WHERE id = ?1", id)
        let edits = """
            SELECT ifnull(length(pending), 0) + ifnull(length(sent), 0) + ifnull(length(later), 0)
                + ifnull(length(held), 0) + ifnull(length(sealed), 0) FROM edit WHERE id = ?1
            """
        found.edits = try bytes(edits, id)
        guard owners.contains(id) else { return found }
        found.ghostChain = try chain(.ghost, id)
        found.laterChain = try chain(.later, id)
        return found
    }

    private func bytes(_ query: String, _ id: Int64) throws(SQLiteError) -> Int {
        Int(try database.statement(query).bind(1, id).first { $0.integer(0) } ?? 0)
    }

    private func chain(_ kind: Kind, _ id: Int64) throws(SQLiteError) -> StepChain {
        let query = """
            SELECT count(*), ifnull(sum(length(diff)), 0), ifnull(max(place), 0) FROM journal WHERE owner = ?1 AND kind = ?2
            """
        let found = try database.statement(query).bind(1, id).bind(2, kind.rawValue).first { row in
            StepChain(count: Int(row.integer(0)), bytes: Int(row.integer(1)), next: row.integer(2) + 1)
        }
        return found ?? StepChain()
    }

    private func remember(_ known: JournalSizes, _ id: Int64) {
        if sizes.count >= Self.sizesMax, sizes[id] == nil { sizes.removeAll(keepingCapacity: true) }
        sizes[id] = known
    }

    private static func encode(_ diff: ObjectDiff) -> [UInt8] {
        var writer = JSONWriter()
        diff.write(to: &writer)
        return writer.bytes
    }

    private static func decode(_ bytes: [UInt8]) -> ObjectDiff? {
        guard let value = try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling) else {
            return nil
        }
        return try? ObjectDiff(value)
    }
}
