import ThicketProtocol
import ThicketSQLite

/// Finds the ccids of the older part of a bucket's log by their hashes, and caches the blocks it reads.
///
/// A bucket has at most about `changeIDRunsMax` blocks in log order (`idrun`), and everything older in blocks by hash
/// (`idset`), of which a look-up reads at most one. Used only with the connection that writes these blocks.
struct ArchivedChangeIDs {
    private struct Directory: Sendable {
        let runs: [ChangeIDBlock]
        /// First hash and row of each block by hash, ascending.
        let lows: [UInt64]
        let rows: [Int64]

        var bytes: Int { runs.reduce(200 + 16 * lows.count) { $0 + $1.bytes.count } }
    }

    private var directories = RecencyMap<BucketRow, Directory>()
    /// By row. Rows are never reused, so replaced blocks simply expire from the cache.
    private var blocks = RecencyMap<Int64, ChangeIDBlock>()
    private let directoryBytesMax: Int
    private let blockBytesMax: Int

    /// Maximum number of cached directories, and of cached blocks.
    private static let countMax = 8_192

    /// - Parameter bytesMax: maximum bytes of the cache.
    init(bytesMax: Int) {
        directoryBytesMax = bytesMax / 4
        blockBytesMax = bytesMax - bytesMax / 4
    }

    /// Bytes in the cache.
    var memory: Int { directories.weight + blocks.weight }

    /// Must be called when the bucket's blocks have changed.
    mutating func forget(_ bucket: BucketRow) { directories.remove(bucket) }

    mutating func position(
        of hash: UInt64, in bucket: BucketRow, _ database: Database
    ) throws(StoreError) -> GlobalID? {
        let directory = try directory(bucket, database)
        for run in directory.runs.reversed() {
            if let gid = run.position(of: hash) { return gid }
        }
        guard let place = Self.place(of: hash, in: directory.lows) else { return nil }
        return try block(directory.rows[place], database).position(of: hash)
    }

    /// The last block that begins at or before the hash.
    private static func place(of hash: UInt64, in lows: [UInt64]) -> Int? {
        var low = 0
        var high = lows.count
        while low < high {
            let middle = (low + high) / 2
            if lows[middle] <= hash { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? low - 1 : nil
    }

    private mutating func directory(_ bucket: BucketRow, _ database: Database) throws(StoreError) -> Directory {
        if let known = directories[bucket] { return known }
        var contents = [[UInt8]]()
        var lows = [UInt64]()
        var rows = [Int64]()
        try storing("looking for archived ccids") { () throws(SQLiteError) in
            try database.statement("SELECT entries FROM idrun WHERE b = ?1 ORDER BY high").bind(1, bucket)
                .forEach { (row) throws(SQLiteError) in contents.append(row.bytes(0)) }
            try database.statement("SELECT low, id FROM idset WHERE b = ?1 ORDER BY low").bind(1, bucket)
                .forEach { (row) throws(SQLiteError) in
                    lows.append(UInt64(column: row.integer(0)))
                    rows.append(row.integer(1))
                }
        }
        var runs = [ChangeIDBlock]()
        for content in contents { runs.append(try ChangeIDBlock(content)) }
        let made = Directory(runs: runs, lows: lows, rows: rows)
        directories.set(bucket, made, weight: made.bytes)
        directories.shrink(toWeight: directoryBytesMax, count: Self.countMax)
        return made
    }

    private mutating func block(_ row: Int64, _ database: Database) throws(StoreError) -> ChangeIDBlock {
        if let known = blocks[row] { return known }
        let content = try storing("reading archived ccids") { () throws(SQLiteError) in
            try database.statement("SELECT entries FROM idset WHERE id = ?1").bind(1, row).first { $0.bytes(0) }
        }
        guard let content else { throw StoreError(.corrupt, "a block of ccids is missing") }
        let block = try ChangeIDBlock(content)
        blocks.set(row, block, weight: content.count)
        blocks.shrink(toWeight: blockBytesMax, count: Self.countMax)
        return block
    }
}
