import Glibc
import ThicketSQLite

/// Copies a store while its server runs.
public enum StoreBackup {
    /// Size and content of a finished copy.
    public struct Report: Hashable, Sendable {
        /// Bytes of the copy.
        public let bytes: Int64
        /// Number of buckets.
        public let buckets: Int64
        /// Number of log rows.
        public let changes: Int64
        /// Number of blobs that were copied.
        public internal(set) var blobs: Int = 0
        /// Number of blobs whose bytes are missing; `StoreCheck` reports each.
        public internal(set) var missingBlobs: Int = 0
    }

    /// Writes a compact, consistent copy of the store at `path` to `destination`, which must not exist yet.
    ///
    /// A store with an earlier schema is copied unchanged, so that the copy works with the old and the new program.
    ///
    /// Blobs go into the folder `destination` + `.blobs`. None is deleted from the store's data folder meanwhile.
    ///
    /// The copy is one state of the store. It is checked before it gets its final name, and it is durable on return.
    /// The server keeps running and is slowed only by the reads; its write-ahead log grows meanwhile.
    public static func run(
        from path: String, to destination: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Report {
        guard !Files.exists(destination) else { throw StoreError(.unavailable, "the backup's name is taken") }
        let partial = "\(destination).partial-\(getpid())"
        let files = Files(settings)
        try files.remove(partial)
        let folder = Files.folder(of: path)
        // Before the snapshot: what it refers to must not be deleted until it is copied.
        let pin = try FolderBlobStore.pin(folder, files)
        defer { withExtendedLifetime(pin) {} }
        let copies = BlobCopies(files)
        var isNamed = false
        do {
            let source = try SQLiteStore.connect(path, .readOnly, settings)
            try Schema.check(source, orOlder: true)
            try copy(source, to: partial, files)
            var report = try verify(partial, settings)
            let blobs = try copies.copy(
                of: partial, from: FolderBlobStore.blobs(folder), to: BlobCopies.folder(ofBackup: destination), settings
            )
            (report.blobs, report.missingBlobs) = (blobs.copied, blobs.missing)
            isNamed = true
            try files.move(partial, to: destination)
            return report
        } catch {
            // The rename may have succeeded although syncing the folder failed. The copy is then removed, so that the
            // same call can be repeated.
            if isNamed, !Files.exists(partial) { files.discard(destination) }
            files.discard(partial)
            copies.discard(BlobCopies.folder(ofBackup: destination))
            throw error
        }
    }

    /// Runs `VACUUM INTO` and then syncs the file, which SQLite does not do.
    static func copy(_ source: Database, to path: String, _ files: Files) throws(StoreError) {
        // VACUUM INTO accepts an existing empty file, which gives the copy private permissions from the start.
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
