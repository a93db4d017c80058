import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

extension SQLiteReader: StoreReader {
    final func lastGlobalID() throws(StoreError) -> GlobalID {
        try storing("reading the newest change") { () throws(SQLiteError) in
            let logged = try database.integer("SELECT max(gid) FROM chg") ?? 0
            let newestHead = try database.integer("SELECT max(head) FROM bucket") ?? 0
            let (erased, archived) = (
                try Meta.integer(Meta.erased, database), try Meta.integer(Meta.heads, database)
            )
            return max(logged, newestHead, erased ?? 0, archived ?? 0)
        }
    }

    // MARK: Buckets

    final func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord? {
        try storing("reading a bucket") { () throws(SQLiteError) in
            try queries.bucket.bind(1, id.app.text).bind(2, id.user.text).bind(3, id.name.text).first { row in
                BucketRecord(
                    row: row.integer(0), id: id, head: row.integer(1), floor: row.integer(2),
                    mode: BucketMode(stored: row.integer(3)))
            }
        }
    }

    final func mode(ofNew name: BucketName, in app: AppID) throws(StoreError) -> BucketMode {
        try storing("reading a bucket's mode") { () throws(SQLiteError) in
            try database.mode(ofNew: name, in: app)
        }
    }

    final func buckets(of app: AppID, user: UserID) throws(StoreError) -> [BucketRecord] {
        try buckets { (take) throws(SQLiteError) in
            try database.statement(
                "SELECT id, app, owner, name, head, floor, mode FROM bucket WHERE app = ?1 AND owner = ?2 ORDER BY id"
            ).bind(1, app.text).bind(2, user.text).forEach(take)
        }
    }

    final func buckets(afterRow row: BucketRow, limit: Int) throws(StoreError) -> [BucketRecord] {
        try buckets { (take) throws(SQLiteError) in
            try database.statement(
                "SELECT id, app, owner, name, head, floor, mode FROM bucket WHERE id > ?1 ORDER BY id LIMIT ?2"
            ).bind(1, row).bind(2, Int64(limit)).forEach(take)
        }
    }

    private func buckets(
        _ query: ((Statement) throws(SQLiteError) -> Void) throws(SQLiteError) -> Void
    ) throws(StoreError) -> [BucketRecord] {
        typealias Raw = (
            row: BucketRow, app: String, user: String, name: String, head: GlobalID, floor: GlobalID, mode: BucketMode
        )
        var found = [Raw]()
        try storing("reading the buckets") { () throws(SQLiteError) in
            try query { (row) throws(SQLiteError) in
                found.append(
                    (
                        row.integer(0), row.text(1), row.text(2), row.text(3), row.integer(4), row.integer(5),
                        BucketMode(stored: row.integer(6))
                    ))
            }
        }
        var records = [BucketRecord]()
        for raw in found {
            let id = BucketID(
                app: try .stored(raw.app), user: try .stored(raw.user), name: try .stored(raw.name))
            records.append(
                BucketRecord(row: raw.row, id: id, head: raw.head, floor: raw.floor, mode: raw.mode))
        }
        return records
    }

    final func bucketRecord(_ row: BucketRow) throws(StoreError) -> (head: GlobalID, floor: GlobalID)? {
        try storing("reading a bucket") { () throws(SQLiteError) in
            try queries.bucketRow.bind(1, row).first { ($0.integer(0), $0.integer(1)) }
        }
    }

    // MARK: Objects

    final func entity(_ key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        try entityRecord(key, bucket)
    }

    final func head(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityHead? {
        try reading { () throws(StoreError) in try entityHead(key, bucket) }
    }

    final func body(
        of key: EntityKey, version: Version, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]? {
        try reading { () throws(StoreError) in try bodyAt(key, version, bucket, upTo: upTo) }
    }

    final func history(
        of key: EntityKey, after version: Version, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> EntityHistory? {
        try reading { () throws(StoreError) in try entityHistory(key, version, bucket, limit: limit) }
    }

    final func liveKeys(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityKey] {
        try reading { () throws(StoreError) in
            let late = try writeBehindHeads().heads(of: bucket, after: key)
            let count = limit + late.count
            var texts = [String]()
            try storing("listing keys") { () throws(SQLiteError) in
                try database.statement("SELECT k FROM ent WHERE b = ?1 AND k > ?2 AND dead = 0 ORDER BY k LIMIT ?3")
                    .bind(1, bucket).bind(2, key?.text ?? "").bind(3, Int64(count))
                    .forEach { (row) throws(SQLiteError) in texts.append(row.text(0)) }
            }
            var keys = [EntityKey]()
            for text in texts { keys.append(try .stored(text)) }
            if late.isEmpty { return keys }
            // A full page does not cover the keys after its last one; enough keys come before them.
            let last = keys.count == count ? keys.last : nil
            keys.removeAll { late[$0] != nil }
            for record in late.values where !record.isDeleted {
                if let last, last.precedes(record.key) { continue }
                keys.append(record.key)
            }
            return Array(keys.sorted { $0.precedes($1) }.prefix(limit))
        }
    }

    final func removedHeads(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityRecord] {
        try reading { () throws(StoreError) in
            let late = try writeBehindHeads().heads(of: bucket, after: key)
            let count = limit + late.count
            typealias Row = (key: String, version: Version, gid: GlobalID, keyframe: GlobalID)
            var rows = [Row]()
            try storing("listing removed objects") { () throws(SQLiteError) in
                try database.statement(
                    "SELECT k, ver, gid, kf FROM ent WHERE b = ?1 AND k > ?2 AND dead <> 0 ORDER BY k LIMIT ?3"
                ).bind(1, bucket).bind(2, key?.text ?? "").bind(3, Int64(count)).forEach { (row) throws(SQLiteError) in
                    rows.append((row.text(0), row.integer(1), row.integer(2), row.integer(3)))
                }
            }
            var heads = [EntityRecord]()
            for row in rows {
                heads.append(
                    EntityRecord(
                        key: try .stored(row.key), version: row.version, gid: row.gid, keyframe: row.keyframe,
                        isDeleted: true))
            }
            if late.isEmpty { return heads }
            // A full page does not cover the keys after its last one.
            let last = heads.count == count ? heads.last?.key : nil
            heads.removeAll { late[$0.key] != nil }
            for record in late.values where record.isDeleted {
                if let last, last.precedes(record.key) { continue }
                heads.append(record)
            }
            return Array(heads.sorted { $0.key.precedes($1.key) }.prefix(limit))
        }
    }

    // MARK: The log

    final func link(_ gid: GlobalID) throws(StoreError) -> ChangeLink? { try changeLink(gid) }

    final func change(_ gid: GlobalID) throws(StoreError) -> ChangeRecord? { try changeRecord(gid) }

    final func changes(
        in bucket: BucketRow, after: GlobalID, upTo: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage? {
        try reading { () throws(StoreError) in
            guard let record = try bucketRecord(bucket), after >= record.floor, after <= record.head else { return nil }
            let place = ReaderCache.CatchUpPlace(bucket: bucket, upTo: upTo)
            let known = readerCache.catchUp(place, after: after)
            let positions =
                if let known { known } else { try logPositions(from: record.head, after: after, upTo: upTo)[...] }
            let page = try changePage(positions, limit: limit, byteLimit: byteLimit)
            if !page.hasMore {
                readerCache.forgetCatchUp(place)
            } else if known == nil {
                readerCache.keep(ReaderCache.CatchUp(after: after, positions: Array(positions)), at: place)
            }
            return page
        }
    }

    final func indexPage(_ query: IndexQuery) throws(StoreError) -> IndexSlice? { try indexPage(query, bodies: nil) }

    final func indexPage(_ query: IndexQuery, known: any BodyCache) throws(StoreError) -> IndexSlice? {
        try indexPage(query, bodies: known)
    }

    private func indexPage(
        _ query: IndexQuery, bodies: (any BodyCache)?
    ) throws(StoreError) -> IndexSlice? {
        try reading { () throws(StoreError) in
            guard let record = try bucketRecord(query.bucket), query.current >= record.floor,
                query.current <= record.head
            else { return nil }
            if query.withData { segmentTop = (query.bucket, try newestSegment(of: query.bucket)) }
            defer { segmentTop = nil }
            let place = ReaderCache.ScanPlace(bucket: query.bucket, current: query.current)
            if let known = readerCache.scan(place) { return try page(query, of: known, known: bodies) }
            if query.asksForNewest, let newest = try newestObject(query, floor: record.floor) {
                return newest
            }
            let made =
                if let moved = try movedScan(place, floor: record.floor) { moved } else {
                    try scan(query.bucket, at: query.current)
                }
            readerCache.keep(made, at: place)
            return try page(query, of: made, known: bodies)
        }
    }

    /// An older scan of the bucket, updated by the changes since.
    private func movedScan(_ place: ReaderCache.ScanPlace, floor: GlobalID) throws(StoreError) -> IndexScan? {
        guard let old = readerCache.scan(before: place) else { return nil }
        return try moved(old.scan, of: place.bucket, from: old.current, to: place.current, floor: floor)
    }

    /// Reads the heads of the bucket; follows heads that are newer than `current` back to their state at `current`.
    final func scan(_ bucket: BucketRow, at current: GlobalID) throws(StoreError) -> IndexScan {
        let late = try writeBehindHeads().heads(of: bucket)
        let lateKeys = Set(late.keys.lazy.map(\.text))
        var builder = IndexScan.Builder()
        var moved = [(key: String, record: (version: Version, gid: GlobalID))]()
        for record in late.values {
            if record.gid > current {
                moved.append((record.key.text, (record.version, record.gid)))
            } else if !record.isDeleted {
                builder.add(key: record.key.text.utf8, version: record.version, gid: record.gid)
            }
        }
        try storing("listing the objects") { () throws(SQLiteError) in
            try queries.entities.bind(1, bucket).forEach { (row) throws(SQLiteError) in
                if !lateKeys.isEmpty, lateKeys.contains(row.text(0)) { return }
                let gid = row.integer(2)
                if gid > current {
                    moved.append((row.text(0), (row.integer(1), gid)))
                } else if row.integer(3) == 0 {
                    row.withBytes(0) { builder.add(key: $0, version: row.integer(1), gid: gid) }
                }
            }
        }
        for (text, record) in moved {
            let head = EntityRecord(
                key: try .stored(text), version: record.version, gid: record.gid, keyframe: 0, isDeleted: false)
            guard let found = try listed(head, at: current) else { continue }
            builder.add(key: text.utf8, version: found.version, gid: found.gid)
        }
        return builder.scan()
    }

    // MARK: ccids

    /// The hash of one change's ccid, and the previous change of the bucket.
    final func changeIDEntry(
        _ gid: GlobalID
    ) throws(StoreError) -> (entry: ChangeIDEntry, previousOfBucket: GlobalID) {
        let row: (previous: GlobalID, changeID: PackedChangeID)? = try storing("reading a ccid") {
            () throws(SQLiteError) in
            try queries.changeID.bind(1, gid).first { ($0.integer(0), PackedChangeID($0, 1)) }
        }
        guard let row, row.previous < gid, let text: String = row.changeID.changeIDText else {
            throw StoreError(.corrupt, "change \(gid) of a bucket's chain is missing or broken")
        }
        return (ChangeIDEntry(hash: identity.hash(of: try .stored(text)), gid: gid), row.previous)
    }

    final func changeIDTail(of bucket: BucketRow) throws(StoreError) -> ChangeIDTail {
        try reading { () throws(StoreError) in
            typealias Marks = (head: GlobalID, floor: GlobalID, archived: GlobalID)
            let marks: Marks? = try storing("reading a bucket") { () throws(SQLiteError) in
                try queries.bucketMarks.bind(1, bucket).first { ($0.integer(0), $0.integer(1), $0.integer(2)) }
            }
            guard let marks else { return ChangeIDTail(entries: [], archived: 0) }
            var entries = [ChangeIDEntry]()
            var place: GlobalID = marks.head
            while place > max(marks.floor, marks.archived) {
                let found = try changeIDEntry(place)
                entries.append(found.entry)
                place = found.previousOfBucket
            }
            return ChangeIDTail(entries: entries, archived: marks.archived)
        }
    }

    /// Whether the hash belongs to a ccid whose row was cut.
    final func isOldChangeID(_ hash: UInt64, in bucket: BucketRow) throws(StoreError) -> Bool {
        try storing("looking for an old ccid") { () throws(SQLiteError) in
            try queries.oldChangeID.bind(1, bucket).bind(2, Int64(bitPattern: hash)).first { _ in true } ?? false
        }
    }

    final func confirms(_ changeID: ChangeID, at gid: GlobalID) throws(StoreError) -> Bool {
        let wanted = PackedChangeID(changeID)
        return try storing("reading a ccid") { () throws(SQLiteError) in
            try queries.changeID.bind(1, gid).first { PackedChangeID($0, 1) == wanted } ?? false
        }
    }

    // MARK: Apps and tokens

    final func hasApp(_ app: AppID) throws(StoreError) -> Bool {
        try storing("looking for an app") { () throws(SQLiteError) in
            try database.statement("SELECT 1 FROM app WHERE name = ?1").bind(1, app.text).first { _ in true } ?? false
        }
    }

    final func hasEnded(_ user: UserID, in app: AppID) throws(StoreError) -> Bool {
        try storing("looking for ended accounts") { () throws(SQLiteError) in
            try database.statement("SELECT 1 FROM erasure WHERE app = ?1 AND user = ?2")
                .bind(1, app.text).bind(2, user.text).first { _ in true } ?? false
        }
    }

    final func isAdminKey(hash: [UInt8], of app: AppID) throws(StoreError) -> Bool {
        try storing("looking for a key") { () throws(SQLiteError) in
            try database.statement("SELECT 1 FROM app_key WHERE hash = ?1 AND app = ?2 AND is_admin <> 0")
                .bind(1, hash).bind(2, app.text).first { _ in true } ?? false
        }
    }

    final func grant(tokenHash: [UInt8]) throws(StoreError) -> TokenGrant? {
        typealias Row = (
            app: String, user: String, isReadOnly: Bool, expires: Int64?, name: String?, owner: String?, root: String?,
            bytes: Int64?, end: Int64?
        )
        let found: Row? = try storing("looking for a token") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT t.app, t.user, t.read_only, t.expires, a.name, g.owner, g.root, g.bytes_max, g.expires
                FROM token AS t
                LEFT JOIN account AS a ON a.user = t.user AND a.app = t.app
                LEFT JOIN guest AS g ON g.user = t.user AND g.app = t.app
                WHERE t.hash = ?1 AND NOT EXISTS (SELECT 1 FROM erasure AS e WHERE e.app = t.app AND e.user = t.user)
                """
            ).bind(1, tokenHash).first {
                (
                    $0.text(0), $0.text(1), $0.integer(2) != 0, $0.optionalInteger(3),
                    $0.isNull(4) ? nil : $0.text(4), $0.isNull(5) ? nil : $0.text(5),
                    $0.isNull(6) ? nil : $0.text(6), $0.optionalInteger(7), $0.optionalInteger(8)
                )
            }
        }
        guard let found else { return nil }
        let user: UserID = try .stored(found.user)
        var name: UserID?
        if let text = found.name { name = try .stored(text) }
        var guest: GuestGrant?
        if let owner = found.owner, let root = found.root.flatMap(NodeID.init(text:)) {
            guest = GuestGrant(owner: try .stored(owner), root: root, bytesMax: found.bytes ?? 0)
        }
        return TokenGrant(
            app: try .stored(found.app), user: user, isReadOnly: found.isReadOnly, name: name,
            expires: [found.expires, found.end].compactMap(\.self).min(), guest: guest)
    }
}

extension BucketMode {
    /// An unknown number was written by a later program. It counts as sealed, so that no clear text is written to the
    /// bucket.
    init(stored: Int64) { self = .init(rawValue: stored) ?? .sealed }
}

extension Database {
    /// `StoreReader.mode(ofNew:in:)`, which also works inside a write transaction.
    func mode(ofNew name: BucketName, in app: AppID) throws(SQLiteError) -> BucketMode {
        let stored = try statement("SELECT mode FROM bucket_mode WHERE app = ?1 AND name = ?2")
            .bind(1, app.text).bind(2, name.text).first { $0.integer(0) }
        return stored.map { BucketMode(stored: $0) } ?? .open
    }
}
