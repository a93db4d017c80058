import Glibc
import ThicketProtocol

/// One user, one change outstanding: the time from an edit to its acknowledgement beside the time of a disk sync,
/// alternating.
func ping(rounds: Int = 10, changes: Int = 100) throws -> [Figure] {
    let server = try BenchServer(users: 1)
    let loop = LoadLoop()
    let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
    loop.add(socket)
    try authorize([socket], on: loop, server: server, bucket: "b")
    var acks: [Double] = []
    var tails: [Double] = []
    var syncs: [Double] = []
    var ratios: [Double] = []
    var version = 0
    for _ in 0..<rounds {
        var times: [Double] = []
        for _ in 0..<changes {
            let start: UInt64 = nanoseconds()
            socket.send(change(of: "k", ccid: "c-\(version)", number: version, version: version))
            var isAnswered = false
            try loop.run(until: { isAnswered }, receive: { _, _ in isAnswered = true })
            times.append(Double(nanoseconds() - start) / 1e6)
            version += 1
        }
        let sync: Double = try rawAppend(group: 1, rounds: changes).medianSeconds * 1e3
        times.sort()
        acks.append(quantile(times, 0.5))
        tails.append(quantile(times, 0.99))
        syncs.append(sync)
        ratios.append(acks[acks.count - 1] / sync)
    }
    return [
        Figure(name: "acknowledgement p50", samples: acks, unit: "ms"),
        Figure(name: "acknowledgement p99", samples: tails, unit: "ms"),
        Figure(name: "floor: one append and fdatasync", samples: syncs, unit: "ms"),
        Figure(name: "ratio to the floor", samples: ratios, unit: "", goal: .atMost(3)),
    ]
}
