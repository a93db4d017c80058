import Glibc
import Testing
import ThicketBlocking
import ThicketNonces
import ThicketSimulation

@Suite("Simulation of server, clients, network and disks from a seed", .blocking, .serialized, .nonceWatch)
struct SimulationTests {
    /// Wall seconds of fresh seeds; `./dev test` leaves it at 12.
    private static var seconds: Double { setting("THICKET_SIM_SECONDS").flatMap(Double.init) ?? 12 }
    /// `./dev test` passes a number made from the commit, so that each commit plays its own seeds, and the same ones
    /// again.
    private static var firstSeed: UInt64 { setting("THICKET_SEED").flatMap { UInt64($0) } ?? 1 }

    private static func setting(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    @Test("the same seed gives the same run, event for event", arguments: [UInt64(1), 2])
    func isDeterministic(seed: UInt64) {
        let first = Simulation.run(seed: seed)
        let second = Simulation.run(seed: seed)
        #expect(first.events > 200, "seed \(seed) plays hardly anything")
        #expect(first.traceHash == second.traceHash, "seed \(seed)")
        #expect(first.events == second.events, "seed \(seed)")
        #expect(first.problems == second.problems, "seed \(seed)")
    }

    @Test("at rest all clients have the server's objects, and nothing acknowledged or typed is lost")
    func seeds() async {
        let first = Self.firstSeed
        let cores = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        print("simulation: first seed \(first), \(Self.seconds) s")
        let report = await Campaign.run(
            firstSeed: first, seconds: Self.seconds, tasks: cores, kind: .storm
        ) { result in
            if !result.problems.isEmpty { print(result.failureText) }
        }
        print(report.summary)
        #expect(report.runs > 0)
        for failure in report.failures { Issue.record("\(failure.failureText)") }
    }

    /// The trace of these has every write of every disk, too: a turn that wrote its rows in the order of a dictionary
    /// made different pages in each run of seeds 4 and 8, and months later a different crash.
    @Test(
        "over real stores the same seed gives the same run, write for write",
        arguments: [
            (UInt64(8), false), (4, true),
        ])
    func disksAreDeterministic(seed: UInt64, isSealed: Bool) {
        let first = Simulation.run(seed: seed, kind: .disks, isSealed: isSealed)
        let second = Simulation.run(seed: seed, kind: .disks, isSealed: isSealed)
        #expect(first.events > 200, "seed \(seed) plays hardly anything")
        #expect(first.traceHash == second.traceHash, "seed \(seed)")
        #expect(first.problems == [], "seed \(seed)")
    }

    @Test("with trees the same seed gives the same run, event for event", arguments: [UInt64(6)])
    func treesAreDeterministic(seed: UInt64) {
        let first = Simulation.run(seed: seed, kind: .storm, hasTrees: true)
        let second = Simulation.run(seed: seed, kind: .storm, hasTrees: true)
        #expect(first.events > 200 && first.hasTrees, "seed \(seed) plays hardly anything")
        #expect(first.traceHash == second.traceHash, "seed \(seed)")
        #expect(first.problems == second.problems)
    }

    @Test(
        "contents in blobs: at rest the server and each device have what was sealed, and no orphan is left",
        arguments: [(UInt64(1), Kind.storm), (11, .storm), (5, .disks)])
    func blobs(seed: UInt64, kind: Kind) {
        let result = Simulation.run(seed: seed, with: ["blobs": 400], kind: kind, hasTrees: true)
        #expect(result.problems == [], "\(result.failureText)")
        #expect(result.blobTransfers.uploads > 3 && result.blobTransfers.downloads > 3, "hardly any content moved")
    }

    @Test("real stores on disks that crash at any write lose nothing acknowledged or typed", arguments: 0..<3)
    func disks(number: Int) {
        let seed = Self.firstSeed &+ UInt64(number)
        let result = Simulation.run(seed: seed, kind: .disks)
        #expect(result.problems == [], "\(result.failureText)")
    }
}
