import Glibc
import Synchronization
import ThicketCrypto
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

/// A data folder with blobs that is removed with its test.
final class BlobFolder: Sendable {
    let path: String

    init() {
        var template: [CChar] = Array("/tmp/thicket-blobs-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
        precondition(path != "/tmp", "no temporary folder could be made")
    }

    deinit { Self.remove(path) }

    var database: String { path + "/thicket.db" }

    func open() throws -> SQLiteStore { try SQLiteStore(path: database, settings: .testing) }
    func blobs(_ settings: StoreSettings = .testing) -> FolderBlobStore {
        FolderBlobStore(folder: path, settings: settings)
    }

    func check() throws -> [String] { try StoreCheck.run(database, settings: .testing, blobs: path).findings }
    func run(_ sql: String) throws { try Database(path: database).execute(sql) }

    /// Paths of all files below `blobs` and `uploads`, without the lock.
    var files: [String] {
        ["blobs", "uploads"].flatMap { Self.below("\(path)/\($0)", $0) }.filter { $0 != "blobs/lock" }.sorted()
    }

    private static func below(_ path: String, _ prefix: String) -> [String] {
        guard let names = try? Files.names(in: path), Self.isFolder(path) else { return [] }
        return names.flatMap { name in
            isFolder("\(path)/\(name)") ? below("\(path)/\(name)", "\(prefix)/\(name)") : ["\(prefix)/\(name)"]
        }
    }

    static func isFolder(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    private static func remove(_ path: String) {
        if isFolder(path) {
            for name in (try? Files.names(in: path)) ?? [] { remove("\(path)/\(name)") }
            rmdir(path)
        } else {
            unlink(path)
        }
    }

    func file(of blob: BlobID) -> String { FolderBlobStore.place(of: blob, in: path) }

    func overwrite(_ blob: BlobID, _ bytes: [UInt8]) {
        let file = Glibc.open(file(of: blob), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        _ = Glibc.write(file, bytes, bytes.count)
        close(file)
    }
}

/// The blob stores that must behave the same.
enum BlobStoreKind: CaseIterable, Sendable {
    case memory
    case folder

    func make(_ folder: BlobFolder) -> any BlobStore {
        switch self {
        case .memory: MemoryBlobStore()
        case .folder: folder.blobs()
        }
    }
}

extension StoreKind {
    func make(_ folder: BlobFolder) throws -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try folder.open()
        }
    }
}

/// Errors that a test switches on.
final class Faults<Call: Hashable & Sendable>: Sendable {
    private let failing = Mutex<Set<Call>>([])
    func fail(_ calls: Call...) { failing.withLock { $0 = Set(calls) } }
    func isFailing(_ call: Call) -> Bool { failing.withLock { $0.contains(call) } }
}

extension BlobStore {
    /// Writes and lists one part.
    func add(_ number: Int, _ bytes: [UInt8], to upload: BlobID, at offset: Int64) throws {
        let writer: any BlobPartWriter = try write(
            BlobPart(number: number, sha256: Hash.sha256(bytes)), of: upload, at: offset)
        try writer.write(Array(bytes.prefix(bytes.count / 2)))
        try writer.write(Array(bytes.dropFirst(bytes.count / 2)))
        try writer.finish()
    }

    func bytes(of blob: BlobID) throws -> [UInt8]? {
        try open(blob).map { try $0.read(at: 0, count: Int($0.length)) }
    }
}

extension BlobLedger {
    static var unlimited: BlobQuota { BlobQuota(userBytesMax: .max, appBytesMax: .max, uploadsMax: .max) }

    /// A complete blob of a user.
    func blob(
        _ id: BlobID, _ length: Int64, _ user: String = "ann@example.com", app: String = "app", now: Int64 = 0
    ) throws {
        let upload = BlobUpload(
            id: id, app: try AppID(app), user: try UserID(user), length: length, partBytes: 1 << 20, begun: now)
        _ = try begin(upload, within: Self.unlimited)
        _ = try complete(id, proof: [1], now: now)
    }
}

func blobID(_ number: Int) -> BlobID { BlobID(UInt128(number)) }

/// The length of sealed content with this many plain bytes below 64 KiB.
func sealedLength(_ plain: Int64) -> Int64 { plain + 16 }

extension NodeText {
    static func record(
        _ parent: NodeParent, _ name: String, base: Version, blob: BlobID, length: Int64
    ) throws -> NodeRecord {
        var record: NodeRecord = try record(parent, name, base: base)
        record.data = .blob(DataID(UInt128(7)), length: UInt64(length), blob: blob)
        return record
    }
}

extension TestShard {
    func writing(
        _ number: Int, _ name: String, sv: Version = 0, blob: BlobID, length: Int64, ccid: String? = nil
    ) throws -> SubmittedChange {
        let record: NodeRecord = try NodeText.record(.trunk(.home), name, base: sv, blob: blob, length: length)
        return try submission(
            NodeText.key(number), sv: sv == 0 ? nil : sv, d: .object(record.object), ccid: ccid)
    }

    func write(_ number: Int, _ name: String, sv: Version = 0, blob: BlobID, length: Int64) throws -> Answer {
        try group([writing(number, name, sv: sv, blob: blob, length: length)]).first ?? Answer()
    }
}
