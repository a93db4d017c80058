import ThicketProtocol
import ThicketSQLite

/// Audits the blobs that maintenance builds: segments of bodies, blocks of ccids.
extension StoreAuditor {
    // MARK: Segments

    /// Checks that every live object up to the end of the newest segment is in the segment that covers it, with the
    /// right content.
    /// - Parameter live: the newest changes of all live objects.
    func auditSegments(_ bucket: BucketRecord, _ live: [GlobalID]) throws(StoreError) {
        var rows = [(id: Int64, high: GlobalID, count: Int64)]()
        try storing("listing segments") { () throws(SQLiteError) in
            try reader.database.statement("SELECT id, high, count FROM seg WHERE b = ?1 ORDER BY high")
                .bind(1, bucket.row).forEach { (row) throws(SQLiteError) in
                    rows.append((row.integer(0), row.integer(1), row.integer(2)))
                }
        }
        guard let top = rows.last?.high else { return }
        var placed = 0
        var above: GlobalID = 0
        for row in rows {
            findings.segments += 1
            try reportingCorruption("bucket \(bucket.row), segment \(row.id)") { () throws(StoreError) in
                placed += try auditSegment(row.id, above..<row.high, row.count, bucket)
            }
            above = row.high
        }
        let below = live.count { $0 <= top }
        if below != placed {
            findings.report("bucket \(bucket.row): \(below) live objects below \(top), \(placed) of them in segments")
        }
    }

    /// - Parameter range: the segment covers gids above the lower bound, up to the upper bound.
    /// - Returns: the number of live objects that this segment covers.
    private func auditSegment(
        _ row: Int64, _ range: Range<GlobalID>, _ count: Int64, _ bucket: BucketRecord
    ) throws(StoreError) -> Int {
        let content = try storing("reading a segment") { () throws(SQLiteError) in
            try reader.database.statement("SELECT content FROM seg WHERE id = ?1").bind(1, row).first { $0.bytes(0) }
                ?? []
        }
        guard let segment = Segment(content), segment.count == count else { throw broken("it is not a segment") }
        var above: GlobalID = range.upperBound + 1
        var placed = 0
        for place in 0..<segment.count {
            let gid = segment.gid(place)
            guard gid < above else { throw broken("its objects are not newest first") }
            above = gid
            let key: EntityKey = try .stored(segment.key(place))
            guard let head: EntityRecord = try reader.entityRecord(key, bucket.row), head.gid == gid else { continue }
            guard head.version == segment.version(place) else { throw broken("change \(gid) has another version here") }
            guard let body: [UInt8] = try reader.replay(to: gid, version: head.version, key, bucket.row)?.body,
                try BodyReplay.parse(body, gid) == BodyReplay.parse(segment.body(place), gid)
            else { throw broken("change \(gid) has another body here") }
            // A partly replaced segment still holds bodies that the newer segment covers; they are not counted.
            if gid > range.lowerBound { placed += 1 }
        }
        return placed
    }

    // MARK: ccids

    /// Checks that every archived change is found by the hash of its ccid, with the server's own look-up.
    func auditChangeIDs(_ bucket: BucketRecord) throws(StoreError) {
        let archived: GlobalID = try storing("reading a bucket") { () throws(SQLiteError) in
            try reader.queries.bucketMarks.bind(1, bucket.row).first { $0.integer(2) } ?? 0
        }
        guard archived > 0 else { return }
        if archived > bucket.head { findings.report("bucket \(bucket.row): ccids are archived beyond the head") }
        try reportingCorruption("bucket \(bucket.row), its ccids") { () throws(StoreError) in
            var blocks = ArchivedChangeIDs(bytesMax: 64 << 20)
            var missing = 0
            var place = bucket.head
            while place > bucket.floor {
                let found = try reader.changeIDEntry(place)
                if place <= archived,
                    try blocks.position(of: found.entry.hash, in: bucket.row, reader.database) != place
                {
                    missing += 1
                }
                place = found.previousOfBucket
            }
            if missing > 0 { throw broken("\(missing) changes are not found by their ccid") }
        }
    }
}
