import Glibc
import Testing
import ThicketNonces
import ThicketSimulation

@Suite("Simulation of server, clients, network and disks from a seed", .serialized, .nonceWatch)
struct SimulationTests {
    /// Wall seconds of fresh seeds; `./dev test` leaves it at 60.
    private static var seconds: Double { setting("THICKET_SIM_SECONDS").flatMap(Double.init) ?? 60 }
    /// `./dev test` passes a number made from the commit, so that each commit plays other seeds and the same again.
    private static var firstSeed: UInt64 { setting("THICKET_SEED").flatMap { UInt64($0) } ?? 1 }

    private static func setting(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    @Test("the same seed gives the same run, event for event", arguments: [UInt64(1), 2, 3])
    func isDeterministic(seed: UInt64) {
        let first: SimulationResult = Simulation.run(seed: seed)
        let second: SimulationResult = Simulation.run(seed: seed)
        #expect(first.events > 200, "seed \(seed) plays hardly anything")
        #expect(first.traceHash == second.traceHash, "seed \(seed)")
        #expect(first.events == second.events, "seed \(seed)")
        #expect(first.problems == second.problems, "seed \(seed)")
    }

    @Test("at rest everybody holds the server's objects, and nothing acknowledged or typed is lost")
    func seeds() async {
        let first: UInt64 = Self.firstSeed
        let cores: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        print("simulation: first seed \(first), \(Self.seconds) s")
        let report: Campaign.Report = await Campaign.run(
            firstSeed: first, seconds: Self.seconds, tasks: cores, kind: .storm
        ) { result in
            if !result.problems.isEmpty { print(result.failureText) }
        }
        print(report.summary)
        #expect(report.runs > 0)
        for failure: SimulationResult in report.failures { Issue.record("\(failure.failureText)") }
    }

    /// The trace of these has every write of every disk, too: a turn that wrote its rows in the order of a dictionary
    /// made other pages in each run of seeds 4 and 8, and months later another crash.
    @Test(
        "over real stores the same seed gives the same run, too, write for write",
        arguments: [
            (UInt64(1), false), (4, false), (8, false), (4, true),
        ])
    func disksAreDeterministic(seed: UInt64, isSealed: Bool) {
        let first: SimulationResult = Simulation.run(seed: seed, kind: .disks, isSealed: isSealed)
        let second: SimulationResult = Simulation.run(seed: seed, kind: .disks, isSealed: isSealed)
        #expect(first.events > 200, "seed \(seed) plays hardly anything")
        #expect(first.traceHash == second.traceHash, "seed \(seed)")
        #expect(first.problems == [], "seed \(seed)")
    }

    @Test("real stores on disks that crash at any write lose nothing acknowledged or typed", arguments: 0..<3)
    func disks(number: Int) {
        let seed: UInt64 = Self.firstSeed &+ UInt64(number)
        let result: SimulationResult = Simulation.run(seed: seed, kind: .disks)
        #expect(result.problems == [], "\(result.failureText)")
    }

    @Test(
        // Some of these bugs use a nonce twice.
        "a bug that is built in is found", .noncesGiven,
        arguments: [
            Mutant.groupWithoutAnswer, .silentFeed, .broadcastBeforeCommit, .noDuplicateCheck, .unsavedPending,
            .lyingDisk, .plainRestore, .eagerHeads, .mixedFeed, .forgetfulCompaction, .freshSealing, .takesClear,
            .bareRemoval,
        ])
    func mutants(mutant: Mutant) {
        let found: Bool = (1...200).contains { seed in
            !Simulation.run(seed: seed, kind: mutant.kind, mutant: mutant).problems.isEmpty
        }
        #expect(found, "200 seeds do not find \(mutant.rawValue)")
    }

    @Test("a failing seed shrinks to one that fails still, and the printed changes play it again")
    func shrinks() throws {
        let seed: UInt64 = 4
        let whole: SimulationResult = Simulation.run(seed: seed, kind: .storm, mutant: .staleSource)
        try #require(!whole.problems.isEmpty)
        let small: Shrinking.Outcome = try #require(
            Shrinking.run(seed: seed, kind: .storm, mutant: .staleSource, runsMax: 60) { _ in })
        #expect(!small.changes.isEmpty)
        #expect(small.result.events < whole.events)
        #expect(small.story.contains(small.command))
        #expect(small.command.contains("--mutant staleSource"))
        #expect(whole.failureText.contains("--seed 4 --storms --mutant staleSource --verbose"))
        let again: SimulationResult = Simulation.run(
            seed: small.result.seed, with: small.changes, kind: .storm, mutant: .staleSource)
        #expect(again.traceHash == small.result.traceHash)
        #expect(!again.problems.isEmpty)
    }

    /// What they found is in decisions 0069, 0070, 0072, 0081 and 0082.
    @Test(
        "seeds that have found a fault are played again",
        arguments: [
            (971_754_812_214, .storm), (971_754_790_399, .storm), (102_615_161_790, .storm), (869_451_437_284, .storm),
            (512_378_896_441, .storm), (194_335_479_760, .storm), (9_502_082_193, .storm), (9_502_087_347, .storm),
            (933_557_594_966, .storm), (102_615_160_016, .disks), (88_469_302_926, .disks),
            (703_264_084_091, .disks), (540_606_176_642, .disks), (540_606_176_813, .disks),
        ] as [(UInt64, Kind)])
    func found(seed: UInt64, kind: Kind) {
        #expect(Simulation.run(seed: seed, kind: kind).problems == [])
    }

    @Test("days of people pass, too, with the night and the morning after")
    func days() {
        let result: SimulationResult = Simulation.run(seed: 5, with: ["clients": 3, "seconds": 86_400], kind: .days)
        #expect(result.problems == [])
        #expect(result.clientSeconds > 86_400 * 3)
    }
}
