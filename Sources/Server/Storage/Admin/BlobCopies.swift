import Glibc
import ThicketPlatform
import ThicketSQLite
import ThicketTreeShape

/// Copies the blobs of a store for backups and restores: by hard links on one file system, otherwise byte by byte. A
/// complete blob is never changed, so a link is as good as a copy.
struct BlobCopies {
    /// What was copied.
    struct Report: Hashable {
        /// Blobs that the store refers to, and that are in the target now.
        var copied = 0
        /// Blobs of the store that the source does not have.
        var missing = 0
    }

    private static let chunkBytes = 1 << 20

    private let files: Files

    init(_ files: Files) { self.files = files }

    /// The folder of a backup's blobs.
    static func folder(ofBackup path: String) -> String { path + ".blobs" }

    /// The folder with the blobs that belong to a store file: beside a backup, or in the data folder of a store.
    static func source(of path: String) -> String {
        let own = folder(ofBackup: path)
        return Files.exists(own) ? own : FolderBlobStore.blobs(Files.folder(of: path))
    }

    /// Copies what a store file refers to. Blobs that the target has are not copied again. Durable on return.
    /// - Parameters:
    ///   - store: the store file, of this schema version or an older one.
    ///   - source: the folder that has the blobs.
    ///   - target: the folder for them, made if a blob is copied.
    func copy(of store: String, from source: String, to target: String, _ settings: StoreSettings) throws(StoreError)
        -> Report
    {
        var report = Report()
        if source == target { return report }
        var folders = Set<String>()
        for blob in try blobs(of: store, settings) {
            let part = String(blob.id.text.prefix(2))
            let from = "\(source)/\(part)/\(blob.id.text)"
            guard Files.exists(from), Files.size(from) == blob.length else {
                // A restore over a folder that has the blob already.
                let isThere = Files.size("\(target)/\(part)/\(blob.id.text)") == blob.length
                if isThere { report.copied += 1 } else { report.missing += 1 }
                continue
            }
            try files.makeFolder(target)
            try files.makeFolder("\(target)/\(part)")
            try place(from, "\(target)/\(part)/\(blob.id.text)", length: blob.length)
            folders.insert("\(target)/\(part)")
            report.copied += 1
        }
        for folder in folders.sorted() { try files.sync(folder) }
        return report
    }

    /// Removes the blobs of a backup that was not finished, as far as the disk allows.
    func discard(_ folder: String) {
        for part in (try? Files.names(in: folder)) ?? [] {
            for name in (try? Files.names(in: "\(folder)/\(part)")) ?? [] { files.discard("\(folder)/\(part)/\(name)") }
            try? files.removeFolder("\(folder)/\(part)")
        }
        try? files.removeFolder(folder)
    }

    /// All blobs of a store, orphans included: a record that refers to one may be on its way.
    private func blobs(of store: String, _ settings: StoreSettings) throws(StoreError) -> [StoredBlob] {
        let database = try SQLiteStore.connect(store, .readOnly, settings)
        return try storing("listing blobs") { () throws(SQLiteError) in
            var blobs = [StoredBlob]()
            // A backup of an older version has none.
            guard try database.integer("SELECT 1 FROM sqlite_schema WHERE name = 'blob'") == 1 else { return [] }
            try database.statement("SELECT id, length FROM blob ORDER BY id").forEach { (row) throws(SQLiteError) in
                guard let id = BlobID(octets: row.bytes(0)) else { return }
                blobs.append(StoredBlob(id: id, length: row.integer(1)))
            }
            return blobs
        }
    }

    private func place(_ source: String, _ target: String, length: Int64) throws(StoreError) {
        if Files.exists(target), Files.size(target) == length { return }
        try files.remove(target)
        errno = files.injected(.move, source)
        if errno == 0, link(source, target) == 0 { return }
        // Another file system, or one without links, or a file with too many.
        guard [EXDEV, EPERM, EMLINK, EOPNOTSUPP].contains(errno) else { throw Files.failure("linking a blob") }
        try copy(source, to: target)
    }

    private func copy(_ source: String, to target: String) throws(StoreError) {
        let partial = target + ".partial"
        try files.remove(partial)
        let input = open(source, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw Files.failure("opening a blob") }
        defer { close(input) }
        let output = try files.openWritable(partial)
        var offset: Int64 = 0
        while true {
            var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
            let count = pread(input, &chunk, chunk.count, Int(offset))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Files.failure("reading a blob") }
            if count == 0 { break }
            try files.write(Array(chunk.prefix(count)), to: output, partial, at: offset)
            offset += Int64(count)
        }
        try files.sync(partial)
        try files.move(partial, to: target)
    }
}
