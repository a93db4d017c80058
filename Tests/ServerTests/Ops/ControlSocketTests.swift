import Glibc
import Synchronization
import Testing
@testable import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// A folder under /tmp that is removed with this object.
final class TemporaryFolder: Sendable {
    let path: String

    init(_ name: String = "folder") {
        path = "/tmp/thicket-\(name)-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        mkdir(path, 0o700)
    }

    deinit { TemporaryFolder.remove(path) }

    private static func remove(_ path: String) {
        if let folder: OpaquePointer = opendir(path) {
            while let entry: UnsafeMutablePointer<dirent> = readdir(folder) {
                let name: String = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != ".", name != ".." { remove(path + "/" + name) }
            }
            closedir(folder)
            rmdir(path)
        } else {
            unlink(path)
        }
    }
}

@Suite("Data folder and control socket")
struct ControlSocketTests {
    private let temporary = TemporaryFolder("control")

    private func question(_ kind: RemoteQuestion.Kind = .index, seconds: Int = 5) throws -> RemoteQuestion {
        RemoteQuestion(
            bucket: BucketID(app: try AppID("app"), user: try UserID("u \"1\""), name: try BucketName("notes")),
            kind: kind, seconds: seconds)
    }

    @Test("a folder has one lock at a time, which is free again after its release")
    func lock() throws {
        let folder = try DataFolder(temporary.path, creating: false)
        var lock: FolderLock? = try folder.lock()
        let error: DataFolderError? = #expect(throws: DataFolderError.self) { try folder.lock() }
        #expect(error?.kind == .folderInUse)
        #expect(error?.description.contains("process \(getpid())") == true)
        _ = lock
        lock = nil
        _ = try folder.lock()
    }

    @Test("a missing folder is created with its parents and mode 0700, or refused")
    func create() throws {
        let path: String = temporary.path + "/a/b"
        #expect(throws: DataFolderError.self) { try DataFolder(path, creating: false) }
        _ = try DataFolder(path, creating: true)
        var info = stat()
        #expect(stat(path, &info) == 0 && info.st_mode & 0o777 == 0o700)
        #expect(throws: DataFolderError.self) { try DataFolder("/etc/passwd", creating: true) }
        #expect(throws: DataFolderError.self) { try DataFolder("/proc/none/x", creating: true) }
    }

    @Test("a question gets its answers in order until the end, even over a very long path")
    func ask() throws {
        let folder = try DataFolder(
            temporary.path + "/" + String(repeating: "long", count: 40), creating: true)
        let box = Shared()
        let socket = try ControlSocket(folder: folder, log: .silent) { question, tell in
            box.asked.withLock { $0.append(question) }
            tell(.asked(1))
            tell(.answer(client: "c\"1\n", json: Array(#"{"a":[1.50,"ü"]}"#.utf8)))
            tell(.ended)
            return { box.cancelled.add(()) }
        }
        socket.start()
        var replies: [RemoteReply] = []
        try ControlClient.ask(try question(.log(2)), folder: folder) { (reply: RemoteReply) in replies.append(reply) }
        #expect(box.cancelled.takeAll(until: SystemClock.steadyTime() + .seconds(10)).count == 1)
        socket.stop()
        #expect(replies == [.asked(1), .answer(client: "c\"1\n", json: Array(#"{"a":[1.50,"ü"]}"#.utf8))])
        #expect(box.asked.withLock { $0 } == [try question(.log(2))])
        #expect(throws: ControlError.self) { try ControlClient.ask(try question(), folder: folder) { _ in } }
    }

    @Test("the socket has mode 0600, and a file left by a crash is replaced")
    func mode() throws {
        let folder = try DataFolder(temporary.path, creating: false)
        let left: Int32 = open(folder.controlPath, O_CREAT | O_WRONLY, 0o644)
        close(left)
        let socket = try ControlSocket(folder: folder, log: .silent) { _, _ in {} }
        socket.start()
        var info = stat()
        #expect(stat(folder.controlPath, &info) == 0)
        #expect(info.st_mode & S_IFMT == S_IFSOCK && info.st_mode & 0o777 == 0o600)
        socket.stop()
        #expect(access(folder.controlPath, F_OK) != 0)
    }

    @Test(
        "an invalid request is refused with the reason",
        arguments: [
            ("nonsense", "not a JSON object"), ("{}", "only 'index' and 'log'"),
            (#"{"ask":"log","level":9}"#, "log level"),
            (#"{"ask":"index","seconds":0}"#, "time to wait"), (#"{"ask":"index","seconds":5}"#, "app id: is empty"),
        ])
    func badRequest(line: String, part: String) {
        let error: ControlError? = #expect(throws: ControlError.self) { try ControlLine.question(Array(line.utf8)) }
        #expect(error?.description.contains(part) == true, "\(String(describing: error))")
    }

    @Test("a queue returns what was added, refuses entries above its bound, and ends when closed")
    func row() {
        let row = BlockingQueue<Int>(bound: 2)
        #expect(row.add(1) && row.add(2) && !row.add(3))
        #expect(row.takeAll() == [1, 2])
        #expect(row.takeAll(until: SystemClock.steadyTime() + .milliseconds(1)) == [])
        let thread = OwnThread("adder") { row.add(4) }
        #expect(row.takeAll() == [4])
        thread.join()
        row.close()
        #expect(!row.add(5) && row.takeAll() == [])
    }

    private final class Shared: Sendable {
        let cancelled = BlockingQueue<Void>(bound: 10)
        let asked = Mutex<[RemoteQuestion]>([])
    }
}
