import Glibc
import ThicketPlatform

// What blobs need: folders, and files that are written in pieces.
extension Files {
    /// Creates a folder that only its owner may read, if it does not exist. Returns when it is durable.
    func makeFolder(_ path: String) throws(StoreError) {
        guard !Self.exists(path) else { return }
        try ask(.create, path, "making a folder")
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw Self.failure("making a folder") }
        try sync(Self.folder(of: path))
    }

    /// Deletes an empty folder if it exists.
    func removeFolder(_ path: String) throws(StoreError) {
        try ask(.remove, path, "removing a folder")
        guard rmdir(path) == 0 || errno == ENOENT else { throw Self.failure("removing a folder") }
    }

    /// Opens a file to read and write it, and creates it if it does not exist; only its owner may read it.
    func openWritable(_ path: String) throws(StoreError) -> OpenFile {
        try ask(.create, path, "opening a file")
        let file = Glibc.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("opening a file") }
        return OpenFile(descriptor: file)
    }

    /// Writes all bytes at a place of a file.
    func write(_ bytes: [UInt8], to file: OpenFile, _ path: String, at offset: Int64) throws(StoreError) {
        try ask(.write, path, "writing a blob")
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { room in
                pwrite(
                    file.descriptor, room.baseAddress?.advanced(by: written), bytes.count - written,
                    Int(offset) + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.failure("writing a blob") }
            written += count
        }
    }

    /// The names in a folder, without `.` and `..`, in no order; none when the folder does not exist.
    static func names(in path: String) throws(StoreError) -> [String] {
        guard let folder = opendir(path) else {
            guard errno == ENOENT || errno == ENOTDIR else { throw failure("listing a folder") }
            return []
        }
        defer { closedir(folder) }
        var names = [String]()
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
