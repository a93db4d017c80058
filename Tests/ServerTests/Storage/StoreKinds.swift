import Glibc
import Testing
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// The stores that must all behave the same.
enum StoreKind: String, CaseIterable, Sendable {
    case memory
    case sqlite

    func make(_ folder: StoreFolder) throws -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        }
    }
}

extension StoreSettings {
    static var testing: StoreSettings {
        var settings = StoreSettings()
        settings.busyTimeoutMilliseconds = 50
        settings.mappedBytes = 1 << 26
        // So that heads are write-behind, being written and in their table at the same time.
        settings.writeBehindHeadsMax = 13
        return settings
    }
}

/// A folder that is removed with its test.
final class StoreFolder: Sendable {
    let path: String

    init() {
        var template: [CChar] = Array("/tmp/thicket-storage-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
        precondition(path != "/tmp", "no temporary folder could be made")
    }

    func path(_ name: String) -> String { path + "/" + name }

    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name: String = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    func bytes(_ name: String) throws -> [UInt8] {
        let file: Int32 = open(path(name), O_RDONLY)
        try #require(file >= 0)
        defer { close(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = read(file, &part, part.count), count > 0 { bytes += part[0..<count] }
        return bytes
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        let file: Int32 = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        try #require(Glibc.write(file, bytes, bytes.count) == bytes.count)
    }

    /// The folder as a crash at this moment leaves it: everything written, and no state of a process.
    func copied() -> StoreFolder {
        let copy = StoreFolder()
        for name in names where !name.hasSuffix("-shm") {
            if let bytes: [UInt8] = try? bytes(name) { try? copy.write(bytes, to: name) }
        }
        return copy
    }

    func rights(_ name: String) throws -> UInt32 {
        var info = stat()
        try #require(stat(path(name), &info) == 0)
        return info.st_mode & 0o777
    }

    /// Runs SQL on a file as another program does.
    func run(_ sql: String, in name: String) throws { try Database(path: path(name)).execute(sql) }

    /// Writes the heads of a closed store to their table, so that a test can break one there.
    func writeAllHeads(in name: String) throws {
        let database: Database = try Database(path: path(name))
        try database.transaction(.immediate) { () throws(SQLiteError) in try WriteBehindHeads.writeAll(database) }
    }

    deinit {
        for name in names { unlink(path(name)) }
        rmdir(path)
    }
}
