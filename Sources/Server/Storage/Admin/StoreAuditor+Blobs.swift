import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

// Checks that records, the table of nodes, the rows of blobs and their counters agree, and that the files are there.
extension StoreAuditor {
    /// Checks that the table of nodes has the reference of a live record, and that the blob is there for it.
    func auditReference(_ record: NodeRecord, at node: NodeID, in bucket: BucketRow) throws(StoreError) {
        let (stored, length) = try storing("reading a reference") { () throws(SQLiteError) in
            let row: (blob: [UInt8]?, length: Int64?)? = try reader.database.statement(
                """
                SELECT n.blob, l.length FROM node AS n LEFT JOIN blob AS l ON l.id = n.blob WHERE n.b = ?1 AND n.id = ?2
                """
            ).bind(1, bucket).bind(2, node.octets).first { ($0.optionalBytes(0), $0.optionalInteger(1)) }
            return (row?.blob, row?.length)
        }
        guard case .blob(_, let wanted, let blob)? = record.data else {
            if stored != nil { throw broken("the table of nodes has a blob that the record does not refer to") }
            return
        }
        guard stored == blob.octets else { throw broken("the table of nodes does not have its blob") }
        guard let length else { throw broken("its blob is not in the table of blobs") }
        guard length == Int64(wanted) else { throw broken("its blob has another length") }
    }

    /// Checks the rows of all blobs.
    func auditBlobs() throws(StoreError) {
        let (lost, unmarked, marked, counters) = try storing("checking blobs") { () throws(SQLiteError) in
            (
                try count("node WHERE blob IS NOT NULL AND blob NOT IN (SELECT id FROM blob)"),
                try count("blob WHERE orphaned IS NULL AND NOT EXISTS (SELECT 1 FROM node WHERE node.blob = blob.id)"),
                try count("blob WHERE orphaned IS NOT NULL AND EXISTS (SELECT 1 FROM node WHERE node.blob = blob.id)"),
                try count(Self.wrongCounters)
            )
        }
        if lost > 0 { findings.report("blobs: \(lost) nodes refer to blobs that are not in the table") }
        if unmarked > 0 { findings.report("blobs: \(unmarked) without a reference are not marked as orphans") }
        if marked > 0 { findings.report("blobs: \(marked) with a reference are marked as orphans") }
        if counters > 0 { findings.report("blobs: \(counters) counters differ from a recount") }
    }

    /// Checks that each blob has its file, and that no other files exist.
    /// - Parameter files: the blobs in the folder, listed before the store was looked at.
    func auditFiles(_ files: [BlobID: Int64], in folder: String) throws(StoreError) {
        var rows = Set<BlobID>()
        var found = [(id: [UInt8], length: Int64)]()
        try storing("listing blobs") { () throws(SQLiteError) in
            try reader.database.statement("SELECT id, length FROM blob").forEach { (row) throws(SQLiteError) in
                found.append((row.bytes(0), row.integer(1)))
            }
        }
        for row in found {
            guard let id = BlobID(octets: row.id) else {
                findings.report("blobs: a row has no id")
                continue
            }
            rows.insert(id)
            findings.blobs += 1
            let path = FolderBlobStore.place(of: id, in: folder)
            // A blob that was completed after the listing is looked up.
            guard let length = files[id] ?? (Files.exists(path) ? Files.size(path) : nil) else {
                findings.report("blob \(id): its file is missing")
                continue
            }
            if length != row.length { findings.report("blob \(id): its file has \(length) bytes, not \(row.length)") }
        }
        guard !FolderBlobStore(folder: folder).keepsUnknown else { return }
        for id in files.keys.sorted() where !rows.contains(id) {
            if try !isExpected(id) { findings.report("blob \(id): a file without a row") }
        }
    }

    /// Whether a file without the row of a blob belongs to an upload that is being completed, or is about to be
    /// deleted.
    private func isExpected(_ id: BlobID) throws(StoreError) -> Bool {
        try storing("looking for a blob") { () throws(SQLiteError) in
            try reader.database.statement(
                "SELECT 1 FROM upload WHERE id = ?1 AND proof IS NULL UNION ALL SELECT 1 FROM blob_gone WHERE id = ?1"
            ).bind(1, id.octets).first { _ in true } ?? false
        }
    }

    private func count(_ rows: String) throws(SQLiteError) -> Int64 {
        try reader.database.integer("SELECT count(*) FROM \(rows)") ?? 0
    }

    /// Users and apps whose counters differ from the sums of their rows.
    private static let wrongCounters = """
        (SELECT 1 FROM (
            SELECT app, user, 1 AS blobs, length AS bytes, 0 AS uploads, 0 AS open FROM blob WHERE user <> ''
            UNION ALL SELECT app, '', 1, length, 0, 0 FROM blob
            UNION ALL SELECT app, user, 0, 0, 1, length FROM upload WHERE proof IS NULL
            UNION ALL SELECT app, '', 0, 0, 1, length FROM upload WHERE proof IS NULL
            UNION ALL SELECT app, user, -blobs, -bytes, -uploads, -open FROM blob_use)
        GROUP BY app, user HAVING sum(blobs) != 0 OR sum(bytes) != 0 OR sum(uploads) != 0 OR sum(open) != 0)
        """
}
