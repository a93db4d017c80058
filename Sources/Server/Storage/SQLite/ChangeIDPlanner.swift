import ThicketProtocol
import ThicketSQLite

/// Plans how ccids are archived. The ccids of each further stretch of a bucket's log become a block in log order
/// (`idrun`); when there are many such blocks, they are merged into the blocks that are ordered by hash (`idset`).
///
/// A shard that loads a bucket therefore reads only a short tail of the log, regardless of the log's length. A merge
/// may be interrupted at any point: entries that are in both places are still found, and the next merge starts from the
/// beginning.
final class ChangeIDPlanner {
    private struct Stretch {
        let bucket: BucketRow
        var archived: GlobalID
        /// Changes above `archived`, oldest first.
        var positions: ArraySlice<GlobalID>
        /// Changes that the bucket counted as not archived, minus those that were found: retention has cut them from
        /// the log since.
        var gone: Int64
    }

    private struct Merge {
        let bucket: BucketRow
        /// The newest change in the merged runs.
        let through: GlobalID
        /// Number of these runs, and their bytes.
        let runs: Int
        let runBytes: Int
        /// All entries of the runs, ascending by hash.
        var entries: ArraySlice<ChangeIDEntry>
        /// First hashes of the remaining blocks and their rows, ascending.
        var blocks: ArraySlice<(low: UInt64, row: Int64)>
        /// First hash of the range that is not merged yet.
        var first: UInt64
    }

    private let reader: SQLiteReader
    private let settings: RetentionSettings
    private var stretch: Stretch?
    /// Runs planned since the last check for runs to merge.
    private var runs = 0
    private var merge: Merge?
    private var nextLook = Int64.min
    /// The last plan. If the next look finds the same plan, it was not applied, and the planner waits for the next
    /// interval.
    private var planned: (row: BucketRow, archived: GlobalID, loose: Int64)?
    private var merged: (row: BucketRow, through: GlobalID)?

    init(_ reader: SQLiteReader, _ settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        while true {
            if merge != nil { return try reader.reading { () throws(StoreError) in try nextPiece() } }
            if stretch != nil, runs < settings.changeIDRunsMax {
                runs += 1
                let run = try reader.reading { () throws(StoreError) in try nextRun() }
                if let run { return run }
            }
            guard now >= nextLook || stretch != nil else { return nil }
            // Keeps runs from piling up during a long stretch: all runs of a bucket are read when the bucket is loaded.
            runs = 0
            try reader.reading { () throws(StoreError) in
                try planMerge()
                if merge == nil && stretch == nil { try planStretch() }
            }
            if merge == nil && stretch == nil { nextLook = now + settings.changeIDInterval }
        }
    }

    // MARK: Runs

    private func planStretch() throws(StoreError) {
        typealias Found = (row: BucketRow, head: GlobalID, floor: GlobalID, archived: GlobalID, loose: Int64)
        let found: Found? = try storing("looking for ccids to archive") { () throws(SQLiteError) in
            try reader.database.statement(
                """
                SELECT id, head, floor, settled, loose FROM bucket WHERE loose >= ?1 ORDER BY loose DESC LIMIT 1
                """
            ).bind(1, Int64(settings.changeIDsLooseMin)).first {
                ($0.integer(0), $0.integer(1), $0.integer(2), $0.integer(3), $0.integer(4))
            }
        }
        guard let found, planned.map({ $0 != (found.row, found.archived, found.loose) }) ?? true else {
            planned = nil
            return
        }
        planned = (found.row, found.archived, found.loose)
        let positions: [GlobalID] = try reader.logPositions(
            from: found.head, after: max(found.archived, found.floor), upTo: found.head)
        stretch = Stretch(
            bucket: found.row, archived: found.archived, positions: positions[...],
            gone: max(found.loose - Int64(positions.count), 0))
    }

    private func nextRun() throws(StoreError) -> MaintenanceBatch? {
        guard var work = stretch else { return nil }
        let part = work.positions.prefix(settings.changeIDsPerBlock)
        guard part.count == settings.changeIDsPerBlock || work.gone > 0 else {
            stretch = nil
            return nil
        }
        // Less than a full block is left: only the counter is corrected.
        let isWhole = part.count == settings.changeIDsPerBlock
        var entries = [ChangeIDEntry]()
        if isWhole {
            for gid in part { entries.append(try reader.changeIDEntry(gid).entry) }
        }
        let archived = isWhole ? part.last ?? work.archived : work.archived
        var batch = MaintenanceBatch()
        batch.changeIDRuns = [
            .init(
                bucket: work.bucket, archivedBefore: work.archived, archived: archived,
                block: ChangeIDBlock(sorted: entries.sorted { $0.hash < $1.hash }).bytes,
                count: Int64(entries.count) + work.gone)
        ]
        work.gone = 0
        work.archived = archived
        work.positions = work.positions.dropFirst(entries.count)
        stretch = isWhole ? work : nil
        return batch
    }

    // MARK: Merges

    private func planMerge() throws(StoreError) {
        let found: (row: BucketRow, through: GlobalID)? = try storing("looking for ccids to merge") {
            () throws(SQLiteError) in
            // The oldest runs. The limit bounds the entries of one piece, however many runs there are.
            let bucket: BucketRow? = try reader.database.statement(
                "SELECT b FROM idrun GROUP BY b HAVING count(*) >= ?1 LIMIT 1"
            ).bind(1, Int64(settings.changeIDRunsMax)).first { $0.integer(0) }
            guard let bucket else { return nil }
            return try reader.database.statement("SELECT high FROM idrun WHERE b = ?1 ORDER BY high LIMIT 1 OFFSET ?2")
                .bind(1, bucket).bind(2, Int64(settings.changeIDRunsMax - 1)).first { (bucket, $0.integer(0)) }
        }
        guard let found, merged.map({ $0 != found }) ?? true else {
            merged = nil
            return
        }
        merged = found
        var contents = [[UInt8]]()
        var blocks = [(low: UInt64, row: Int64)]()
        try storing("listing blocks of ccids") { () throws(SQLiteError) in
            try reader.database.statement("SELECT entries FROM idrun WHERE b = ?1 AND high <= ?2")
                .bind(1, found.row).bind(2, found.through).forEach { (row) throws(SQLiteError) in
                    contents.append(row.bytes(0))
                }
            try reader.database.statement("SELECT low, id FROM idset WHERE b = ?1 ORDER BY low").bind(1, found.row)
                .forEach { (row) throws(SQLiteError) in
                    blocks.append((UInt64(column: row.integer(0)), row.integer(1)))
                }
        }
        var entries = [ChangeIDEntry]()
        for content in contents { entries += try ChangeIDBlock(content).entries }
        entries.sort { $0.hash < $1.hash }
        merge = Merge(
            bucket: found.row, through: found.through, runs: contents.count,
            runBytes: contents.reduce(0) { $0 + $1.count }, entries: entries[...], blocks: blocks[...], first: 0)
    }

    /// Rewrites the next blocks, as many as fit in one transaction.
    private func nextPiece() throws(StoreError) -> MaintenanceBatch? {
        guard var work = merge else { return nil }
        let floor = try reader.bucketRecord(work.bucket)?.floor ?? 0
        var old = [ChangeIDEntry]()
        let blocksBefore = work.blocks.count
        while let block = work.blocks.first,
            old.count * ChangeIDBlock.entryBytes < max(settings.bytesPerBatch / 2, 1)
        {
            work.blocks.removeFirst()
            old += try contents(of: block.row)
        }
        let last = work.blocks.first.map { $0.low - 1 } ?? .max
        let fresh = work.entries.prefix { $0.hash <= last }
        work.entries = work.entries.dropFirst(fresh.count)
        let all = Self.merged(old, fresh).filter { $0.gid > floor }
        var batch = MaintenanceBatch()
        batch.changeIDMerges = [
            .init(
                bucket: work.bucket, first: work.first, last: last, blocks: cut(all, first: work.first),
                replaced: blocksBefore - work.blocks.count + (last == .max ? work.runs : 0),
                replacedBytes: old.count * ChangeIDBlock.entryBytes + (last == .max ? work.runBytes : 0),
                mergedRuns: last == .max ? work.through : nil)
        ]
        work.first = last &+ 1
        merge = last == .max ? nil : work
        return batch
    }

    private func contents(of row: Int64) throws(StoreError) -> [ChangeIDEntry] {
        let content = try storing("reading a block of ccids") { () throws(SQLiteError) in
            try reader.database.statement("SELECT entries FROM idset WHERE id = ?1").bind(1, row).first { $0.bytes(0) }
        }
        guard let content else { throw StoreError(.corrupt, "a block of ccids is missing") }
        return try ChangeIDBlock(content).entries
    }

    /// Merges both in hash order without duplicates: an interrupted merge leaves entries in both.
    private static func merged(_ old: [ChangeIDEntry], _ fresh: ArraySlice<ChangeIDEntry>) -> [ChangeIDEntry] {
        var result = [ChangeIDEntry]()
        result.reserveCapacity(old.count + fresh.count)
        var rest = fresh
        for entry in old {
            while let next = rest.first, next.hash <= entry.hash {
                rest.removeFirst()
                if next != entry { result.append(next) }
            }
            result.append(entry)
        }
        return result + rest
    }

    private func cut(_ entries: [ChangeIDEntry], first: UInt64) -> [MaintenanceBatch.HashBlock] {
        var blocks = [MaintenanceBatch.HashBlock]()
        var place = 0
        repeat {
            var end = min(place + settings.changeIDsPerBlock, entries.count)
            // Equal hashes stay in one block, so that a look-up reads one block.
            while end < entries.count, entries[end].hash == entries[end - 1].hash { end += 1 }
            blocks.append(
                .init(
                    low: place == 0 ? first : entries[place].hash,
                    block: ChangeIDBlock(sorted: entries[place..<end]).bytes))
            place = end
        } while place < entries.count
        return blocks
    }
}
