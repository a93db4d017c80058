import ThicketProtocol

/// What the planner reads besides the log itself.
protocol RetentionSource: StoreReader {
    /// Runs `body` over one state of the store.
    func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result
    /// Versions of the object whose bodies are kept apart from the log, ascending, with the bytes of each.
    func keptVersions(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> [(version: Version, bytes: Int)]
    /// Hashes of cut rows' ccids whose changes are older than `before` (milliseconds since 1970), at most `limit`.
    func oldChangeIDs(in bucket: BucketRow, before: Int64, limit: Int) throws(StoreError) -> [UInt64]
}

/// Visits the buckets one after the other and plans what is cut from their logs, in pieces of bounded size.
///
/// A bucket's log loses a prefix: rows that are older than the settings' age and not among its newest. Before a row
/// goes, the bodies that somebody may still ask for are kept apart: the versions that stay readable, and the body each
/// object had after its last cut row, on which the rows that remain are replayed.
final class RetentionPlanner<Reader: RetentionSource>: StoreKeeper {
    private let reader: Reader
    private let settings: RetentionSettings
    /// Rows still to be cut from the bucket that is being worked on, oldest first.
    private var pending: (bucket: BucketRow, floor: GlobalID, rows: ArraySlice<GlobalID>)?
    /// A bucket that has more hashes to forget.
    private var forgetful: BucketRow?
    /// The hashes planned last.
    private var forgotten = [UInt64]()
    /// The bucket visited last in the current visit of all; nil between two visits.
    private var visited: BucketRow?
    private var nextVisit = Int64.min

    /// Buckets looked up at once.
    private static var pageSize: Int { 500 }

    init(reader: Reader, settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        if let batch = try nextCut() { return batch }
        if let bucket = forgetful, let batch = try nextForgetting(bucket, now: now) {
            return batch
        }
        if visited == nil {
            guard now >= nextVisit else { return nil }
            visited = 0
        }
        while let after = visited {
            let page = try reader.buckets(afterRow: after, limit: Self.pageSize)
            for bucket in page {
                visited = bucket.row
                if let batch = try visit(bucket, now: now) { return batch }
            }
            if page.isEmpty { visited = nil }
        }
        nextVisit = now + settings.sweepInterval
        return nil
    }

    private func visit(_ bucket: BucketRecord, now: Int64) throws(StoreError) -> MaintenanceBatch? {
        var batch = MaintenanceBatch()
        if bucket.floor > 0, let forgetting = try nextForgetting(bucket.row, now: now) {
            batch.forgettings = forgetting.forgettings
        }
        let rows = try rowsToCut(bucket, now: now)
        if !rows.isEmpty {
            pending = (bucket.row, bucket.floor, rows[...])
            if let cut = try nextCut() { batch.cuts = cut.cuts }
        }
        return batch.isEmpty ? nil : batch
    }

    /// A piece of the hashes whose time has come.
    private func nextForgetting(_ bucket: BucketRow, now: Int64) throws(StoreError) -> MaintenanceBatch? {
        let hashes = try reader.oldChangeIDs(
            in: bucket, before: now - settings.changeIDAgeMin, limit: settings.rowsPerBatch)
        // A piece that is not full was the last. One that comes again was not applied: it waits for the next visit.
        forgetful = hashes.count == settings.rowsPerBatch && hashes != forgotten ? bucket : nil
        defer { forgotten = hashes }
        guard !hashes.isEmpty, hashes != forgotten else { return nil }
        var batch = MaintenanceBatch()
        batch.forgettings = [.init(bucket: bucket, hashes: hashes)]
        return batch
    }

    /// The prefix of the log that may go, oldest first.
    private func rowsToCut(_ bucket: BucketRecord, now: Int64) throws(StoreError) -> [GlobalID] {
        // Positions count the changes of all buckets, so their distance is at least the bucket's own count.
        guard bucket.head - bucket.floor > Int64(settings.logChangesMin) else { return [] }
        let youngest = now - settings.logAgeMin
        return try reader.withState { (log) throws(StoreError) in
            var rows = [GlobalID]()
            var seen = 0
            var place = bucket.head
            while place > bucket.floor, let link = try log.changeLink(place) {
                seen += 1
                if seen > settings.logChangesMin {
                    // Clocks step back: a younger row further down keeps all that came after it, too.
                    if link.timestamp > youngest { rows.removeAll() } else { rows.append(place) }
                }
                guard link.previousOfBucket < place else { break }
                place = link.previousOfBucket
            }
            rows.reverse()
            return rows
        }
    }

    /// The next piece of the bucket that is being worked on; nil when it is done or somebody else has moved its floor.
    private func nextCut() throws(StoreError) -> MaintenanceBatch? {
        guard let work = pending else { return nil }
        pending = nil
        guard !work.rows.isEmpty else { return nil }
        let before = try reader.buckets(afterRow: work.bucket - 1, limit: 1)
        guard let bucket = before.first, bucket.row == work.bucket, bucket.floor == work.floor else {
            return nil
        }
        let settings = try BucketOptions.settings(settings, for: bucket.id, reader)
        let cut = try reader.withState { (log) throws(StoreError) in
            var slice = CutSlice(bucket, settings, reader.identity, log) { (key) throws(StoreError) in
                try self.reader.keptVersions(of: key, in: bucket.row)
            }
            for gid in work.rows.prefix(settings.rowsPerBatch) where !slice.isFull { try slice.take(gid) }
            return try slice.finish()
        }
        pending = (work.bucket, cut.floor, work.rows.dropFirst(cut.rows.count))
        var batch = MaintenanceBatch()
        batch.cuts = [cut]
        return batch
    }
}

/// One piece of a cut while it is put together: follows every object through the rows that go.
private struct CutSlice {
    private struct Track {
        let head: EntityRecord
        var state: JSONObject?
        var version: Version
        /// Versions kept apart before this piece.
        let keptBefore: [Version]
        var isKept = false
    }

    private let bucket: BucketRecord
    private let settings: RetentionSettings
    private let identity: StoreIdentity
    private let log: any LogSource
    private let keptVersions: (EntityKey) throws(StoreError) -> [(version: Version, bytes: Int)]
    private var tracks = [EntityKey: Track]()
    private var rows = [GlobalID]()
    private var changeIDs = [MaintenanceBatch.OldChangeID]()
    private var kept = [MaintenanceBatch.KeptBody]()
    /// Bodies that are written, or may be dropped: those kept before count when their object is first met.
    private var bodies = 0
    /// Their bytes, and those of the rows that go.
    private var bytes = 0

    init(
        _ bucket: BucketRecord, _ settings: RetentionSettings, _ identity: StoreIdentity, _ log: any LogSource,
        keptVersions: @escaping (EntityKey) throws(StoreError) -> [(version: Version, bytes: Int)]
    ) {
        self.bucket = bucket
        self.settings = settings
        self.identity = identity
        self.log = log
        self.keptVersions = keptVersions
    }

    var isFull: Bool { bytes >= settings.bytesPerBatch || rows.count + bodies >= settings.rowsPerBatch }

    mutating func take(_ gid: GlobalID) throws(StoreError) {
        guard let change = try log.changeRecord(gid) else {
            throw StoreError(.corrupt, "change \(gid) is missing from its bucket's chain")
        }
        var track = if let known = tracks[change.key] { known } else { try begin(change) }
        switch change.kind {
        case .remove:
            track.state = nil
        case .modify:
            track.state =
                if let body = change.keyframe {
                    try BodyReplay.parse(body, gid)
                } else {
                    try BodyReplay.apply(change.diff, to: track.state ?? JSONObject(), gid)
                }
        }
        track.version = change.endVersion
        track.isKept = false
        if let state = track.state, settings.keeps(change.endVersion, head: track.head.version) {
            keep(change.key, change.endVersion, state)
            track.isKept = true
        }
        tracks[change.key] = track
        rows.append(gid)
        bytes += change.diff.count + (change.keyframe?.count ?? 0)
        changeIDs.append(.init(hash: identity.hash(of: change.changeID), timestamp: change.timestamp))
    }

    /// The object as it was before the first of its rows that go.
    private mutating func begin(_ change: ChangeRecord) throws(StoreError) -> Track {
        guard let head = try log.entityRecord(change.key, bucket.row) else {
            throw StoreError(.corrupt, "change \(change.gid) belongs to an object that has no head")
        }
        var state: JSONObject?
        if change.kind == .modify, change.keyframe == nil, let source = change.sourceVersion {
            let before = try log.replay(to: change.previousOfEntity, version: source, change.key, bucket.row)
            guard let body = before?.body else {
                throw StoreError(.corrupt, "the body before change \(change.gid) cannot be replayed")
            }
            state = try BodyReplay.parse(body, change.gid)
        }
        let known = try keptVersions(change.key)
        bodies += known.count
        bytes += known.reduce(0) { $0 + $1.bytes }
        return Track(head: head, state: state, version: change.endVersion, keptBefore: known.map(\.version))
    }

    private mutating func keep(_ key: EntityKey, _ version: Version, _ state: JSONObject) {
        let body = state.serialized()
        bodies += 1
        bytes += body.count
        kept.append(.init(key: key, version: version, body: body))
    }

    /// Keeps each object's body after its last row that goes, and drops what was kept earlier and nobody needs now.
    mutating func finish() throws(StoreError) -> MaintenanceBatch.Cut {
        var dropped = [MaintenanceBatch.KeptVersion]()
        for (key, track) in tracks.sorted(by: { $0.key.text < $1.key.text }) {
            if let state = track.state, !track.isKept { keep(key, track.version, state) }
            for version in track.keptBefore
            where version != track.version && !settings.keeps(version, head: track.head.version) {
                dropped.append(.init(key: key, version: version))
            }
        }
        return MaintenanceBatch.Cut(
            bucket: bucket.row, floorBefore: bucket.floor, floor: rows.last ?? bucket.floor, rows: rows,
            keys: Set(tracks.keys), changeIDs: changeIDs, keptBodies: kept, droppedBodies: dropped, bytes: bytes)
    }
}
