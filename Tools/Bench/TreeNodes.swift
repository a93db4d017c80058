import Glibc
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketReplay
import ThicketSQLite
import ThicketSealed
import ThicketServerProcess
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A small node until the server has it durably, alternating with an object of an open bucket by the same session.
func smallNodes(count: Int, rounds: Int = 7) async throws -> [Figure] {
    let stand = try await TreeStand()
    let desk = try await stand.device("one")
    let bucket = try await desk.session.bucket("b")
    let text = String(repeating: "words ", count: 50)
    var (nodes, objects) = ([Double](), [Double]())
    for round in 0..<rounds {
        var times = [Double]()
        for number in 0..<count {
            let start = nanoseconds()
            try await bucket.set("key-\(round)-\(number)", to: ["text": .string(text)])
            try await bucket.waitUntilSynced(timeout: .seconds(60))
            times.append(Double(nanoseconds() - start) / 1e6)
        }
        objects.append(quantile(times.sorted(), 0.5))
        times = []
        for number in 0..<count {
            let start = nanoseconds()
            try await desk.tree.createNode(
                at: TreePath(.home, ["node \(round) \(number)"]), data: .bytes(Array(text.utf8)))
            try await desk.awaitSync()
            times.append(Double(nanoseconds() - start) / 1e6)
        }
        nodes.append(quantile(times.sorted(), 0.5))
    }
    await desk.session.close()
    return [
        Figure(name: "an object of a bucket, durable at the server, p50", samples: objects, unit: "ms"),
        Figure(name: "a node with 300 bytes, durable at the server, p50", samples: nodes, unit: "ms"),
        Figure(
            name: "  ratio", samples: zip(nodes, objects).map { $0 / $1 }, unit: "", goal: .atMost(2)),
    ]
}

/// The skeleton of a tree to a new device, beside as many sealed objects to a new device.
func newDeviceOfTree(nodes count: Int, rounds: Int = 3) async throws -> [Figure] {
    let stand = try await TreeStand()
    let writer = try await stand.device("writer")
    let folders = max(1, count / 1_000)
    try await writer.fill(folders) { try TreePath(.home, ["folder \($0)"]) }
    try await writer.fill(count - folders) { try TreePath(.home, ["folder \($0 % folders)", "recipe \($0).txt"]) }
    await writer.session.close()
    let server = try BenchServer(users: 1)
    let keys = try Replay.randomKeys(app: BenchServer.app, bucket: "b")
    try await fillSealed(server, keys, count)
    var (trees, treeCPU, sealed, sealedCPU) = ([Double](), [Double](), [Double](), [Double]())
    for round in 0..<rounds {
        let (start, before) = (nanoseconds(), ownCPU())
        let reader = try await stand.device("reader-\(round)")
        try await reader.awaitSync()
        trees.append(Double(nanoseconds() - start) / 1e9)
        treeCPU.append(ownCPU() - before)
        let shown = try await reader.tree.children(of: TreePath(.home)).count
        guard shown == folders else { throw BenchError("the new device shows \(shown) of \(folders) folders") }
        await reader.session.close()
        let (time, work) = try await readSealed(server, keys, count, "reader \(round).db")
        sealed.append(time)
        sealedCPU.append(work)
        progress("tree: skeleton, round \(round + 1) of \(rounds)")
    }
    return [
        Figure(name: "\(count) sealed objects to a new device", samples: sealed, unit: "s"),
        Figure(name: "  processor time of the client", samples: sealedCPU, unit: "s"),
        Figure(name: "\(count) nodes to a new device", samples: trees, unit: "s"),
        Figure(name: "  processor time of the client", samples: treeCPU, unit: "s"),
        Figure(name: "  ratio", samples: zip(trees, sealed).map { $0 / $1 }, unit: "", goal: .atMost(3)),
    ]
}

private func fillSealed(_ server: BenchServer, _ keys: SealedBucketKeys, _ count: Int) async throws {
    let session = try await Thicket.connect(
        server: server.process.address, app: BenchServer.app, token: server.tokens[0])
    let bucket = try await session.bucket("b", sealedBy: keys)
    for number in 0..<count {
        try await bucket.set("key\(number)", to: ["name": .string("recipe \(number).txt")])
    }
    try await bucket.waitUntilSynced(timeout: .seconds(600))
    await session.close()
}

private func readSealed(
    _ server: BenchServer, _ keys: SealedBucketKeys, _ count: Int, _ file: String
) async throws -> (seconds: Double, cpu: Double) {
    let (start, before) = (nanoseconds(), ownCPU())
    let session = try await Thicket.connect(
        server: server.process.address, app: BenchServer.app, token: server.tokens[0],
        store: .file("\(server.process.folder)/\(file)"))
    let bucket = try await session.bucket("b", sealedBy: keys)
    try await bucket.waitUntilSynced(timeout: .seconds(600))
    let result = (Double(nanoseconds() - start) / 1e9, ownCPU() - before)
    let found = try await bucket.keys().count
    await session.close()
    guard found == count else { throw BenchError("the new device has \(found) of \(count) objects") }
    return result
}

/// Pages of a hundred children, beside pages of the index of the same bucket with the same records, over HTTP.
func childrenPages(rounds: Int = 7, seconds: Double = 1) async throws -> [Figure] {
    let stand = try await TreeStand()
    let desk = try await stand.device("one")
    try await desk.fill(1) { _ in try TreePath(.home, ["folder"]) }
    try await desk.fill(2_000) { try TreePath(.home, ["folder", "recipe \($0).txt"]) }
    guard let folder = try await desk.tree.node(at: TreePath(.home, ["folder"])) else { throw BenchError("no folder") }
    let token = await desk.session.accessToken
    await desk.session.close()
    let load = try RESTLoad(port: stand.process.port, tokens: [token])
    let head = " HTTP/1.1\r\nhost: b\r\nx-simperium-token: \(token)\r\n\r\n"
    let index = "GET /1/\(BenchServer.app)/tree/index?limit=100&data=1"
    let children = "GET /1/\(BenchServer.app)/tree/\(stand.user)/children?parent=\(folder.id.text)&limit=100"
    let kinds = [
        RESTLoad.Kind("an index page of 100 records") { _, _ in index + head },
        RESTLoad.Kind("a page of 100 children") { _, _ in children + head },
        RESTLoad.Kind("a page of 100 children, skeletons") { _, _ in children + "&fields=skeleton" + head },
    ]
    for _ in 0..<rounds {
        for kind in kinds {
            let cpu = stand.process.cpuSeconds()
            kind.runs.append(try load.run(seconds: seconds, kind.make))
            kind.costs.append((stand.process.cpuSeconds() - cpu) / Double(kind.runs.last?.requests ?? 1) * 1e6)
        }
    }
    let medians = kinds.map { kind in kind.runs.map { quantile($0.times, 0.5) } }
    return kinds.flatMap(\.figures) + [
        Figure(
            name: "a page of children to an index page, p50", samples: zip(medians[1], medians[0]).map { $0 / $1 },
            unit: "", goal: .atMost(2))
    ]
}

/// The move of a large branch: the records that it writes, and its time to the other device's screen.
func movedBranch(nodes count: Int) async throws -> [Figure] {
    let stand = try await TreeStand()
    let (desk, other) = (try await stand.device("one"), try await stand.device("two"))
    try await desk.fill(2) { try TreePath(.home, ["folder \($0)"]) }
    try await desk.fill(10) { try TreePath(.home, ["folder 0", "part \($0)"]) }
    try await desk.fill(count - 11) { try TreePath(.home, ["folder 0", "part \($0 % 10)", "recipe \($0).txt"]) }
    try await other.awaitSync()
    let place = try TreePath(.home, ["folder 0"])
    guard let branch = try await desk.tree.node(at: place) else { throw BenchError("no folder") }
    var (local, times) = ([Double](), [Double]())
    let database = stand.process.folder + "/thicket.db"
    let before = try changes(in: database)
    let moves = 20
    for number in 0..<moves {
        let events = await other.tree.events
        let path = try number % 2 == 0 ? TreePath(.home, ["folder 1", "moved"]) : place
        let start = nanoseconds()
        try await desk.tree.move(branch.id, to: path)
        local.append(Double(nanoseconds() - start) / 1e6)
        for await event in events {
            if case .moved(let node, _, _) = event, node.id == branch.id { break }
        }
        times.append(Double(nanoseconds() - start) / 1e6)
    }
    let written = Double(try changes(in: database) - before) / Double(moves)
    await desk.session.close()
    await other.session.close()
    return [
        Figure(
            name: "records written by a move of a branch of \(count) nodes", value: written, unit: "",
            goal: .atMost(1)),
        Figure(name: "  on this device", samples: local, unit: "ms"),
        Figure(name: "  on the other device's screen", samples: times, unit: "ms"),
    ]
}

/// Changes in a server's log.
private func changes(in database: String) throws -> Int64 {
    try Database(path: database, mode: .readOnly).integer("SELECT count(*) FROM chg") ?? 0
}
