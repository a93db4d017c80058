import Glibc
import Synchronization
import ThicketFaultDisk
import ThicketServer

/// Records what a blob store does with its files as steps of a disk's history, in order with SQLite's calls.
///
/// The store announces each call before it is made (`StoreSettings.fileFault`). All calls but a write are known from
/// the announcement; a write is found by comparing the file with what is known of it, at the next announcement.
final class FileRecorder: Sendable {
    private struct State {
        /// The file that was written to since it was looked at.
        var written: String?
        var known = [String: [UInt8]]()
    }

    private let history: DiskHistory
    private let folder: String
    private let state = Mutex(State())

    /// - Parameter folder: the data folder; other files than those of blobs are not recorded.
    init(_ history: DiskHistory, folder: String) { (self.history, self.folder) = (history, folder) }

    func announce(_ call: FileCall, _ path: String) {
        let isInFolder = path.utf8.elementsEqual(folder.utf8)
        guard isInFolder || path.hasPrefix(folder + "/blobs") || path.hasPrefix(folder + "/uploads") else { return }
        state.withLock { state in
            findWrite(&state)
            switch call {
            case .create: create(path, &state)
            case .write: state.written = path
            case .sync: history.record(Self.isFolder(path) ? .syncFolder : .syncContent, path)
            case .move: move(path, &state)
            case .remove:
                if state.known.removeValue(forKey: path) != nil { history.record(.delete, path) }
            }
        }
    }

    /// A folder is there as soon as a file is in it: the store syncs the name of each new folder before it goes on.
    private func create(_ path: String, _ state: inout State) {
        guard state.known[path] == nil, !Self.isUploadFolder(path), !path.hasSuffix("/blobs"),
            !path.hasSuffix("/uploads"), !path.hasSuffix("/blobs/\(path.suffix(2))")
        else { return }
        state.known[path] = []
        history.record(.open, path)
    }

    private static func isUploadFolder(_ path: String) -> Bool {
        let parts = path.split(separator: "/")
        return parts.count > 1 && parts[parts.count - 2] == "uploads"
    }

    /// The only rename makes a blob of the data of its upload.
    private func move(_ path: String, _ state: inout State) {
        guard let id = path.split(separator: "/").dropLast().last else { return }
        let target = "\(folder)/blobs/\(id.prefix(2))/\(id)"
        state.known[target] = state.known.removeValue(forKey: path)
        history.record(.move(to: target), path)
    }

    private func findWrite(_ state: inout State) {
        guard let path = state.written else { return }
        state.written = nil
        guard let bytes = SweepFile.read(path), let old = state.known[path] else { return }
        let first = Self.firstDifference(old, bytes)
        guard first < bytes.count else { return }
        state.known[path] = bytes
        history.record(.write(offset: first, bytes: Array(bytes[first...])), path)
    }

    private static func firstDifference(_ old: [UInt8], _ new: [UInt8]) -> Int {
        let shared = min(old.count, new.count)
        let pages = stride(from: 0, to: shared, by: 4_096)
        let page = pages.first { start in
            let count = min(4_096, shared - start)
            return !old[start..<start + count].elementsEqual(new[start..<start + count])
        }
        return (page.map { $0..<shared } ?? shared..<shared).first { old[$0] != new[$0] } ?? shared
    }

    private static func isFolder(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }
}

/// Whole files of the real disk below a sweep.
enum SweepFile {
    static func read(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(info.st_size))
        return pread(file, &bytes, bytes.count, 0) == bytes.count ? bytes : nil
    }

    /// Writes a file, and makes the folders above it below `root`.
    static func write(_ bytes: [UInt8], to path: String, below root: String) throws(SweepError) {
        var folder = root
        for part in path.dropFirst(root.count).split(separator: "/").dropLast() {
            folder += "/\(part)"
            mkdir(folder, 0o700)
        }
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { throw SweepError("\(path) cannot be made") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw SweepError("\(path) cannot be written")
        }
    }
}
