import Glibc
import ThicketClient
import ThicketServerProcess
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A large file up to the server and down to another device, over loopback, beside the slower of two floors:
/// AES-256-GCM of `openssl speed` on one core, and the file written by `dd` with `fsync`. And what both programs grow.
///
/// Up ends when the server has confirmed the node; down when all chunks are verified on the disk of the other device.
func treeContents(mebibytes: Int, rounds: Int = 3) async throws -> [Figure] {
    let stand = try await TreeStand()
    let source = stand.process.folder + "/source.bin"
    try writeRandomFile(source, mebibytes: mebibytes)
    defer { unlink(source) }
    let (up, down) = (try await stand.device("up"), try await stand.device("down"))
    // Both programs have their connections and their buffers before the measurement.
    _ = try await upload(try smallFile(stand.process.folder), "first", up)
    try await down.awaitSync()
    var run = ContentRun(mebibytes: mebibytes)
    for round in 0..<rounds {
        try run.measureFloors(source, stand.process.folder + "/copy.bin")
        try await run.measure(source, "file \(round)", up, down, stand.process)
        progress("tree: content, round \(round + 1) of \(rounds)")
    }
    await up.session.close()
    await down.session.close()
    return run.figures
}

/// The samples of the rounds.
private struct ContentRun {
    let mebibytes: Int
    private var cipher = [Double]()
    private var disk = [Double]()
    private var sent = [Double]()
    private var received = [Double]()
    private var clientGrowth = [Double]()
    private var serverGrowth = [Double]()
    private var serverCPU = [Double]()
    private var clientCPU = [Double]()

    init(mebibytes: Int) { self.mebibytes = mebibytes }

    mutating func measureFloors(_ source: String, _ copy: String) throws {
        cipher.append(try gcmMegabytesPerSecond() * 1e6 / 1_048_576)
        let start = nanoseconds()
        try runProgram("dd", ["if=\(source)", "of=\(copy)", "bs=1M", "conv=fsync", "status=none"])
        disk.append(Double(mebibytes) / (Double(nanoseconds() - start) / 1e9))
        unlink(copy)
    }

    mutating func measure(
        _ source: String, _ name: String, _ up: TreeDesk, _ down: TreeDesk, _ server: ServerProcess
    ) async throws {
        let ownPid = getpid()
        resetPeak(ownPid)
        resetPeak(server.process ?? 0)
        let (own, other) = (residentBytes(ownPid), residentBytes(server.process ?? 0))
        let (ownBefore, otherBefore) = (ownCPU(), server.cpuSeconds())
        var start = nanoseconds()
        let node = try await upload(source, name, up)
        sent.append(Double(mebibytes) / (Double(nanoseconds() - start) / 1e9))
        try await waitForNode(node, down)
        start = nanoseconds()
        guard let ticket = try await down.tree.downloadNodeData(node), let file = try await ticket.value() else {
            throw BenchError("the node has no content")
        }
        received.append(Double(mebibytes) / (Double(nanoseconds() - start) / 1e9))
        clientCPU.append((ownCPU() - ownBefore) / 2)
        serverCPU.append((server.cpuSeconds() - otherBefore) / 2)
        clientGrowth.append(Double(peakBytes(ownPid) - own) / 1_048_576)
        serverGrowth.append(Double(peakBytes(server.process ?? 0) - other) / 1_048_576)
        let copy = server.folder + "/received.bin"
        try file.file.copy(to: copy)
        try runProgram("cmp", [source, copy])
        unlink(copy)
        try await up.tree.delete(node)
        try await up.awaitSync()
    }

    private func ratios(_ own: [Double]) -> [Double] {
        own.indices.map { own[$0] / min(cipher[$0], disk[$0]) }
    }

    var figures: [Figure] {
        let what = "\(mebibytes) MiB"
        return [
            Figure(name: "floor: openssl speed AES-256-GCM", samples: cipher, unit: "MiB/s"),
            Figure(name: "floor: dd with fsync", samples: disk, unit: "MiB/s"),
            Figure(name: "\(what) up", samples: sent, unit: "MiB/s"),
            Figure(name: "  ratio to the slower floor", samples: ratios(sent), unit: "", goal: .atLeast(0.8)),
            Figure(name: "\(what) down", samples: received, unit: "MiB/s"),
            Figure(name: "  ratio to the slower floor", samples: ratios(received), unit: "", goal: .atLeast(0.8)),
            Figure(name: "processor time of the client, one way", samples: clientCPU, unit: "s"),
            Figure(name: "processor time of the server, one way", samples: serverCPU, unit: "s"),
            Figure(name: "growth of the client", samples: clientGrowth, unit: "MiB", goal: .atMost(64)),
            Figure(name: "growth of the server", samples: serverGrowth, unit: "MiB", goal: .atMost(64)),
        ]
    }
}

/// Creates a node with a file as its content, and waits until the server has confirmed it.
private func upload(_ source: String, _ name: String, _ desk: TreeDesk) async throws -> NodeID {
    let node = try await desk.tree.createNode(at: TreePath(.home, [name]), data: .file(source))
    try await desk.awaitSync()
    return node.id
}

private func waitForNode(_ node: NodeID, _ desk: TreeDesk) async throws {
    let events = await desk.tree.events
    if try await desk.tree.node(node) != nil { return }
    for await _ in events where try await desk.tree.node(node) != nil { return }
    throw BenchError("the tree was closed")
}

private func smallFile(_ folder: String) throws -> String {
    let path = folder + "/small.bin"
    try writeRandomFile(path, mebibytes: 1)
    return path
}

/// Random bytes, so that nothing between can make them smaller.
private func writeRandomFile(_ path: String, mebibytes: Int) throws {
    try runProgram(
        "dd",
        ["if=/dev/urandom", "of=\(path)", "bs=1M", "count=\(mebibytes)", "conv=fsync", "status=none"])
}

private func gcmMegabytesPerSecond() throws -> Double {
    let words = ["speed", "-mr", "-seconds", "1", "-bytes", "65536", "-aead", "-evp", "aes-256-gcm"]
    let said = try TLSPeer.text(TLSPeer.spawn(words))
    guard let line = said.split(separator: "\n").last(where: { $0.hasPrefix("+F") }),
        let value = Double(line.split(separator: ":").last ?? "")
    else { throw BenchError("openssl speed \(words) said: \(said)") }
    return value / 1e6
}

private func runProgram(_ name: String, _ arguments: [String]) throws {
    var child = pid_t()
    var words: [UnsafeMutablePointer<CChar>?] = ([name] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    guard posix_spawnp(&child, name, nil, nil, &words, environ) == 0 else { throw BenchError("\(name) is missing") }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else { throw BenchError("\(name) \(arguments) failed: \(status)") }
}

/// Makes the kernel count the peak of a process's memory from now on.
private func resetPeak(_ process: pid_t) {
    guard let file = fopen("/proc/\(process)/clear_refs", "w") else { return }
    fputs("5", file)
    fclose(file)
}

/// The largest resident memory of a process since `resetPeak`.
private func peakBytes(_ process: pid_t) -> Int { memory(process, "VmHWM:") }

private func residentBytes(_ process: pid_t) -> Int { memory(process, "VmRSS:") }

/// A line of the kernel's status of a process, in bytes; 0 without it.
private func memory(_ process: pid_t, _ name: String) -> Int {
    let lines = ServerProcess.read("/proc/\(process)/status").split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix(name) }),
        let kibibytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
    else { return 0 }
    return kibibytes << 10
}
