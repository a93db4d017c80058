import Glibc
import ThicketSQLite

/// Copies a store while its server runs.
public enum StoreBackup {
    /// What a copy came to.
    public struct Report: Hashable, Sendable {
        public let bytes: Int64
        public let buckets: Int64
        public let changes: Int64
    }

    /// Writes a compact, consistent copy of the store at `path` to `destination`, which must not exist yet.
    ///
    /// A store of an earlier schema is copied as it is: whoever replaces the program can take the copy with either.
    ///
    /// The copy is one state of the store, it is checked before it gets its name, and it is on disk when this returns.
    /// The server is not stopped or slowed by it beyond the reading; its log grows meanwhile.
    public static func run(
        from path: String, to destination: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Report {
        guard !Files.exists(destination) else { throw StoreError(.unavailable, "the backup's name is taken") }
        let partial = "\(destination).partial-\(getpid())"
        let files = Files(settings)
        try files.remove(partial)
        var isNamed = false
        do {
            let source = try SQLiteStore.connect(path, .readOnly, settings)
            try Schema.check(source, orOlder: true)
            try copy(source, to: partial, files)
            let report = try verify(partial, settings)
            isNamed = true
            try files.move(partial, to: destination)
            return report
        } catch {
            // It may have its name already, and only the folder could not be synced: then the same call is to do it
            // again.
            if isNamed, !Files.exists(partial) { files.discard(destination) }
            files.discard(partial)
            throw error
        }
    }

    /// `VACUUM INTO` and a sync, which SQLite leaves out.
    static func copy(_ source: Database, to path: String, _ files: Files) throws(StoreError) {
        // Into an empty file, which VACUUM INTO takes as well, for the sake of its rights.
        try files.createPrivate(path)
        try storing("copying the store") { () throws(SQLiteError) in
            try source.prepare("VACUUM INTO ?1").bind(1, path).run()
        }
        try files.sync(path)
    }

    /// Reads the whole copy once.
    static func verify(_ path: String, _ settings: StoreSettings) throws(StoreError) -> Report {
        let database = try SQLiteStore.connect(path, .readOnly, settings)
        try Schema.check(database, orOlder: true)
        let (findings, buckets, changes) = try storing("checking the copy") {
            () throws(SQLiteError) in
            (
                try database.integrityFindings(), try database.integer("SELECT count(*) FROM bucket") ?? 0,
                try database.integer("SELECT count(*) FROM chg") ?? 0
            )
        }
        if let finding = findings.first { throw StoreError(.corrupt, "the copy is broken: \(finding)") }
        return Report(bytes: Files.size(path), buckets: buckets, changes: changes)
    }
}
