import ThicketProtocol
internal import ThicketSQLite
import ThicketSealed

/// An object's row as stored, so that decoding it can throw a `ClientError`.
struct EntityRow {
    let id: Int64
    let ghost: (version: Int64, object: [UInt8]?)
    let isLive: Bool
    let scanID: Int64
    var state = EditState()
    let change: (id: String, edit: [UInt8]?, source: Int64?, sent: [UInt8], appliedAt: Int64?, isConfirmed: Bool)?
    let later: [UInt8]?
    private let isLaterWhole: Bool
    let held: (version: Int64, object: [UInt8]?)?
    let name: String?
    let sealed: [UInt8]?

    /// Bits of the column `sends_whole`.
    static let (sendsWhole, laterIsWhole): (Int64, Int64) = (1, 2)

    init(_ row: Statement) {
        ghost = (row.integer(0), row.optionalBytes(3))
        isLive = row.integer(1) != 0
        scanID = row.integer(2)
        change =
            row.isNull(4)
            ? nil
            : (
                row.text(4), row.optionalBytes(5), row.optionalInteger(6), row.bytes(7), row.optionalInteger(8),
                row.integer(9) != 0
            )
        later = row.optionalBytes(10)
        held = row.optionalInteger(11).map { ($0, row.optionalBytes(12)) }
        state.wanted = row.optionalInteger(13)
        state.refusal = row.optionalInteger(14).map(Int.init)
        state.attempts = Int(row.integer(15))
        let forms: Int64 = row.integer(16)
        state.sendsWhole = forms & Self.sendsWhole != 0
        isLaterWhole = forms & Self.laterIsWhole != 0
        id = row.integer(17)
        name = row.isNull(18) ? nil : row.text(18)
        sealed = row.optionalBytes(19)
    }

    func record() throws(ClientError) -> EntityRecord {
        var edits = state
        edits.later = try EditCodec.decode(later)
        edits.isWhole = isLaterWhole
        if let sealed { edits.sealed = try EditCodec.kept(sealed) }
        if let held { edits.held = Ghost(version: held.version, object: try EditCodec.object(held.object)) }
        if let change {
            guard let id = try? ChangeID(change.id) else {
                throw ClientError(.store, "a change in the local store is damaged")
            }
            edits.pending = PendingChange(
                changeID: id, edit: try EditCodec.decode(change.edit), source: change.source, bytes: change.sent,
                appliedAt: change.appliedAt, isConfirmed: change.isConfirmed)
        }
        let agreed = Ghost(version: ghost.version, object: try EditCodec.object(ghost.object))
        return EntityRecord(ghost: agreed, edits: edits, isLive: isLive, scanID: scanID, name: name)
    }
}

/// The place of an object's rows; `id` is nil when it must be looked up first.
struct EntityPlace {
    let bucket: Int64
    var id: Int64?
}

/// The row ids of objects that were read, because a read object is often written next. A row's id never changes.
struct EntityRows {
    private var ids = [EntityAddress: Int64]()

    /// Most ids held; all are dropped when the number is exceeded.
    private static let idsMax = 2_048

    subscript(address: EntityAddress) -> Int64? { ids[address] }

    mutating func record(_ id: Int64, _ address: EntityAddress) {
        if ids.count >= Self.idsMax { ids.removeAll(keepingCapacity: true) }
        ids[address] = id
    }
}

/// Conversion of records to rows.
extension SQLiteLocalStore {
    static func write(_ record: BucketRecord, to database: Database) throws(SQLiteError) -> Int64 {
        let change = """
            INSERT INTO bucket (name, cv, walks, walk, mark, current, objects_read, objects_total, is_sealed,
                store, generation, walk_store, walk_is_same)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            ON CONFLICT (name) DO UPDATE SET cv = ?2, walks = ?3, walk = ?4, mark = ?5, current = ?6, objects_read = ?7,
                objects_total = ?8, is_sealed = ?9, store = ?10, generation = ?11, walk_store = ?12, walk_is_same = ?13
            RETURNING id
            """
        let indexScan = record.indexScan
        let statement = try database.statement(change)
        statement.bind(1, record.name.text).bind(text: 2, record.changeVersion?.text).bind(3, record.scansStarted)
        statement.bind(4, indexScan?.id).bind(text: 5, indexScan?.mark).bind(text: 6, indexScan?.current?.text)
        statement.bind(7, indexScan?.objectsRead).bind(8, indexScan?.objectsTotal).bind(9, record.isSealed ? 1 : 0)
        statement.bind(text: 10, record.store).bind(11, record.generation).bind(text: 12, indexScan?.store)
        statement.bind(13, indexScan?.isSame == true ? 1 : 0)
        guard let id = try statement.first({ $0.integer(0) }) else { throw SQLiteError.unknownBucket }
        return id
    }

    /// Deletes the delivered events, and inserts the new undelivered ones.
    static func write(
        delivered: Set<BucketName>, undelivered: [UndeliveredWrite], _ rows: [BucketName: Int64], to database: Database
    ) throws(SQLiteError) {
        for name in delivered.sorted() {
            guard let bucket = rows[name] else { continue }
            try database.statement("DELETE FROM untold WHERE bucket = ?1").bind(1, bucket).run()
        }
        for write in undelivered {
            guard let bucket = rows[write.bucket] else { throw SQLiteError.unknownBucket }
            guard let event = UndeliveredCodec.encode(write.event) else { continue }
            try database.statement("INSERT OR REPLACE INTO untold (bucket, place, event) VALUES (?1, ?2, ?3)")
                .bind(1, bucket).bind(2, Int64(write.place)).bind(3, event).run()
        }
    }

    /// Inserts objects that have no record. If one has a record after all, the transaction fails.
    static func insert(
        _ objects: [NewObject], _ rows: [BucketName: Int64], to database: Database
    ) throws(SQLiteError) {
        guard !objects.isEmpty else { return }
        let entity = try database.statement(
            "INSERT INTO entity (bucket, key, version, is_there, is_live, walk, name) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)"
        )
        let ghost = try database.statement("INSERT INTO ghost (id, object) VALUES (?1, ?2)")
        for object in objects {
            guard let bucket = rows[object.address.bucket] else { throw SQLiteError.unknownBucket }
            entity.bind(1, bucket).bind(2, object.address.key.text).bind(3, object.version)
            try entity.bind(4, object.isLive ? 1 : 0).bind(5, object.scanID).bind(text: 6, object.name).run()
            ghost.bind(1, database.lastInsertRow)
            if let packed = object.packed {
                ghost.bind(2, packed)
            } else if case .node(let node) = object.body {
                ghost.bind(2, node.rawBytes)
            } else {
                ghost.bind(2, object.body.bytes)
            }
            try ghost.run()
        }
    }

    static func write(
        _ change: EntityWrite, at place: EntityPlace, to database: Database, _ journal: StoreJournal
    ) throws(SQLiteError) {
        let (record, parts) = (change.record, change.parts)
        // A ghost step carries its version, so the object's own row need not be written.
        var steps = parts.contains(.ghost) ? change.ghostSteps : nil
        var place = place
        if place.id == nil, parts == .edits || steps != nil {
            place.id = try database.statement("SELECT id FROM entity WHERE bucket = ?1 AND key = ?2")
                .bind(1, place.bucket).bind(2, change.address.key.text).first { $0.integer(0) }
        }
        if let newSteps = steps, let id = place.id, try !journal.append(newSteps, of: record.ghost, id) {
            steps = nil
        }
        if place.id == nil { steps = nil }
        let isWhole = parts.contains(.ghost) && steps == nil
        if place.id == nil || isWhole || parts.contains(.marks) {
            place.id = try mark(record, at: place, key: change.address.key, in: database)
        }
        guard let id = place.id else { throw SQLiteError.unknownBucket }
        if isWhole { try journal.wroteGhost(bytes: try writeGhost(of: record, id, to: database), id) }
        guard parts.contains(.edits) else { return }
        if let newSteps = change.laterSteps, try journal.append(newSteps, id) { return }
        try journal.wroteEdits(bytes: try write(record.edits, id, to: database), id)
    }

    /// Writes the object's own row; returns its id.
    private static func mark(
        _ record: EntityRecord, at place: EntityPlace, key: EntityKey, in database: Database
    ) throws(SQLiteError) -> Int64? {
        if let id = place.id {
            try database.statement(
                "UPDATE entity SET version = ?2, is_there = ?3, is_live = ?4, walk = ?5, name = ?6 WHERE id = ?1"
            )
            .bind(1, id).bind(2, record.ghost.version).bind(3, record.ghost.object == nil ? 0 : 1)
            .bind(4, record.isLive ? 1 : 0).bind(5, record.scanID).bind(text: 6, record.name).run()
            return id
        }
        let change = """
            INSERT INTO entity (bucket, key, version, is_there, is_live, walk, name)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (bucket, key) DO UPDATE SET version = ?3, is_there = ?4, is_live = ?5, walk = ?6, name = ?7
            RETURNING id
            """
        let statement = try database.statement(change)
        statement.bind(1, place.bucket).bind(2, key.text).bind(3, record.ghost.version)
        statement.bind(4, record.ghost.object == nil ? 0 : 1).bind(5, record.isLive ? 1 : 0).bind(6, record.scanID)
            .bind(text: 7, record.name)
        return try statement.first { $0.integer(0) }
    }

    /// Writes a whole ghost; returns its size in bytes.
    private static func writeGhost(
        of record: EntityRecord, _ id: Int64, to database: Database
    ) throws(SQLiteError) -> Int {
        guard let object = record.ghost.object else {
            try database.statement("DELETE FROM ghost WHERE id = ?1").bind(1, id).run()
            return 0
        }
        // Only objects in sealed buckets have a name of their own.
        let packed = record.name == nil ? nil : PackedEntity.pack(object)
        let bytes = packed ?? object.serialized()
        try database.statement("INSERT OR REPLACE INTO ghost (id, object) VALUES (?1, ?2)")
            .bind(1, id).bind(2, bytes).run()
        return bytes.count
    }

    /// Writes all of an object's edits; returns their size in bytes, as `StoreJournal` counts it.
    private static func write(_ edits: EditState, _ id: Int64, to database: Database) throws(SQLiteError) -> Int {
        guard !edits.isEmpty else {
            try database.statement("DELETE FROM edit WHERE id = ?1").bind(1, id).run()
            return 0
        }
        let statement: Statement = try database.statement(
            """
            INSERT OR REPLACE INTO edit (id, ccid, pending, source, sent, applied_at, is_confirmed, later, held_version,
                held, wanted, refusal, attempts, sends_whole, sealed, sealed_flags)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
            """)
        let pending = edits.pending
        let blobs: [[UInt8]?] = [
            EditCodec.encode(pending?.edit), pending?.bytes, EditCodec.encode(edits.later),
            edits.held?.object?.serialized(), EditCodec.encode(edits.sealed),
        ]
        statement.bind(1, id).bind(text: 2, pending?.changeID.text).bind(3, blobs[0])
        statement.bind(4, pending?.source).bind(5, blobs[1]).bind(6, pending?.appliedAt)
        statement.bind(7, pending?.isConfirmed == true ? 1 : 0).bind(8, blobs[2])
        statement.bind(9, edits.held?.version).bind(10, blobs[3])
        statement.bind(11, edits.wanted).bind(12, edits.refusal.map(Int64.init)).bind(13, Int64(edits.attempts))
        let forms: Int64 =
            (edits.sendsWhole ? EntityRow.sendsWhole : 0) | (edits.isWhole ? EntityRow.laterIsWhole : 0)
        statement.bind(14, forms).bind(15, blobs[4])
        let flags: Int64 = (edits.sealed.later == nil ? 0 : 1) | (edits.isReadOnly ? 2 : 0)
        statement.bind(16, flags)
        try statement.run()
        return blobs.reduce(0) { $0 + ($1?.count ?? 0) }
    }
}

extension Statement {
    /// Binds a text or NULL.
    @discardableResult
    fileprivate func bind(text place: Int32, _ value: String?) -> Statement {
        guard let value else { return bind(place, nil as Int64?) }
        return bind(place, value)
    }
}

extension SQLiteError {
    /// An object whose bucket has no row: the machine must store the bucket first.
    static let unknownBucket = SQLiteError(
        extended: 1, message: "an object without its bucket")
}
