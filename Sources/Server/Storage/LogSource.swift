import ThicketProtocol

/// The primitive look-ups on which all reads of the log are built, over one state of the store.
protocol LogSource {
    func entityRecord(_ key: EntityKey, _ bucket: BucketRow) throws(StoreError) -> EntityRecord?
    func changeRecord(_ gid: GlobalID) throws(StoreError) -> ChangeRecord?
    func changeLink(_ gid: GlobalID) throws(StoreError) -> ChangeLink?
    /// The bucket and the links of a change, for following a bucket's log backwards.
    func logStep(_ gid: GlobalID) throws(StoreError) -> LogStep?
    func replayRow(_ gid: GlobalID) throws(StoreError) -> ReplayRow?
    func keptBody(_ key: EntityKey, _ version: Version, _ bucket: BucketRow) throws(StoreError) -> [UInt8]?
    /// Reads the bodies of these changes (newest first) in one pass where that is cheaper; `aheadBody` then returns
    /// them.
    func readAhead(_ gids: ArraySlice<GlobalID>) throws(StoreError)
    /// A body that `readAhead` has read. Must be called in the order in which `readAhead` received the gids.
    func aheadBody(_ gid: GlobalID) -> [UInt8]?
    /// The body that a segment holds for this change, if any.
    func segmentBody(_ gid: GlobalID, _ bucket: BucketRow) throws(StoreError) -> [UInt8]?
}

/// One step of a bucket's log, as an index scan reads it.
struct LogStep {
    let bucket: BucketRow
    let key: EntityKey
    let kind: ChangeKind
    let endVersion: Version
    let previousOfEntity: GlobalID
    let previousOfBucket: GlobalID
}

/// The columns of a log row that a replay needs.
struct ReplayRow {
    let kind: ChangeKind
    let sourceVersion: Version?
    let previousOfEntity: GlobalID
    let diff: [UInt8]
    let keyframe: [UInt8]?
}

/// The result of a replay.
struct Replayed {
    /// nil after a deletion.
    let body: [UInt8]?
    /// Diffs applied since the start of the replay (a keyframe, the creation or a kept body), and their total bytes.
    let diffs: Int
    let diffBytes: Int
}

extension LogSource {
    /// Body of an entity right after its change `gid`, which made `version`; nil when neither the log nor the kept
    /// bodies reach back to it.
    func replay(
        to gid: GlobalID, version: Version, _ key: EntityKey, _ bucket: BucketRow
    ) throws(StoreError) -> Replayed? {
        var pending = [[UInt8]]()
        var pendingBytes = 0
        var place = gid
        var placeVersion = version
        var base: [UInt8]?
        while true {
            guard let row = try replayRow(place) else {
                guard let kept = try keptBody(key, placeVersion, bucket) else { return nil }
                base = kept
                break
            }
            if row.kind == .remove { return place == gid ? Replayed(body: nil, diffs: 0, diffBytes: 0) : nil }
            if let body = row.keyframe {
                base = body
                break
            }
            pending.append(row.diff)
            pendingBytes += row.diff.count
            guard let source = row.sourceVersion else { break }
            guard row.previousOfEntity < place else {
                throw StoreError(.corrupt, "change \(place) follows change \(row.previousOfEntity) of its object")
            }
            place = row.previousOfEntity
            placeVersion = source
        }
        pending.reverse()
        let body = try BodyReplay.apply(pending, to: base, upTo: gid)
        return Replayed(body: body, diffs: pending.count, diffBytes: pendingBytes)
    }

    func entityHead(_ key: EntityKey, _ bucket: BucketRow) throws(StoreError) -> EntityHead? {
        guard let record = try entityRecord(key, bucket) else { return nil }
        if record.isDeleted {
            return EntityHead(record: record, body: nil, diffsSinceKeyframe: 0, diffBytesSinceKeyframe: 0)
        }
        guard let replayed = try replay(to: record.gid, version: record.version, key, bucket) else {
            throw StoreError(.corrupt, "the newest body of an object cannot be replayed from change \(record.gid)")
        }
        return EntityHead(
            record: record, body: replayed.body, diffsSinceKeyframe: replayed.diffs,
            diffBytesSinceKeyframe: replayed.diffBytes)
    }

    /// Body at any version that is kept: follows the keyframe links down to the last keyframe at or above the version,
    /// then the change links.
    func bodyAt(
        _ key: EntityKey, _ version: Version, _ bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]? {
        guard let record = try entityRecord(key, bucket), version <= record.version, version > 0 else {
            return nil
        }
        var place = record.gid
        var keyframe = record.keyframe
        while keyframe > 0, keyframe < place || place == record.gid, let link = try changeLink(keyframe),
            link.endVersion >= version
        {
            place = keyframe
            keyframe = link.previousKeyframe
        }
        while place > 0, let link = try changeLink(place), link.endVersion >= version {
            if link.endVersion == version {
                guard place <= upTo else { return nil }
                return try replay(to: place, version: version, key, bucket)?.body
            }
            guard link.previousOfEntity < place else {
                throw StoreError(.corrupt, "change \(place) follows change \(link.previousOfEntity) of its object")
            }
            place = link.previousOfEntity
        }
        return try keptBody(key, version, bucket)
    }

    func entityHistory(
        _ key: EntityKey, _ version: Version, _ bucket: BucketRow, limit: Int,
        bytesMax: Int = EntityHistory.bytesMax
    ) throws(StoreError) -> EntityHistory? {
        guard let record = try entityRecord(key, bucket), version <= record.version, version > 0 else {
            return nil
        }
        var changes = [ChangeRecord]()
        var place = record.gid
        var placeVersion = record.version
        var bytes = 0
        while placeVersion > version {
            guard changes.count < limit, bytes < bytesMax,
                let change = try changeRecord(place)
            else { return nil }
            bytes += change.diff.count + (change.keyframe?.count ?? 0)
            changes.append(change)
            place = change.previousOfEntity
            placeVersion = change.endVersion - 1
            if place == 0 { return nil }
        }
        changes.reverse()
        if let replayed = try replay(to: place, version: version, key, bucket) {
            return EntityHistory(base: replayed.body, changes: changes)
        }
        // The row is cut and no body was kept. That is valid only if the object was deleted at this version.
        if changes.isEmpty && record.isDeleted { return EntityHistory(base: nil, changes: []) }
        guard let first = changes.first, first.sourceVersion == nil, first.kind == .modify else {
            return nil
        }
        return EntityHistory(base: nil, changes: changes)
    }

    /// The gids of the bucket's changes above `after` and up to `upTo`, ascending.
    func logPositions(
        from head: GlobalID, after: GlobalID, upTo: GlobalID
    ) throws(StoreError) -> [GlobalID] {
        var found = [GlobalID]()
        var place = head
        while place > after {
            guard let link = try changeLink(place) else { break }
            if place <= upTo { found.append(place) }
            guard link.previousOfBucket < place else {
                throw StoreError(.corrupt, "change \(place) follows change \(link.previousOfBucket) of its bucket")
            }
            place = link.previousOfBucket
        }
        found.reverse()
        return found
    }

    /// A page of changes from the start of `positions`.
    func changePage(
        _ positions: ArraySlice<GlobalID>, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage {
        var changes = [ChangeRecord]()
        var bytes = 0
        for gid in positions.prefix(max(limit, 1)) {
            guard let change = try changeRecord(gid) else {
                throw StoreError(.corrupt, "change \(gid) is missing from its bucket's chain")
            }
            bytes += change.diff.count
            if !changes.isEmpty && bytes > byteLimit { break }
            changes.append(change)
        }
        return ChangePage(changes: changes, hasMore: changes.count < positions.count)
    }

    func readAhead(_ gids: ArraySlice<GlobalID>) throws(StoreError) {}
    func aheadBody(_ gid: GlobalID) -> [UInt8]? { nil }

    /// Maximum number of bodies read ahead in one pass.
    private static var aheadMax: Int { 64 }

    /// Body of the object at index `place` of the scan: from memory, from a segment or from the log.
    /// - Parameter ahead: the places for which the log has been read ahead.
    private func indexBody(
        _ place: Int, _ scan: IndexScan, _ query: IndexQuery, _ known: (any BodyCache)?, _ ahead: inout Range<Int>
    ) throws(StoreError) -> [UInt8] {
        let gid = scan.positions[place]
        if let body = known?.body(of: gid) { return body }
        if let body = try segmentBody(gid, query.bucket) { return body }
        if !ahead.contains(place) {
            ahead =
                query.oldestFirst
                ? max(0, place + 1 - Self.aheadMax)..<place + 1 : place..<min(place + Self.aheadMax, scan.count)
            try readAhead(scan.positions[ahead])
        }
        if let body = aheadBody(gid) { return body }
        let (key, version, _) = try scan.entry(place)
        guard let body = try replay(to: gid, version: version, key, query.bucket)?.body else {
            throw StoreError(.corrupt, "a listed object cannot be replayed from change \(gid)")
        }
        return body
    }

    /// A page of the scan: the entries after `query.before`. The byte limit may end it early.
    func page(
        _ query: IndexQuery, of scan: IndexScan, known: (any BodyCache)? = nil
    ) throws(StoreError) -> IndexSlice {
        var place = firstPlace(query, of: scan)
        var ahead = 0..<0
        var entries = [IndexEntry]()
        var bytes = 0
        while (0..<scan.count).contains(place), entries.count < max(query.limit, 1) {
            let (key, version, gid) = try scan.entry(place)
            var body: [UInt8]?
            if query.withData {
                let found = try indexBody(place, scan, query, known, &ahead)
                if !entries.isEmpty && bytes + found.count > query.byteLimit { break }
                bytes += found.count
                body = found
            }
            entries.append(IndexEntry(key: key, version: version, gid: gid, body: body))
            place += query.oldestFirst ? -1 : 1
        }
        let next = (0..<scan.count).contains(place) ? entries.last?.gid : nil
        return IndexSlice(entries: entries, next: next, total: scan.count)
    }

    /// The place of the page's first entry; outside of the scan for an empty page.
    private func firstPlace(_ query: IndexQuery, of scan: IndexScan) -> Int {
        guard query.oldestFirst else { return query.before.map { scan.firstBelow($0) } ?? 0 }
        return (query.before.map { scan.firstBelow($0 + 1) } ?? scan.count) - 1
    }

    /// The version and gid of one entity right after change `current`, for an index scan; nil when it did not exist
    /// then.
    func listed(
        _ record: EntityRecord, at current: GlobalID
    ) throws(StoreError) -> (version: Version, gid: GlobalID)? {
        if record.gid <= current { return record.isDeleted ? nil : (record.version, record.gid) }
        var place = record.gid
        while true {
            guard let link = try changeLink(place) else {
                throw StoreError(.corrupt, "change \(place) is missing from its object's chain")
            }
            let previous = link.previousOfEntity
            if previous > current {
                guard previous < place else {
                    throw StoreError(.corrupt, "change \(place) follows change \(previous) of its object")
                }
                place = previous
                continue
            }
            // `previous` is the state at `current`. If the change above it is a creation, the object did not exist
            // then.
            if link.kind == .modify {
                guard let source = link.sourceVersion, previous > 0 else { return nil }
                return (source, previous)
            }
            // A deletion always deletes an existing object, so the version before it was alive.
            return (link.endVersion - 1, previous)
        }
    }
}
