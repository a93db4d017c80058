import Glibc
import ThicketProtocol
import ThicketServer

/// The cost of a change to the server with ten times as many users, objects in the bucket, or earlier changes; and the
/// cost of an object for a new client (`GrowthOfIndex`) and of a missed change (`GrowthOfHistory`).
///
/// A small and a large store, filled the same way, alternately receive the same changes. Costs are CPU time of the
/// server's process, all its threads, background work included: other programs on the machine disturb that least. The
/// time until a lone change is acknowledged is the time that its author sees, the disk included.
func growth() async throws -> [Figure] {
    try await compare(
        "a change, 64 users", small: GrowthLoad(users: 64, objects: 1, history: 1),
        large: GrowthLoad(users: 640, objects: 1, history: 1))
        + compare(
            "a change, 1,000 objects in the bucket", small: GrowthLoad(users: 1, objects: 1_000, history: 1),
            large: GrowthLoad(users: 1, objects: 10_000, history: 1))
        + compare(
            "a change, 2,000 changes of the object behind it", small: GrowthLoad(users: 1, objects: 1, history: 2_000),
            large: GrowthLoad(users: 1, objects: 1, history: 20_000))
        + indexGrowth() + growthOfReading()
}

/// Rounds of each, alternating.
let growthRounds = 9

private func compare(_ what: String, small: GrowthLoad, large: GrowthLoad) throws -> [Figure] {
    progress("growth: \(what): both stores filled")
    try small.warmUp()
    try large.warmUp()
    var costs: [[Double]] = [[], []]
    var acknowledgements: [[Double]] = [[], []]
    for round: Int in 0..<growthRounds {
        let isSmallFirst: Bool = round % 2 == 0
        for load in isSmallFirst ? [small, large] : [large, small] {
            let place: Int = load === small ? 0 : 1
            costs[place].append(try load.round())
            acknowledgements[place].append(try load.acknowledgement())
        }
        progress(
            "growth: \(what): round \(round + 1) of \(growthRounds): \(Bench.rounded(costs[0][round])) and "
                + "\(Bench.rounded(costs[1][round])) µs")
    }
    return growthFigures(what, costs[0], costs[1])
        + growthFigures("the answer to \(what)", acknowledgements[0], acknowledgements[1])
}

/// Median of the rounds' ratios, and ratio of the sums: occasional work is in few rounds, but in all sums.
func growthFigures(_ what: String, _ small: [Double], _ large: [Double]) -> [Figure] {
    [
        Figure(name: what, samples: small, unit: "µs"),
        Figure(name: "  ten times as many", samples: large, unit: "µs"),
        Figure(name: "  ratio", samples: zip(large, small).map { $0 / $1 }, unit: "", goal: .atMost(1.5)),
        Figure(
            name: "  ratio of all rounds together", value: large.reduce(0, +) / small.reduce(0, +), unit: "",
            goal: .atMost(1.5)),
    ]
}

/// One server with `users` users of one bucket each, `objects` objects in each and `history` changes of each object,
/// and 64 changes in flight at a time, spread over all of them.
private final class GrowthLoad {
    private static let inFlight = 64
    private static let changesPerRound = 2_048
    private static let loneChangesPerRound = 200
    /// More than a log of 64 MiB holds (`StoreSettings.restartPages`), in any store: heads are write-behind and pages
    /// are gathered, so that 60,000 changes of one object take 35 MiB.
    private static let warmUpChanges = 200_000

    private let server: BenchServer
    private let loop = LoadLoop()
    private var sockets: [LoadSocket] = []
    private let objects: Int
    /// The version of each object, user after user.
    private var versions: [Int]
    private var sent = 0

    init(users: Int, objects: Int, history: Int) throws {
        self.objects = objects
        versions = .init(repeating: history, count: users * objects)
        server = try BenchServer(users: users, starts: false)
        try Self.fill(server, users: users, objects: objects, history: history)
        try server.process.start()
        sockets = try connect(0..<users, to: server, on: loop)
    }

    private static func fill(_ server: BenchServer, users: Int, objects: Int, history: Int) throws {
        let fill = try OfflineFill(server)
        for user: Int in 0..<users {
            let bucket: BucketID = try OfflineFill.bucket("b", user: user)
            for object: Int in 0..<objects {
                for version: Int in 0..<history { try fill.add("o\(object)", version: version, to: bucket) }
            }
        }
        try fill.finish()
    }

    /// Touches every object once, so that all are in the server's memory, and lets the log restart: until its file has
    /// reached its largest size, the kernel allocates new blocks for it, and more of them for the larger store.
    func warmUp() throws { try run(max(versions.count, Self.warmUpChanges)) }

    /// Server CPU of one change, µs.
    func round() throws -> Double {
        let cpu: Double = server.process.cpuSeconds()
        try run(Self.changesPerRound)
        return (server.process.cpuSeconds() - cpu) / Double(Self.changesPerRound) * 1e6
    }

    /// Median time from sending a change to its acknowledgement, with no other change in flight; µs.
    func acknowledgement() throws -> Double {
        var times: [Double] = []
        for _ in 0..<Self.loneChangesPerRound {
            let start: UInt64 = nanoseconds()
            try run(1)
            times.append(Double(nanoseconds() - start) / 1e3)
        }
        times.sort()
        return quantile(times, 0.5)
    }

    private func run(_ count: Int) throws {
        var refused = 0
        var done = 0
        let together: Int = min(count, Self.inFlight)
        for _ in 0..<together { sendNext() }
        var left: Int = count - together
        try loop.run(
            until: { done >= count || refused > 0 },
            receive: { _, bytes in
                if contains(bytes, "\"error\"") { refused += 1 }
                let arrived: Int = occurrences(of: "\"ccids\"", in: bytes)
                done += arrived
                for _ in 0..<min(arrived, left) { sendNext() }
                left -= min(arrived, left)
            })
        guard refused == 0 else { throw BenchError("the server refused changes: the figures would mean nothing") }
    }

    /// Steps from user to user, and through the objects with a stride that reaches each of them.
    private func sendNext() {
        let place: Int = sent % versions.count * 7_919 % versions.count
        let version: Int = versions[place]
        versions[place] += 1
        sent += 1
        sockets[place / objects].send(
            change(of: "o\(place % objects)", ccid: "g-\(sent)", number: sent, version: version))
    }
}

/// Prints a progress line, apart from the results.
func progress(_ line: String) { Bench.fputsError(line) }
