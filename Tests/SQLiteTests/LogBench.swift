import Glibc
import Synchronization
import Testing
@testable import ThicketFaultDisk

@testable import ThicketSQLite

/// A folder with a database on a disk that fails as the test says, and the connections to it.
final class LogBench {
    let path: String
    let disk: FaultVFS
    private static let serial = Atomic<Int>(0)
    private let folder: String

    init() throws {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/thicket-gather-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        path = folder + "/db"
        disk = FaultVFS(name: "gathering-test-\(Self.serial.add(1, ordering: .relaxed).newValue)")
        let database = try connect(gathers: false)
        try database.execute("PRAGMA journal_mode=WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
    }

    deinit {
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        rmdir(folder)
    }

    func connect(gathers: Bool) throws -> Database {
        let database = try Database(
            path: path, vfs: gathers ? GatheringFileSystem.name(over: disk.name) : disk.name)
        try database.execute("PRAGMA synchronous=EXTRA; PRAGMA wal_autocheckpoint=0")
        return database
    }

    /// One connection that gathers and one that does not.
    func pair() throws -> (Database, Database) { (try connect(gathers: true), try connect(gathers: false)) }

    func logBytes() throws -> Int {
        var info = stat()
        try #require(stat(path + "-wal", &info) == 0)
        return Int(info.st_size)
    }

    func writes(_ body: () throws -> Void) rethrows -> Int {
        let before = disk.calls(of: .write)
        try body()
        return disk.calls(of: .write) - before
    }
}
