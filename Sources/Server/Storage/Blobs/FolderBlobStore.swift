import Glibc
import Synchronization
import ThicketPlatform
import ThicketTreeShape

/// Blobs as files in a data folder.
///
/// - `blobs/ab/ID`: a complete blob; `ab` are the first two letters of its id.
/// - `uploads/ID/data`: the bytes of an upload, each part at its place, so that completing is one rename.
/// - `uploads/ID/N-HASH`: an empty file for each received part; made when the bytes are on disk.
/// - `blobs/lock`: locked by programs that copy blobs; nothing is deleted meanwhile.
public final class FolderBlobStore: BlobStore {
    private let folder: String
    private let files: Files
    /// The descriptor of `blobs/lock`; nil until the first deletion.
    private let lock = Mutex<OpenFile?>(nil)

    /// - Parameters:
    ///   - folder: the data folder, which exists.
    ///   - settings: for the faults that tests inject.
    public init(folder: String, settings: StoreSettings = .init()) {
        (self.folder, files) = (folder, Files(settings))
    }

    static func blobs(_ folder: String) -> String { folder + "/blobs" }
    static func place(of blob: BlobID, in folder: String) -> String {
        "\(blobs(folder))/\(blob.text.prefix(2))/\(blob.text)"
    }
    private func place(_ blob: BlobID) -> String { Self.place(of: blob, in: folder) }
    private func uploadFolder(_ upload: BlobID) -> String { "\(folder)/uploads/\(upload.text)" }
    private func data(_ upload: BlobID) -> String { uploadFolder(upload) + "/data" }

    // MARK: Uploads

    public func begin(_ upload: BlobID, length: Int64) throws(StoreError) {
        try files.makeFolder(folder + "/uploads")
        try files.makeFolder(uploadFolder(upload))
        try files.createPrivate(data(upload))
    }

    public func write(
        _ part: BlobPart, of upload: BlobID, at offset: Int64
    ) throws(StoreError) -> any BlobPartWriter {
        // A restored backup has no uploads: their parts are sent again.
        if !Files.exists(data(upload)) { try begin(upload, length: 0) }
        let mark = "\(uploadFolder(upload))/\(part.number)-\(Hex.encode(part.sha256))"
        return FolderPartWriter(try files.openWritable(data(upload)), data(upload), at: offset, mark: mark, files)
    }

    public func parts(of upload: BlobID) throws(StoreError) -> [BlobPart] {
        var parts = [BlobPart]()
        for name in try Files.names(in: uploadFolder(upload)) {
            let words = name.split(separator: "-")
            guard words.count == 2, let number = Int(words[0]), let hash = Hex.decode(String(words[1])) else {
                continue
            }
            parts.append(BlobPart(number: number, sha256: hash))
        }
        return parts.sorted { $0.number < $1.number }
    }

    public func complete(_ upload: BlobID, length: Int64) throws(StoreError) {
        let (source, target) = (data(upload), place(upload))
        if !Files.exists(source), Files.size(target) == length { return try files.sync(Files.folder(of: target)) }
        guard Files.size(source) == length else {
            throw StoreError(.corrupt, "an upload has another length than its parts")
        }
        try files.makeFolder(Self.blobs(folder))
        try files.makeFolder(Files.folder(of: target))
        try files.sync(source)
        try files.move(source, to: target)
    }

    public func abort(_ upload: BlobID) throws(StoreError) {
        for name in try Files.names(in: uploadFolder(upload)) { try files.remove("\(uploadFolder(upload))/\(name)") }
        try files.removeFolder(uploadFolder(upload))
    }

    public func uploads() throws(StoreError) -> [BlobID] {
        try Files.names(in: folder + "/uploads").compactMap(BlobID.init(text:))
    }

    // MARK: Blobs

    public func open(_ blob: BlobID) throws(StoreError) -> (any BlobReader)? {
        guard Files.exists(place(blob)) else { return nil }
        return try FileBlobReader(place(blob))
    }

    public func delete(_ blob: BlobID) throws(StoreError) -> Bool {
        guard Files.exists(Self.blobs(folder)) else { return true }
        return try lock.withLock { (lock) throws(StoreError) in
            let file: OpenFile
            if let lock { file = lock } else { file = try files.openWritable(Self.blobs(folder) + "/lock") }
            lock = file
            guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
            defer { flock(file.descriptor, LOCK_UN) }
            try files.remove(place(blob))
            return true
        }
    }

    public func list(_ visit: (StoredBlob) throws(StoreError) -> Void) throws(StoreError) {
        for part in try Files.names(in: Self.blobs(folder)) where part.utf8.count == 2 {
            for name in try Files.names(in: "\(Self.blobs(folder))/\(part)") {
                guard let id = BlobID(text: name) else { continue }
                try visit(StoredBlob(id: id, length: Files.size(place(id))))
            }
        }
    }

    /// While the folder holds a store that a restore has replaced, which may be put back.
    public var keepsUnknown: Bool {
        let names = (try? Files.names(in: folder)) ?? []
        return names.contains { $0.hasPrefix("\(SQLiteStore.fileName).replaced-") }
    }

    // MARK: Copies

    /// Keeps all blobs of a data folder until the result is released; nil when the folder has no blobs.
    static func pin(_ folder: String, _ files: Files) throws(StoreError) -> OpenFile? {
        guard Files.exists(blobs(folder)) else { return nil }
        let file = try files.openWritable(blobs(folder) + "/lock")
        while flock(file.descriptor, LOCK_SH) != 0 {
            guard errno == EINTR else { throw Files.failure("locking the blobs") }
        }
        return file
    }
}

/// Writes a part at its place in the file of its upload.
private final class FolderPartWriter: BlobPartWriter {
    private let file: OpenFile
    private let path: String
    private let start: Int64
    private var offset: Int64
    private let mark: String
    private let files: Files
    /// Bytes of a part that remain in the system's memory: a small blob is often read at once. A large one would
    /// displace the databases.
    private static let rememberedMax: Int64 = 1 << 20

    init(_ file: OpenFile, _ path: String, at offset: Int64, mark: String, _ files: Files) {
        (self.file, self.path, self.mark, self.files) = (file, path, mark, files)
        (start, self.offset) = (offset, offset)
    }

    func write(_ bytes: [UInt8]) throws(StoreError) {
        try files.write(bytes, to: file, path, at: offset)
        offset += Int64(bytes.count)
    }

    func finish() throws(StoreError) {
        try files.sync(path)
        // A hint: an error changes nothing.
        if offset - start > Self.rememberedMax {
            _ = posix_fadvise(file.descriptor, off_t(start), off_t(offset - start), POSIX_FADV_DONTNEED)
        }
        try files.createPrivate(mark)
        try files.sync(Files.folder(of: mark))
    }
}

private final class FileBlobReader: BlobReader {
    let length: Int64
    private let opened: OpenFile
    var file: OpenFile? { opened }

    init(_ path: String) throws(StoreError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Files.failure("opening a blob") }
        opened = OpenFile(descriptor: descriptor)
        length = Files.size(path)
    }

    func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { room, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[filled..<count])
                let found = read(into: rest, at: Int(offset) + filled)
                failed = found < 0
                guard found > 0 else { return }
                filled += found
            }
        }
        if failed { throw Files.failure("reading a blob") }
        return bytes
    }

    /// Reads the bytes: the system's calls that read ahead do not wait until the bytes are there.
    func load(at offset: Int64, count: Int) throws(StoreError) {
        let found = withUnsafeTemporaryAllocation(byteCount: Self.loadedAtOnce, alignment: 64) { room in
            var done = 0
            while done < count {
                let part = UnsafeMutableRawBufferPointer(rebasing: room[..<min(room.count, count - done)])
                let found = read(into: part, at: Int(offset) + done)
                guard found > 0 else { return found }
                done += found
            }
            return done
        }
        guard found >= 0 else { throw Files.failure("reading a blob") }
        guard found > 0 else { throw StoreError(.corrupt, "a blob is shorter than its length") }
    }

    /// Bytes.
    private static let loadedAtOnce = 64 << 10

    private func read(into room: UnsafeMutableRawBufferPointer, at place: Int) -> Int {
        while true {
            let found = pread(opened.descriptor, room.baseAddress, room.count, place)
            if found >= 0 || errno != EINTR { return found }
        }
    }
}
