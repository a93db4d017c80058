import ThicketProtocol
import ThicketSQLite

/// Reads of a `SQLiteStore` over one connection. Used only by the thread that created it.
class SQLiteReader {
    final let identity: StoreIdentity
    final let readerCache: ReaderCache
    final let late: WriteBehindHeads
    final let database: Database
    final let queries: Queries
    /// Start of the look-ups in the write-behind heads for the open transaction, and the transaction's view of them
    /// once it was needed.
    private var origin: WriteBehindHeads.Stretch?
    private var view: WriteBehindHeads.View?
    /// Client names by row; a row's name never changes, and a row is never reused for another name.
    private var clients = [Int64: ClientID]()
    /// Newest change that any segment of a bucket covers, within one read.
    final var segmentTop: (bucket: BucketRow, high: GlobalID)?
    /// The segment used last and the range it covers: an index scan reads the segments one after the other.
    private var cursor: (bucket: BucketRow, above: GlobalID, high: GlobalID, segment: Segment)?

    /// Bodies that were read ahead, newest first; those before `aheadNext` are consumed.
    private var ahead = [(gid: GlobalID, body: [UInt8])]()
    private var aheadNext = 0

    /// Approximate bytes read ahead in one pass, and the maximum number of rows per wanted row.
    private static let aheadBytesMax = 1 << 20
    private static let aheadRowsMax: GlobalID = 4
    /// Maximum number of client names cached by one connection.
    private static let clientsMax = 10_000

    init(
        _ identity: StoreIdentity, _ readerCache: ReaderCache, _ late: WriteBehindHeads, _ database: Database
    ) throws(StoreError) {
        self.late = late
        self.identity = identity
        self.readerCache = readerCache
        self.database = database
        self.queries = try storing("preparing the reads") { () throws(SQLiteError) in try Queries(database) }
    }

    /// Runs `body` over one state of the store.
    final func reading<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        if database.isInTransaction { return try body() }
        (origin, view) = (late.origin, nil)
        defer { (origin, view) = (nil, nil) }
        try storing("beginning a read") { () throws(SQLiteError) in try database.begin(.deferred) }
        do {
            let result = try body()
            try storing("ending a read") { () throws(SQLiteError) in try database.commit() }
            return result
        } catch {
            database.rollback()
            throw error
        }
    }

    /// Heads that replace those of `ent`, within `reading`.
    func writeBehindHeads() throws(StoreError) -> WriteBehindHeads.View {
        if let view { return view }
        let upTo: GlobalID = try storing("looking at the log's end") { () throws(SQLiteError) in
            try queries.state.first { $0.integer(0) } ?? 0
        }
        let made = WriteBehindHeads.View(origin: origin ?? late.origin, upTo: upTo)
        assert(origin != nil, "write-behind heads must be read inside a transaction")
        if origin != nil { view = made }
        return made
    }

    /// Uses these heads instead, within `reading`; for a process other than the server that has loaded them from the
    /// same state.
    final func look(at late: WriteBehindHeads) { view = .init(origin: late.origin, upTo: .max) }

    final func clientName(_ row: Int64) throws(StoreError) -> ClientID {
        if let known = clients[row] { return known }
        let text = try storing("reading a client's name") { () throws(SQLiteError) in
            try queries.clientName.bind(1, row).first { $0.text(0) }
        }
        guard let text else { throw StoreError(.corrupt, "client \(row) has no name") }
        let name: ClientID = try .stored(text)
        if clients.count >= Self.clientsMax { clients.removeAll() }
        clients[row] = name
        return name
    }

    // MARK: Segments

    final func segmentBody(_ gid: GlobalID, _ bucket: BucketRow) throws(StoreError) -> [UInt8]? {
        if let cursor, cursor.bucket == bucket, gid > cursor.above, gid <= cursor.high {
            return cursor.segment.body(of: gid)
        }
        if let segmentTop, segmentTop.bucket == bucket, gid > segmentTop.high { return nil }
        let found: (row: Int64, high: GlobalID)? = try storing("looking for a segment") { () throws(SQLiteError) in
            try queries.segmentFor.bind(1, bucket).bind(2, gid).first { ($0.integer(0), $0.integer(1)) }
        }
        guard let found else { return nil }
        guard let segment: Segment = try segment(.init(row: found.row, high: found.high)) else { return nil }
        let above: GlobalID = try storing("looking for a segment") { () throws(SQLiteError) in
            try queries.segmentBelow.bind(1, bucket).bind(2, found.high).first { $0.integer(0) } ?? 0
        }
        cursor = (bucket, above, found.high, segment)
        return segment.body(of: gid)
    }

    // MARK: Reading ahead

    /// Where the wanted changes are close together, a sequential read costs less than one look-up per change.
    final func readAhead(_ gids: ArraySlice<GlobalID>) throws(StoreError) {
        (ahead, aheadNext) = ([], 0)
        guard let newest = gids.first, let oldest = gids.last,
            newest - oldest < Self.aheadRowsMax * GlobalID(gids.count)
        else { return }
        var wanted = gids
        var bytes = 0
        try storing("reading bodies ahead") { () throws(SQLiteError) in
            let rows = queries.stretch.bind(1, oldest).bind(2, newest)
            defer { rows.reset() }
            while bytes < Self.aheadBytesMax, let next = wanted.first, try rows.step() {
                guard rows.integer(0) == next else { continue }
                wanted.removeFirst()
                guard let body = Self.wholeBody(rows) else { continue }
                bytes += body.count
                ahead.append((next, body))
            }
        }
    }

    /// The body of a row that contains it completely: a keyframe, or a creation that only adds values.
    private static func wholeBody(_ row: Statement) -> [UInt8]? {
        guard row.integer(1) == 0 else { return nil }
        if let keyframe = row.optionalBytes(4) { return keyframe }
        return row.isNull(2) ? BodyReplay.created(by: row.bytes(3)) : nil
    }

    final func aheadBody(_ gid: GlobalID) -> [UInt8]? {
        while aheadNext < ahead.count, ahead[aheadNext].gid > gid { aheadNext += 1 }
        guard aheadNext < ahead.count, ahead[aheadNext].gid == gid else { return nil }
        return ahead[aheadNext].body
    }

    /// Newest change that a segment of the bucket covers; 0 without segments.
    final func newestSegment(of bucket: BucketRow) throws(StoreError) -> GlobalID {
        try storing("looking for a segment") { () throws(SQLiteError) in
            try queries.segmentBelow.bind(1, bucket).bind(2, Int64.max).first { $0.integer(0) } ?? 0
        }
    }

    private func segment(_ place: ReaderCache.SegmentPlace) throws(StoreError) -> Segment? {
        if let known = readerCache.segment(place) { return known }
        let content = try storing("reading a segment") { () throws(SQLiteError) in
            try queries.segmentContent.bind(1, place.row).first { $0.bytes(0) } ?? []
        }
        // A broken segment is only a lost copy, because the log has the bodies too. `check` reports it.
        guard let segment = Segment(content) else { return nil }
        readerCache.keep(segment, at: place)
        return segment
    }
}

extension SQLiteReader: LogSource {
    final func entityRecord(_ key: EntityKey, _ bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        try reading { () throws(StoreError) in
            if let late = try writeBehindHeads().head(of: key, in: bucket) { return late }
            return try storedRecord(key, bucket)
        }
    }

    private func storedRecord(_ key: EntityKey, _ bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        try storing("reading an object's head") { () throws(SQLiteError) in
            try queries.entity.bind(1, bucket).bind(2, key.text).first { row in
                EntityRecord(
                    key: key, version: row.integer(0), gid: row.integer(1), keyframe: row.integer(2),
                    isDeleted: row.integer(3) != 0, born: row.optionalInteger(4))
            }
        }
    }

    final func changeLink(_ gid: GlobalID) throws(StoreError) -> ChangeLink? {
        try storing("reading a change's links") { () throws(SQLiteError) in
            try queries.link.bind(1, gid).first { row in
                ChangeLink(
                    gid: gid, bucket: row.integer(0), kind: row.integer(1) == 0 ? .modify : .remove,
                    sourceVersion: row.optionalInteger(2), endVersion: row.integer(3),
                    previousOfEntity: row.integer(4), previousKeyframe: row.integer(5),
                    previousOfBucket: row.integer(6), timestamp: row.integer(7))
            }
        }
    }

    final func logStep(_ gid: GlobalID) throws(StoreError) -> LogStep? {
        typealias Raw = (
            bucket: BucketRow, key: String, kind: Int64, endVersion: Version, ofEntity: GlobalID, ofBucket: GlobalID
        )
        let found: Raw? = try storing("reading a step of the log") { () throws(SQLiteError) in
            try queries.step.bind(1, gid).first {
                ($0.integer(0), $0.text(1), $0.integer(2), $0.integer(3), $0.integer(4), $0.integer(5))
            }
        }
        guard let found else { return nil }
        return LogStep(
            bucket: found.bucket, key: try .stored(found.key), kind: found.kind == 0 ? .modify : .remove,
            endVersion: found.endVersion,
            previousOfEntity: found.ofEntity, previousOfBucket: found.ofBucket)
    }

    final func replayRow(_ gid: GlobalID) throws(StoreError) -> ReplayRow? {
        try storing("reading a change's diff") { () throws(SQLiteError) in
            try queries.replay.bind(1, gid).first { row in
                ReplayRow(
                    kind: row.integer(0) == 0 ? .modify : .remove, sourceVersion: row.optionalInteger(1),
                    previousOfEntity: row.integer(2), diff: row.bytes(3), keyframe: row.optionalBytes(4))
            }
        }
    }

    final func keptBody(
        _ key: EntityKey, _ version: Version, _ bucket: BucketRow
    ) throws(StoreError) -> [UInt8]? {
        try storing("reading a kept body") { () throws(SQLiteError) in
            try queries.keptBody.bind(1, bucket).bind(2, key.text).bind(3, version).first { $0.bytes(0) }
        }
    }

    final func changeRecord(_ gid: GlobalID) throws(StoreError) -> ChangeRecord? {
        let row = try storing("reading a change") { () throws(SQLiteError) in
            try queries.change.bind(1, gid).first { RawChange($0) }
        }
        guard let row else { return nil }
        guard let changeID = row.changeID.changeIDText else {
            throw StoreError(.corrupt, "change \(gid) has a ccid of an unknown form")
        }
        return ChangeRecord(
            gid: gid, bucket: row.bucket, key: try .stored(row.key), kind: row.isRemoval ? .remove : .modify,
            sourceVersion: row.sourceVersion, endVersion: row.endVersion, previousOfEntity: row.previousOfEntity,
            previousKeyframe: row.previousKeyframe, previousOfBucket: row.previousOfBucket,
            clientID: try clientName(row.client), changeID: try .stored(changeID), timestamp: row.timestamp,
            diff: row.diff, keyframe: row.keyframe, audience: row.audience.flatMap(ChangeAudience.init(octets:)))
    }

    /// A row of `chg` before its names are parsed.
    private struct RawChange {
        let bucket: BucketRow
        let key: String
        let isRemoval: Bool
        let sourceVersion: Version?
        let endVersion: Version
        let previousOfEntity: GlobalID
        let previousKeyframe: GlobalID
        let previousOfBucket: GlobalID
        let client: Int64
        let changeID: PackedChangeID
        let timestamp: Int64
        let diff: [UInt8]
        let keyframe: [UInt8]?
        let audience: [UInt8]?

        init(_ row: Statement) {
            bucket = row.integer(0)
            key = row.text(1)
            isRemoval = row.integer(2) != 0
            sourceVersion = row.optionalInteger(3)
            endVersion = row.integer(4)
            previousOfEntity = row.integer(5)
            previousKeyframe = row.integer(6)
            previousOfBucket = row.integer(7)
            client = row.integer(8)
            changeID = PackedChangeID(row, 9)
            timestamp = row.integer(10)
            diff = row.bytes(11)
            keyframe = row.optionalBytes(12)
            audience = row.optionalBytes(13)
        }
    }
}

extension PackedChangeID {
    init(_ row: Statement, _ column: Int32) {
        self = row.isText(column) ? .text(row.text(column)) : .bytes(row.bytes(column))
    }
}
