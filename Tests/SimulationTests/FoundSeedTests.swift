import Testing
import ThicketBlocking
import ThicketNonces
import ThicketSimulation

@Suite("Seeds of the simulation that found a fault, and simulated days", .blocking, .nonceWatch)
struct FoundSeedTests {
    /// Their faults are in decisions 0002, 0003, 0005 and 0008.
    @Test(
        "seeds that found a fault pass",
        arguments: [
            (971_754_812_214, .storm), (102_615_161_790, .storm), (869_451_437_284, .storm), (9_502_082_193, .storm),
            (771_000_391, .storm), (102_615_160_016, .disks), (703_264_084_091, .disks), (540_606_176_642, .disks),
        ] as [(UInt64, Kind)])
    func found(seed: UInt64, kind: Kind) {
        #expect(Simulation.run(seed: seed, kind: kind).problems == [])
    }

    @Test("simulated days of users pass, too, with the night and the morning after")
    func days() {
        let result = Simulation.run(seed: 5, with: ["clients": 3, "seconds": 86_400], kind: .days)
        #expect(result.problems == [])
        #expect(result.clientSeconds > 86_400 * 3)
    }
}
