import ThicketProtocol
import ThicketSQLite

/// Plans the segments of buckets with many changes: new bodies go into segments at the top, and segments that have
/// become small, or that mostly hold superseded bodies, are rewritten together.
///
/// Segments cover consecutive ranges of gids. An object that changes moves to the top and leaves an obsolete copy
/// below, so a bucket's segments hold at most about twice the live data.
final class SegmentPlanner {
    private struct Job {
        let bucket: BucketRow
        /// The range that is rewritten: gids above `above`, up to `through`.
        var above: GlobalID
        let through: GlobalID
        /// Existing segments in the range that are replaced, oldest first.
        var replaced: ArraySlice<Existing>
        /// Live objects in the range, oldest change first.
        var objects: ArraySlice<(key: EntityKey, version: Version, gid: GlobalID)>
        let freshBytes: Int64
    }

    private struct Existing {
        let above: GlobalID
        let high: GlobalID
        let count: Int64
        let bytes: Int64
        var live: Int64 = 0
    }

    private let reader: SQLiteReader
    private let settings: RetentionSettings
    private var jobs = [Job]()
    private var nextLook = Int64.min
    /// State of the bucket at the latest plan. If the next look finds the same state, the plan was not applied, and the
    /// planner waits for the next interval.
    private var planned: (row: BucketRow, head: GlobalID, fresh: Int64)?

    /// A bucket with fewer objects is read from the log just as fast.
    private static let objectsMin = 32

    init(_ reader: SQLiteReader, _ settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        if jobs.isEmpty {
            guard now >= nextLook else { return nil }
            try plan()
            if jobs.isEmpty { nextLook = now + settings.segmentInterval }
        }
        guard let job = jobs.popLast() else { return nil }
        return try reader.reading { () throws(StoreError) in try run(job) }
    }

    // MARK: What to write

    private func plan() throws(StoreError) {
        let found: (row: BucketRow, head: GlobalID, fresh: Int64)? = try storing("looking for fresh buckets") {
            () throws(SQLiteError) in
            try reader.database.statement(
                "SELECT id, head, fresh FROM bucket WHERE fresh >= ?1 ORDER BY fresh DESC LIMIT 1"
            ).bind(1, Int64(settings.segmentLogBytesMin)).first { ($0.integer(0), $0.integer(1), $0.integer(2)) }
        }
        guard let found else {
            planned = nil
            return
        }
        if let planned, planned == found {
            self.planned = nil
            return
        }
        planned = found
        try reader.reading { () throws(StoreError) in
            let scan: IndexScan = try reader.scan(found.row, at: found.head)
            var existing = try self.existing(found.row)
            guard scan.count >= Self.objectsMin || !existing.isEmpty else {
                jobs = [
                    Job(
                        bucket: found.row, above: found.head, through: found.head, replaced: [], objects: [],
                        freshBytes: found.fresh)
                ]
                return
            }
            count(scan, in: &existing)
            jobs = try ranges(existing, head: found.head).enumerated().map { (place, range) throws(StoreError) in
                Job(
                    bucket: found.row, above: range.above, through: range.through,
                    replaced: existing.filter { $0.high > range.above && $0.high <= range.through }[...],
                    objects: try objects(of: scan, range)[...], freshBytes: place == 0 ? found.fresh : 0)
            }
        }
    }

    private func existing(_ bucket: BucketRow) throws(StoreError) -> [Existing] {
        var existing = [Existing]()
        try storing("listing segments") { () throws(SQLiteError) in
            try reader.database.statement("SELECT high, count, bytes FROM seg WHERE b = ?1 ORDER BY high")
                .bind(1, bucket).forEach { (row) throws(SQLiteError) in
                    existing.append(
                        Existing(
                            above: existing.last?.high ?? 0, high: row.integer(0), count: row.integer(1),
                            bytes: row.integer(2)))
                }
        }
        return existing
    }

    private func count(_ scan: IndexScan, in existing: inout [Existing]) {
        var place = existing.count - 1
        for gid in scan.positions {
            while place >= 0, gid <= existing[place].above { place -= 1 }
            if place >= 0, gid <= existing[place].high { existing[place].live += 1 }
        }
    }

    /// Ranges to write, newest first; the first one includes everything that is in no segment yet.
    private func ranges(_ existing: [Existing], head: GlobalID) -> [(above: GlobalID, through: GlobalID)] {
        var ranges = [(above: GlobalID, through: GlobalID)]()
        var place = existing.count - 1
        var above = existing.last?.high ?? 0
        while place >= 0, isPoor(existing[place]) {
            above = existing[place].above
            place -= 1
        }
        ranges.append((above, head))
        while place >= 0 {
            // Below the top only obsolete bodies count: a small segment between two full ones does no harm.
            guard existing[place].live * 2 < existing[place].count else {
                place -= 1
                continue
            }
            let through = existing[place].high
            while place >= 0, existing[place].live * 2 < existing[place].count { place -= 1 }
            ranges.append((place >= 0 ? existing[place].high : 0, through))
        }
        return ranges
    }

    private func isPoor(_ segment: Existing) -> Bool {
        segment.live * 2 < segment.count || segment.bytes * 2 < Int64(settings.segmentBytes)
    }

    private func objects(
        of scan: IndexScan, _ range: (above: GlobalID, through: GlobalID)
    ) throws(StoreError) -> [(key: EntityKey, version: Version, gid: GlobalID)] {
        var objects = [(key: EntityKey, version: Version, gid: GlobalID)]()
        var place = scan.firstBelow(range.through + 1)
        while place < scan.count {
            let (key, version, gid) = try scan.entry(place)
            guard gid > range.above else { break }
            objects.append((key, version, gid))
            place += 1
        }
        objects.reverse()
        return objects
    }

    // MARK: Writing

    /// The next piece of a job; the rest of the job is queued again.
    private func run(_ job: Job) throws(StoreError) -> MaintenanceBatch {
        var job = job
        var segments = [MaintenanceBatch.Segment]()
        var builder = Segment.Builder()
        var bytes = 0
        // When many segments are replaced, a piece ends at the end of one of them, because deleting them is work too.
        let gone = job.replaced.prefix(replacedPerBatch)
        let end = gone.count < job.replaced.count ? gone.last?.high ?? job.through : job.through
        while let object = job.objects.first, object.gid <= end, bytes < settings.bytesPerBatch {
            job.objects.removeFirst()
            // A body that retention has removed since planning belongs to an object that has changed; it is not needed
            // here.
            guard let body = try body(object, job.bucket) else { continue }
            if builder.count > 0, builder.byteCount + body.count > settings.segmentBytes {
                segments.append(builder.segment(high: builder.newest))
                builder = .init()
            }
            builder.add(object.gid, object.version, object.key, body)
            bytes += body.count
        }
        let isWhole = job.objects.first.map { $0.gid > end } ?? true
        if builder.count > 0 { segments.append(builder.segment(high: isWhole ? end : builder.newest)) }
        let through = isWhole ? end : segments.last?.high ?? job.above
        let isDone = through == job.through
        let replaced = job.replaced.prefix { $0.high <= through }
        var batch = MaintenanceBatch()
        batch.segments = [
            .init(
                bucket: job.bucket, above: job.above, through: through, replaced: replaced.count,
                replacedBytes: replaced.reduce(0) { $0 + Int($1.bytes) }, segments: segments,
                freshBytes: isDone ? job.freshBytes : 0)
        ]
        if !isDone {
            job.above = through
            job.replaced = job.replaced.dropFirst(replaced.count)
            jobs.append(job)
        }
        return batch
    }

    /// Maximum number of segments deleted in one piece.
    private var replacedPerBatch: Int { max(1, settings.bytesPerBatch / max(settings.segmentBytes, 1)) }

    private func body(
        _ object: (key: EntityKey, version: Version, gid: GlobalID), _ bucket: BucketRow
    ) throws(StoreError) -> [UInt8]? {
        if let body = try reader.segmentBody(object.gid, bucket) { return body }
        return try reader.replay(to: object.gid, version: object.version, object.key, bucket)?.body
    }
}

extension Segment.Builder {
    fileprivate func segment(high: GlobalID) -> MaintenanceBatch.Segment {
        MaintenanceBatch.Segment(high: high, count: count, content: content())
    }
}
