import ThicketProtocol
import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// The waiting operations.
extension TreeStore {
    /// The number of the next operation.
    package func nextOperation() throws(TreeError) -> OperationID {
        OperationID(
            try sql { (database) throws(SQLiteError) in
                let used = try database.integer("SELECT seq FROM sqlite_sequence WHERE name = 'operation'") ?? 0
                return used + 1
            })
    }

    /// Writes what the queue holds of an operation; the other columns keep their values.
    package func write(_ operation: PendingOperation) throws(TreeError) {
        let depends = operation.dependencies.sorted().flatMap { id in
            withUnsafeBytes(of: id.number.bigEndian) { Array($0) }
        }
        let (state, reason) = operation.stored
        try sql { (database) throws(SQLiteError) in
            try database.statement(
                """
                INSERT INTO operation (id, node, is_delete, fields, from_parent, from_name, to_parent, to_name,
                    group_id, depends, priority, content, state, reason, attempts, waits_for, is_kept,
                    receiver, conversation)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
                ON CONFLICT (id) DO UPDATE SET is_delete = ?3, fields = ?4, from_parent = ?5, from_name = ?6,
                    to_parent = ?7, to_name = ?8, group_id = ?9, depends = ?10, priority = ?11, content = ?12,
                    state = ?13, reason = ?14, attempts = ?15, waits_for = ?16, is_kept = ?17
                """
            )
            .bind(1, operation.id.number).bind(2, operation.node.octets).bind(3, operation.kind.number)
            .bind(4, operation.fields.rawValue)
            .bind(5, operation.origin?.parent.stored).bind(6, operation.origin?.name.text)
            .bind(7, operation.target?.parent.stored).bind(8, operation.target?.name.text)
            .bind(9, operation.group).bind(10, depends).bind(11, operation.priority)
            .bind(12, operation.content.rawValue).bind(13, state).bind(14, reason)
            .bind(15, operation.attempts).bind(16, operation.waitsFor).bind(17, operation.isKept ? 1 : 0)
            .bind(18, operation.receiver?.text).bind(19, operation.conversation?.octets).run()
        }
    }

    package func removeOperation(_ id: OperationID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM operation WHERE id = ?1").bind(1, id.number).run()
            try database.statement("DELETE FROM share_change WHERE operation = ?1").bind(1, id.number).run()
        }
    }

    /// All waiting operations, in order.
    package func operations() throws(TreeError) -> [PendingOperation] {
        try sql { (database) throws(SQLiteError) in
            var operations = [PendingOperation]()
            try database.statement(
                """
                SELECT id, node, is_delete, fields, from_parent, from_name, to_parent, to_name, group_id, depends,
                    priority, content, state, reason, attempts, waits_for, is_kept, receiver, conversation
                FROM operation ORDER BY id
                """
            ).forEach { if let operation = PendingOperation($0) { operations.append(operation) } }
            return operations
        }
    }

    // MARK: - Columns beside the queue

    /// The content of a write that fits into the record, as `HeldContent` encodes it.
    package func heldContent(_ id: OperationID) throws(TreeError) -> [UInt8]? { try bytes("held", id) }
    package func setHeldContent(_ id: OperationID, _ bytes: [UInt8]?) throws(TreeError) { try set("held", id, bytes) }

    /// The state of the upload of a write's content.
    package func spool(_ id: OperationID) throws(TreeError) -> [UInt8]? { try bytes("spool", id) }
    package func setSpool(_ id: OperationID, _ bytes: [UInt8]?) throws(TreeError) { try set("spool", id, bytes) }

    /// Versions of nodes that a deletion knew, and its options.
    package func deletion(_ id: OperationID) throws(TreeError) -> (known: [UInt8], options: Int64)? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT known, options FROM operation WHERE id = ?1").bind(1, id.number)
                .first { ($0.bytes(0), $0.integer(1)) }
        }
    }

    package func setDeletion(_ id: OperationID, known: [UInt8], options: Int64) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("UPDATE operation SET known = ?2, options = ?3 WHERE id = ?1")
                .bind(1, id.number).bind(2, known).bind(3, options).run()
        }
    }

    private func bytes(_ column: StaticString, _ id: OperationID) throws(TreeError) -> [UInt8]? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT \(column) FROM operation WHERE id = ?1").bind(1, id.number)
                .first { $0.optionalBytes(0) } ?? nil
        }
    }

    private func set(_ column: StaticString, _ id: OperationID, _ bytes: [UInt8]?) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("UPDATE operation SET \(column) = ?2 WHERE id = ?1").bind(1, id.number)
                .bind(2, bytes).run()
        }
    }

    // MARK: - The request in flight

    /// An operation as it is in the request: sent again unchanged until it is answered.
    package struct Sent: Sendable, Equatable {
        package let operation: OperationID
        /// JSON of the operation in the request.
        package let body: [UInt8]
    }

    package func setSent(_ sent: Sent, request: String, place: Int) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT INTO sent (place, request, operation, body) VALUES (?1, ?2, ?3, ?4)")
                .bind(1, Int64(place)).bind(2, request).bind(3, sent.operation.number).bind(4, sent.body).run()
        }
    }

    /// The request is answered.
    package func clearSent() throws(TreeError) {
        try sql { (database) throws(SQLiteError) in try database.statement("DELETE FROM sent").run() }
    }

    /// An operation as it is in the request in flight; nil when it is not in it.
    package func sent(_ id: OperationID) throws(TreeError) -> Sent? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT body FROM sent WHERE operation = ?1").bind(1, id.number)
                .first { Sent(operation: id, body: $0.bytes(0)) }
        }
    }

    /// The request in flight, in its order, with operations that are confirmed or dropped meanwhile; nil if none.
    package func sent() throws(TreeError) -> (request: String, operations: [Sent])? {
        try sql { (database) throws(SQLiteError) in
            var (request, operations) = ("", [Sent]())
            try database.statement("SELECT operation, request, body FROM sent ORDER BY place").forEach { row in
                request = row.text(1)
                operations.append(Sent(operation: OperationID(row.integer(0)), body: row.bytes(2)))
            }
            return operations.isEmpty ? nil : (request, operations)
        }
    }
}

extension PendingOperation {
    /// The columns `state` and `reason`.
    fileprivate var stored: (Int64, String?) {
        switch state {
        case .waiting: (0, trouble)
        case .sending: (1, trouble)
        case .failed(let reason): (2, reason)
        case .held(let hold): (10 + hold.rawValue, trouble)
        }
    }
}

extension PendingOperation.State {
    fileprivate init(_ number: Int64, _ reason: String?) {
        self =
            switch number {
            case 1: .sending
            case 2: .failed(reason ?? "")
            case 10...: PendingOperation.Hold(rawValue: number - 10).map { .held($0) } ?? .waiting
            default: .waiting
            }
    }
}

extension PendingOperation {
    fileprivate init?(_ row: Statement) {
        let receiver = row.isNull(17) ? nil : try? UserID(row.text(17))
        let conversation = row.optionalBytes(18).flatMap { ConversationID(octets: $0) }
        guard let node = NodeID(octets: row.bytes(1)),
            let kind = Kind(
                number: row.integer(2), WriteFields(rawValue: row.integer(3)), receiver, conversation)
        else { return nil }
        self.init(OperationID(row.integer(0)), node, kind)
        origin = Self.place(row, 4)
        target = Self.place(row, 6)
        group = row.optionalInteger(8)
        let numbers = row.optionalBytes(9) ?? []
        dependencies = Set(
            stride(from: 0, to: numbers.count - 7, by: 8).map { start in
                OperationID(numbers[start..<start + 8].reduce(0) { $0 << 8 | Int64($1) })
            })
        priority = row.integer(10)
        content = Content(rawValue: row.integer(11)) ?? .none
        let reason = row.isNull(13) ? nil : row.text(13)
        state = State(row.integer(12), reason)
        if case .failed = state {} else { trouble = reason }
        attempts = row.integer(14)
        waitsFor = row.optionalInteger(15)
        isKept = row.integer(16) != 0
    }

    private static func place(_ row: Statement, _ column: Int32) -> Place? {
        guard let parent = row.optionalBytes(column).flatMap(NodeParent.init(stored:)),
            let name = try? NodeName(row.text(column + 1))
        else { return nil }
        return Place(parent, name)
    }
}
