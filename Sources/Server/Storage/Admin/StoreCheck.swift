import ThicketProtocol
import ThicketSQLite

/// What an audit of a store found.
public struct StoreFindings: Hashable, Sendable {
    /// What is wrong, one line each, without user content; empty in a sound store.
    public internal(set) var findings: [String] = []
    /// Findings beyond `StoreCheck.findingsMax`, counted only.
    public internal(set) var findingsLeftOut: Int = 0
    public internal(set) var buckets: Int = 0
    public internal(set) var objects: Int = 0
    public internal(set) var changes: Int = 0
    public internal(set) var keyframes: Int = 0
    public internal(set) var keptBodies: Int = 0
    public internal(set) var segments: Int = 0

    public var isClean: Bool { findings.isEmpty }

    mutating func report(_ finding: String) {
        if findings.count < StoreCheck.findingsMax { findings.append(finding) } else { findingsLeftOut += 1 }
    }
}

/// Reads a whole store and holds everything that depends on each other side by side: heads, chains, keyframes against
/// the replay of their diffs, kept bodies, segments, and SQLite's own check. Works beside a running server, on one
/// state.
public enum StoreCheck {
    /// Findings told in full.
    public static let findingsMax = 1_000

    /// - Throws: only when the store cannot be opened; whatever is wrong inside is a finding.
    public static func run(_ path: String, settings: StoreSettings = .init()) throws(StoreError) -> StoreFindings {
        let database = try SQLiteStore.connect(path, .readOnly, settings)
        try Schema.check(database)
        var findings = StoreFindings()
        do {
            for finding in try database.integrityFindings() { findings.report("file: \(finding)") }
            let identity = try Meta.identity(database)
            let reader = try SQLiteReader(
                identity, WalkCache(settings), LateHeads(mark: 0, changesMax: 1), database)
            let auditor = StoreAuditor(reader)
            try reader.reading { () throws(StoreError) in
                do {
                    reader.look(at: try LateHeads.load(database, changesMax: settings.lateHeadsMax))
                } catch {
                    // What is in order is looked at all the same.
                    findings.report("log: \(error)")
                    reader.look(at: LateHeads(mark: 0, changesMax: 1))
                }
                try auditor.run()
            }
            for finding in auditor.findings.findings { findings.report(finding) }
            let inner = auditor.findings
            findings.findingsLeftOut += inner.findingsLeftOut
            (findings.buckets, findings.objects, findings.changes) = (inner.buckets, inner.objects, inner.changes)
            (findings.keyframes, findings.keptBodies, findings.segments) =
                (inner.keyframes, inner.keptBodies, inner.segments)
        } catch {
            findings.report("unreadable: \(error)")
        }
        return findings
    }
}

extension SQLiteStore {
    private static let quickCacheKiB = 256

    /// SQLite's own look at the file, on a connection that only reads; the audit of `StoreCheck` goes further.
    /// - Returns: what is wrong, one line each.
    /// - Throws: when the file cannot be read.
    public func quickFindings() throws(StoreError) -> [String] {
        let database = try Self.connect(path, .readOnly, settings)
        return try storing("checking the file") { () throws(SQLiteError) in
            // It goes through the file from end to end: pages it keeps are of no use, and its heap would keep their
            // room.
            try database.execute("PRAGMA cache_size=-\(Self.quickCacheKiB)")
            return try database.integrityFindings(isQuick: true)
        }
    }
}
