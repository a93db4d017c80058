import Glibc
import ThicketClient
import ThicketProtocol
import ThicketReplay

/// A paper of 105 KB typed key by key (259,778 edits, a recorded session), one change per edit through one client with
/// a store in a file: the cost of an edit to client and server at the beginning, in the middle and at the end.
///
/// All files of the long run are in memory (`/dev/shm`), so that it lasts minutes and each edit costs only CPU; the
/// last figures are from the disk. To separate the cost of the document from that of its history, the end is typed once
/// more into a document that was created in one change.
///
/// `THICKET_BENCH_EDITS` shortens the session. The recording is third-party data, found through `THICKET_VECTORS`.
func typing() async throws -> [Figure] {
    let edits = try TypedEdits(trace: "automerge-paper")
    let window: Int = min(10_000, edits.list.count / 4)
    let desk: TypingDesk = try await TypingDesk(parent: "/dev/shm")
    try await desk.make(text: "")
    let middle: Int = (edits.list.count - window) / 2
    let last: Int = edits.list.count - window
    var windows: [(name: String, cost: EditCost)] = []
    try await desk.type(edits.list[0..<500])
    windows.append(("beginning", try await desk.type(edits.list[500..<window])))
    let before: EditCost = try await desk.type(edits.list[window..<middle])
    windows.append(("middle", try await desk.type(edits.list[middle..<(middle + window)])))
    let after: EditCost = try await desk.type(edits.list[(middle + window)..<last])
    let textBefore: String = try await desk.text()
    windows.append(("end", try await desk.type(edits.list[last...])))
    let text: String = try await desk.text()
    guard !edits.isWhole || edits.end.hasSameBytes(as: text) else {
        throw BenchError("the client's text is not the recorded one")
    }
    try await desk.close()
    let fresh: TypingDesk = try await TypingDesk(parent: "/dev/shm")
    try await fresh.make(text: textBefore)
    windows.append(("end, no history", try await fresh.type(edits.list[last...])))
    try await fresh.close()
    let foreign: TypingDesk = try await TypingDesk(parent: "/dev/shm")
    try await foreign.make(text: "é" + textBefore)
    let moved: [TypedEdit] = edits.list[last...].prefix(2_000).map {
        TypedEdit(position: $0.position + 1, deleted: $0.deleted, inserted: $0.inserted)
    }
    windows.append(("end, not ASCII", try await foreign.type(moved[...])))
    try await foreign.close()
    var figures: [Figure] = windows.flatMap { $0.cost.figures($0.name) }
    let all: [EditCost] = windows.prefix(3).map(\.cost) + [before, after]
    let count: Int = all.reduce(0) { $0 + $1.edits }
    figures.append(
        Figure(name: "edits a second, all of it", value: Double(count) / all.reduce(0) { $0 + $1.seconds }, unit: "1/s")
    )
    figures += try await onDisk(textBefore, edits.list[last...].prefix(400))
    return figures + growth(windows)
}

/// The bound for the cost of an edit with all its history, relative to the same text without history; and for the bytes
/// written with a text of 100 KiB, relative to one of 7.
private let growthMax = 1.5

private func growth(_ windows: [(name: String, cost: EditCost)]) -> [Figure] {
    func cost(_ name: String, _ what: (EditCost) -> Double) -> Double {
        windows.first { $0.name == name }.map { what($0.cost) / Double($0.cost.edits) } ?? .nan
    }
    func ratio(_ name: String, _ one: String, _ other: String, _ what: (EditCost) -> Double) -> Figure {
        Figure(name: name, value: cost(one, what) / cost(other, what), unit: "", goal: .atMost(growthMax))
    }
    return [
        ratio("client CPU an edit, end beside end without history", "end", "end, no history", \.clientCPU),
        ratio("server CPU an edit, the same", "end", "end, no history", \.serverCPU),
        ratio("written by the client an edit, end beside beginning", "end", "beginning") { Double($0.written) },
    ]
}

/// The same on a disk: the waiting time of a person at the keyboard.
private func onDisk(_ text: String, _ edits: ArraySlice<TypedEdit>) async throws -> [Figure] {
    let desk: TypingDesk = try await TypingDesk(parent: "/tmp")
    try await desk.make(text: text)
    let sync: Double = try rawAppend(group: 1, rounds: 200).medianSeconds
    let cost: EditCost = try await desk.type(edits)
    try await desk.close()
    let times: [Double] = cost.acknowledgements.sorted()
    return [
        Figure(name: "on disk: edit to acknowledgement p50", value: quantile(times, 0.5) * 1e3, unit: "ms"),
        Figure(name: "on disk: edit to acknowledgement p99", value: quantile(times, 0.99) * 1e3, unit: "ms"),
        Figure(name: "floor: one append and fdatasync (one each side)", value: sync * 1e3, unit: "ms"),
    ]
}

/// One edit, in UTF-16 units.
struct TypedEdit {
    let position: Int
    let deleted: Int
    let inserted: String
}

/// A recorded session as a list of edits.
struct TypedEdits {
    let list: [TypedEdit]
    let end: String
    let isWhole: Bool

    init(trace name: String) throws {
        let root: String = getenv("THICKET_VECTORS").map { String(cString: $0) } ?? "../shared/vectors"
        let path = "\(root)/editing-traces/\(name).json.gz"
        guard access(path, R_OK) == 0 else {
            throw BenchMissing("there is no \(path): name the folder of test data in THICKET_VECTORS")
        }
        let trace = try Trace(path: path)
        let patches: [Trace.Patch] = trace.transactions.flatMap(\.patches)
        // Positions count code points; below U+10000 these are UTF-16 units.
        guard !patches.contains(where: { $0.inserted.unicodeScalars.contains { $0.value > 0xFFFF } }) else {
            throw BenchError("\(name) holds characters outside the basic plane")
        }
        let wanted: Int = getenv("THICKET_BENCH_EDITS").flatMap { Int(String(cString: $0)) } ?? patches.count
        list = patches.prefix(max(4_000, wanted)).map {
            TypedEdit(position: $0.position, deleted: $0.deleted, inserted: $0.inserted)
        }
        isWhole = list.count == patches.count
        end = trace.endContent
    }
}

/// The cost of a run of edits.
struct EditCost {
    var edits = 0
    var seconds: Double = 0
    var clientCPU: Double = 0
    var serverCPU: Double = 0
    /// Bytes this process wrote to files (and pipes).
    var written = 0
    var textBytes = 0
    /// Seconds from each edit to its acknowledgement.
    var acknowledgements: [Double] = []

    func figures(_ name: String) -> [Figure] {
        let count = Double(edits)
        return [
            Figure(name: "\(name): text", value: Double(textBytes) / 1_024, unit: "KiB"),
            Figure(name: "\(name): client CPU an edit", value: clientCPU / count * 1e6, unit: "µs"),
            Figure(name: "\(name): server CPU an edit", value: serverCPU / count * 1e6, unit: "µs"),
            Figure(name: "\(name): written by the client an edit", value: Double(written) / count, unit: "B"),
            Figure(name: "\(name): edit to acknowledgement p50", value: quantile(sorted, 0.5) * 1e6, unit: "µs"),
        ]
    }

    private var sorted: [Double] { acknowledgements.sorted() }
}

/// A server, a session on a store in a file, and one document.
final class TypingDesk {
    let server: BenchServer
    let session: Session
    let bucket: Bucket
    private static let key = "paper"

    init(parent: String) async throws {
        server = try BenchServer(users: 1, parent: parent)
        session = try await Thicket.connect(
            server: server.process.address, app: BenchServer.app, token: server.tokens[0],
            store: .file(server.process.folder + "/client.db"))
        bucket = try await session.bucket("papers")
    }

    func make(text: String) async throws {
        try await bucket.set(Self.key, to: ["text": .string(text)])
        try await bucket.waitUntilSynced(timeout: .seconds(60))
    }

    func text() async throws -> String { try await bucket.get(Self.key)?["text"]?.stringValue ?? "" }

    func close() async throws { await session.close() }

    /// Types the edits, each as a separate change: the next begins when the server has the one before.
    @discardableResult
    func type(_ edits: ArraySlice<TypedEdit>) async throws -> EditCost {
        var cost = EditCost()
        cost.acknowledgements.reserveCapacity(edits.count)
        let (cpu, server, written): (Double, Double, Int) = (ownCPU(), server.process.cpuSeconds(), ownWrites())
        let start: UInt64 = nanoseconds()
        for (number, edit) in edits.enumerated() {
            if number % 20_000 == 19_999 { reportProgress(number + 1, of: edits.count, since: start) }
            let pressed: UInt64 = nanoseconds()
            try await bucket.editText(
                Self.key, path: ["text"], at: edit.position, deleting: edit.deleted, inserting: edit.inserted)
            try await bucket.waitUntilSynced(timeout: .seconds(30))
            cost.acknowledgements.append(Double(nanoseconds() - pressed) / 1e9)
        }
        cost.seconds = Double(nanoseconds() - start) / 1e9
        cost.edits = edits.count
        (cost.clientCPU, cost.written) = (ownCPU() - cpu, ownWrites() - written)
        cost.serverCPU = self.server.process.cpuSeconds() - server
        cost.textBytes = try await text().utf8.count
        return cost
    }
}

/// Prints an occasional line during a run of minutes.
private func reportProgress(_ done: Int, of count: Int, since start: UInt64) {
    let seconds: Double = Double(nanoseconds() - start) / 1e9
    let left: Double = seconds / Double(done) * Double(count - done)
    Bench.fputsError("typing: \(done) of \(count) edits of this part, about \(Int(left)) s left of it")
}

/// CPU seconds of this process, user and system.
func ownCPU() -> Double {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
}

/// Bytes that this process passed to `write`; sockets are sent to by other calls.
func ownWrites() -> Int {
    guard let file: UnsafeMutablePointer<FILE> = fopen("/proc/self/io", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    while fgets(&line, 128, file) != nil {
        let text: String = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        if text.hasPrefix("wchar: ") { return Int(text.dropFirst(7).dropLast()) ?? 0 }
    }
    return 0
}
