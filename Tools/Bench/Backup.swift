import Glibc
import Synchronization
import ThicketPlatform
import ThicketProtocol
import ThicketServer

/// 64 sockets with one change in flight each, alternately without and with `thicketd backup` running beside them, copy
/// after copy. The command itself checks each copy before it counts; `thicketd check` also checks the last one.
func backupBeside(objects: Int = 200_000, sockets count: Int = 64) throws -> [Figure] {
    let server = try BenchServer(users: count, starts: false)
    let fill = try OfflineFill(server)
    for user: Int in 0..<count {
        let bucket: BucketID = try OfflineFill.bucket("b", user: user)
        for object: Int in 0..<(objects / count) { try fill.add("o\(object)", version: 0, to: bucket) }
    }
    try fill.finish()
    progress("backup: store filled")
    try server.process.start()
    let load: SocketLoad = try SocketLoad(server, count: count) { socket, number in
        change(of: "o0", ccid: hexID(socket, number), number: number, version: number + 1)
    }
    var (alone, beside): ([Double], [Double]) = ([], [])
    let copies = Copies(server.process.program, server.process.folder)
    for round: Int in 0..<5 {
        alone.append(try load.run(seconds: 2).perSecond)
        let first: Int = copies.count
        copies.begin()
        beside.append(try load.run(seconds: 2).perSecond)
        try copies.finish()
        progress("backup: round \(round + 1) of 5, \(copies.count - first) copies")
    }
    try copies.check()
    return [
        Figure(name: "size of a copy", value: Double(copies.bytes) / 1_048_576, unit: "MiB"),
        Figure(name: "one copy, checked", samples: copies.seconds, unit: "s"),
        Figure(name: "changes without", samples: alone, unit: "1/s"),
        Figure(name: "changes beside it", samples: beside, unit: "1/s"),
        Figure(
            name: "  share that is left", samples: zip(beside, alone).map { $0 / $1 }, unit: "", goal: .atLeast(0.6)),
    ]
}

/// Makes copies of a server's folder, one after the other, on its own thread.
private final class Copies: Sendable {
    private struct State {
        var seconds: [Double] = []
        var failure: String?
        var isWanted = false
        var isRunning = false
        var bytes = 0
    }

    private let program: String
    private let folder: String
    private let state = Mutex<State>(State())

    init(_ program: String, _ folder: String) { (self.program, self.folder) = (program, folder) }

    var count: Int { state.withLock { $0.seconds.count } }
    var seconds: [Double] { state.withLock { $0.seconds } }
    var bytes: Int { state.withLock { $0.bytes } }
    private var copy: String { folder + "/copy" }

    func begin() {
        state.withLock { ($0.isWanted, $0.isRunning) = (true, true) }
        _ = OwnThread("copies") { [self] in
            while state.withLock({ $0.isWanted && $0.failure == nil }) { makeOne() }
            state.withLock { $0.isRunning = false }
        }
    }

    /// Lets the copy in progress be the last one.
    func finish() throws {
        state.withLock { $0.isWanted = false }
        let end: UInt64 = nanoseconds() + 60_000_000_000
        while state.withLock({ $0.isRunning }) {
            guard nanoseconds() < end else { throw BenchError("a backup has not ended after a minute") }
            usleep(1_000)
        }
        if let failure: String = state.withLock({ $0.failure }) { throw BenchError(failure) }
    }

    private func makeOne() {
        unlink(copy)
        let start: UInt64 = nanoseconds()
        do {
            _ = try shell("'\(program)' backup '\(copy)' --data '\(folder)'")
            let bytes: Int = sizeOfFile(copy)
            state.withLock {
                $0.seconds.append(Double(nanoseconds() - start) / 1e9)
                $0.bytes = bytes
            }
        } catch {
            state.withLock { $0.failure = "\(error)" }
        }
    }

    /// Checks the last copy as a server's folder.
    func check() throws {
        let place: String = folder + "/checked"
        _ = try shell("mkdir '\(place)' && mv '\(copy)' '\(place)/thicket.db' && '\(program)' check --data '\(place)'")
    }
}
