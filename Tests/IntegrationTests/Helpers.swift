import Glibc
import Synchronization
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The stores that a test runs on.
enum StoreKind: CaseIterable, Sendable {
    case memory
    case sqlite
}

/// A store with the tests' tokens; a file in its own folder, which is removed with the test.
final class TestStore {
    private(set) var store: any Store
    private let folder: String?

    init(_ kind: StoreKind) throws {
        switch kind {
        case .memory:
            store = try MemoryStore.forTests()
            folder = nil
        case .sqlite:
            let folder = try TemporaryFolder.make()
            self.folder = folder
            store = try SQLiteStore(path: "\(folder)/thicket.db")
            try Self.addTokens("\(folder)/thicket.db")
        }
    }

    deinit {
        if let folder { TemporaryFolder.remove(folder) }
    }

    private static func addTokens(_ path: String) throws {
        let admin = try StoreAdmin(path: path)
        let app = try AppID("app")
        _ = try admin.createApp(app, now: 0)
        let tokens = try [
            ("ann-token", "ann@example.com", false), ("bob-token", "bob@example.com", false),
            ("read-token", "ann@example.com", true),
        ].map { (token: String, user: String, isReadOnly: Bool) in
            ImportedToken(grant: TokenGrant(app: app, user: try UserID(user), isReadOnly: isReadOnly), token: token)
        }
        _ = try admin.importTokens(tokens, now: 0)
    }

    /// A key of the app's administrators.
    func addAdminKey() throws -> String {
        let app = try AppID("app")
        if let folder { return try StoreAdmin(path: "\(folder)/thicket.db").addKey(of: app, isAdmin: true, now: 0) }
        let key = "0123456789abcdef"
        (store as? MemoryStore)?.addAdminKey(app, hash: Hash.sha256(Array(key.utf8)))
        return key
    }

    /// Opens the store as the next process does.
    func reopen() throws {
        if let folder { store = try SQLiteStore(path: "\(folder)/thicket.db") }
    }
}

enum TemporaryFolder {
    static func make() throws -> String {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/thicket-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure("no temporary folder") }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func remove(_ folder: String) {
        for name in ["thicket.db", "thicket.db-wal", "thicket.db-shm"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A flag that several threads see.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
    func set(_ isSet: Bool) { value.store(isSet, ordering: .sequentiallyConsistent) }
}

/// Waits for an event of another thread that cannot be waited for otherwise, two minutes at most.
func waitUntil(_ isTrue: () -> Bool) -> Bool {
    for _ in 0..<24_000 {
        if isTrue() { return true }
        poll(nil, 0, 5)
    }
    return isTrue()
}

/// Runs `body` on its own thread for each number and returns the results in order.
func inParallel<Value: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Value) throws -> [Value] {
    let results = Mutex<[Int: Result<Value, any Error>]>([:])
    let threads = (0..<count).map { (number: Int) in
        OwnThread("test-\(number)") {
            let result = Result<Value, any Error> { try body(number) }
            results.withLock { $0[number] = result }
        }
    }
    for thread in threads { thread.join() }
    let all = results.withLock { $0 }
    return try (0..<count).compactMap { try all[$0]?.get() }
}

/// A change that makes or edits a text field, as clients send it.
func edit(_ key: String, _ ccid: String, sv: Int? = nil, to value: String) -> String {
    let source = sv.map { ",\"sv\":\($0)" } ?? ""
    let operation = sv == nil ? "+" : "r"
    return "0:c:{\"id\":\"\(key)\",\"o\":\"M\",\"ccid\":\"\(ccid)\"\(source),"
        + "\"v\":{\"t\":{\"o\":\"\(operation)\",\"v\":\"\(value)\"}}}"
}

func removal(_ key: String, _ ccid: String) -> String {
    "0:c:{\"id\":\"\(key)\",\"o\":\"-\",\"ccid\":\"\(ccid)\"}"
}

extension String {
    /// The value of the first string field of that name.
    func field(_ name: String) -> String? { fields(name).first }

    /// The values of all string fields of that name.
    func fields(_ name: String) -> [String] {
        ranges(of: "\"\(name)\":\"").compactMap { (range: Range<String.Index>) in
            let rest = self[range.upperBound...]
            return rest.firstIndex(of: "\"").map { String(rest[..<$0]) }
        }
    }

    /// The ccids of a `c:` message, in order.
    var ccids: [String] {
        ranges(of: "\"ccids\":[\"").compactMap { (range: Range<String.Index>) in
            let rest = self[range.upperBound...]
            return rest.firstIndex(of: "\"").map { String(rest[..<$0]) }
        }
    }
}
