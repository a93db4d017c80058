import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// The result of a store audit.
public struct StoreFindings: Hashable, Sendable {
    /// Problems, one line each, without user content; empty for a sound store.
    public internal(set) var findings: [String] = []
    /// Number of further findings, beyond `StoreCheck.findingsMax`.
    public internal(set) var findingsLeftOut: Int = 0
    /// Number of audited buckets.
    public internal(set) var buckets: Int = 0
    /// Number of audited objects, including deleted ones.
    public internal(set) var objects: Int = 0
    /// Number of log rows.
    public internal(set) var changes: Int = 0
    /// Number of keyframes that were compared with the replay of their diffs.
    public internal(set) var keyframes: Int = 0
    /// Number of bodies kept apart from the log.
    public internal(set) var keptBodies: Int = 0
    /// Number of segments.
    public internal(set) var segments: Int = 0
    /// Number of blobs whose files were looked at.
    public internal(set) var blobs: Int = 0

    /// Whether the audit found no problem.
    public var isClean: Bool { findings.isEmpty }

    mutating func report(_ finding: String) {
        if findings.count < StoreCheck.findingsMax { findings.append(finding) } else { findingsLeftOut += 1 }
    }
}

/// Reads a whole store and checks all redundant data for consistency: heads, chains, keyframes against the replay of
/// their diffs, kept bodies, segments, and SQLite's own check. Works beside a running server, on one state.
public enum StoreCheck {
    /// Maximum number of findings that are reported with text.
    public static let findingsMax = 1_000

    /// Audits the store at `path`.
    /// - Parameter blobs: the data folder whose blobs are audited, too; nil audits only their rows.
    /// - Throws: only when the store cannot be opened; every problem inside it is a finding.
    public static func run(
        _ path: String, settings: StoreSettings = .init(), blobs: String? = nil
    ) throws(StoreError) -> StoreFindings {
        // Files are listed before the store is looked at: a file is older than its row.
        let pin = try blobs.flatMap { (folder) throws(StoreError) in try FolderBlobStore.pin(folder, Files(settings)) }
        defer { withExtendedLifetime(pin) {} }
        var files = [BlobID: Int64]()
        if let blobs { try FolderBlobStore(folder: blobs).list { files[$0.id] = $0.length } }
        let database = try SQLiteStore.connect(path, .readOnly, settings)
        try Schema.check(database)
        var findings = StoreFindings()
        do {
            for finding in try database.integrityFindings() { findings.report("file: \(finding)") }
            let identity = try Meta.identity(database)
            let reader = try SQLiteReader(
                identity, ReaderCache(settings), WriteBehindHeads(mark: 0, changesMax: 1), database)
            let auditor = StoreAuditor(reader)
            try reader.reading { () throws(StoreError) in
                do {
                    reader.look(at: try WriteBehindHeads.load(database, changesMax: settings.writeBehindHeadsMax))
                } catch {
                    // The audit continues with the part that is readable.
                    findings.report("log: \(error)")
                    reader.look(at: WriteBehindHeads(mark: 0, changesMax: 1))
                }
                try auditor.run()
                if let blobs { try auditor.auditFiles(files, in: blobs) }
            }
            for finding in auditor.findings.findings { findings.report(finding) }
            let inner = auditor.findings
            findings.findingsLeftOut += inner.findingsLeftOut
            (findings.buckets, findings.objects, findings.changes) = (inner.buckets, inner.objects, inner.changes)
            (findings.keyframes, findings.keptBodies, findings.segments) =
                (inner.keyframes, inner.keptBodies, inner.segments)
            findings.blobs = inner.blobs
        } catch {
            findings.report("unreadable: \(error)")
        }
        return findings
    }
}

extension SQLiteStore {
    private static let quickCacheKiB = 256

    /// SQLite's quick check of the file, on a read-only connection; `StoreCheck` checks more.
    /// - Returns: the problems, one line each.
    /// - Throws: when the file cannot be read.
    public func quickFindings() throws(StoreError) -> [String] {
        let database = try Self.connect(path, .readOnly, settings)
        return try storing("checking the file") { () throws(SQLiteError) in
            // The check reads the file once from start to end. Cached pages would not be used again, and the heap would
            // keep their memory.
            try database.execute("PRAGMA cache_size=-\(Self.quickCacheKiB)")
            return try database.integrityFindings(isQuick: true)
        }
    }
}
