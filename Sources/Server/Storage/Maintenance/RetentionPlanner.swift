import ThicketProtocol

/// Data that the planner reads in addition to the log.
protocol RetentionSource: StoreReader {
    /// Runs `body` over one state of the store.
    func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result
    /// Versions of the object whose bodies are kept apart from the log, ascending, with the bytes of each body.
    func keptVersions(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> [(version: Version, bytes: Int)]
    /// Hashes of cut rows' ccids whose changes are older than `before` (milliseconds since 1970), at most `limit`.
    func oldChangeIDs(in bucket: BucketRow, before: Int64, limit: Int) throws(StoreError) -> [UInt64]
}

/// Visits the buckets one after the other and plans what is cut from their logs, in pieces of bounded size.
///
/// A cut removes a prefix of a bucket's log: rows older than the configured age that are not among the newest ones.
/// Bodies that may still be requested are kept apart before their rows go: the versions that stay readable, and the
/// body of each object after its last cut row, from which the remaining rows are replayed.
final class RetentionPlanner<Reader: RetentionSource>: StoreMaintenance {
    private let reader: Reader
    private let settings: RetentionSettings
    /// Rows that are still to be cut from the current bucket, oldest first.
    private var pending: (bucket: BucketRow, floor: GlobalID, rows: ArraySlice<GlobalID>)?
    /// A bucket with more hashes to delete.
    private var forgetful: BucketRow?
    /// The hashes of the last plan.
    private var forgotten = [UInt64]()
    /// The bucket visited last in the current pass over all buckets; nil between two passes.
    private var visited: BucketRow?
    private var nextVisit = Int64.min

    /// Buckets read per query.
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
            if let batch = try nextOldAnswers(now: now) { return batch }
            if let batch = try nextEndedGuests(now: now) { return batch }
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

    /// Answers of batches that are older than any client repeats them, before each pass over the buckets.
    private func nextOldAnswers(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        var batch = MaintenanceBatch()
        let old = try reader.batchAnswers(before: now - BatchAnswer.ageMax, limit: settings.rowsPerBatch)
        for place in old where batch.isEmpty || batch.byteCount + place.bytes <= settings.bytesPerBatch {
            batch.batchAnswers.append(place)
        }
        return batch.isEmpty ? nil : batch
    }

    /// Guests whose time is over, before each pass over the buckets. They log in no more since then.
    private func nextEndedGuests(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        var batch = MaintenanceBatch()
        let count = max(1, settings.rowsPerBatch / MaintenanceBatch.rowsPerGuest)
        (batch.endedGuests, batch.endedBy) = (try reader.endedGuests(by: now, limit: count), now)
        return batch.isEmpty ? nil : batch
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

    /// The next piece of the hashes whose retention time is over.
    private func nextForgetting(_ bucket: BucketRow, now: Int64) throws(StoreError) -> MaintenanceBatch? {
        let hashes = try reader.oldChangeIDs(
            in: bucket, before: now - settings.changeIDAgeMin, limit: settings.rowsPerBatch)
        // A piece that is not full is the last one. A repeated piece was not applied; it waits for the next visit.
        forgetful = hashes.count == settings.rowsPerBatch && hashes != forgotten ? bucket : nil
        defer { forgotten = hashes }
        guard !hashes.isEmpty, hashes != forgotten else { return nil }
        var batch = MaintenanceBatch()
        batch.forgettings = [.init(bucket: bucket, hashes: hashes)]
        return batch
    }

    /// The prefix of the log that may be cut, oldest first.
    private func rowsToCut(_ bucket: BucketRecord, now: Int64) throws(StoreError) -> [GlobalID] {
        // Positions count the changes of all buckets, so the distance is an upper bound of the bucket's own count.
        guard bucket.head - bucket.floor > Int64(settings.logChangesMin) else { return [] }
        let youngest = now - settings.logAgeMin
        return try reader.withState { (log) throws(StoreError) in
            var rows = [GlobalID]()
            var seen = 0
            var place = bucket.head
            while place > bucket.floor, let link = try log.changeLink(place) {
                seen += 1
                if seen > settings.logChangesMin {
                    // Clocks may step back: a younger row further down also keeps all rows after it.
                    if link.timestamp > youngest { rows.removeAll() } else { rows.append(place) }
                }
                guard link.previousOfBucket < place else { break }
                place = link.previousOfBucket
            }
            rows.reverse()
            return rows
        }
    }

    /// The next piece of the current bucket; nil when it is done or its floor has moved since the plan.
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
            for gid in work.rows.prefix(settings.rowsPerBatch) where !slice.isFull { try slice.visit(gid) }
            return try slice.finish()
        }
        pending = (work.bucket, cut.floor, work.rows.dropFirst(cut.rows.count))
        var batch = MaintenanceBatch()
        batch.cuts = [cut]
        return batch
    }
}

/// One piece of a cut under construction: follows every object through the rows that are cut.
private struct CutSlice {
    private struct Track {
        let head: EntityRecord
        var state: JSONObject?
        var version: Version
        /// Versions that were kept apart before this piece.
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
    /// Number of bodies that are written or may be dropped. Bodies kept earlier count when their object first appears.
    private var bodies = 0
    /// Bytes of these bodies and of the cut rows.
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

    mutating func visit(_ gid: GlobalID) throws(StoreError) {
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

    /// The state of the object before its first cut row.
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

    /// Keeps each object's body after its last cut row, and drops bodies kept earlier that are no longer needed.
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
