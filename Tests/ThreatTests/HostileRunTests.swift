import Glibc
import Testing
import ThicketThreats

@Suite("Hostile input against a live server")
struct HostileRunTests {
    /// A slice of `./dev soak --hostile`.
    @Test(
        "3,000 mutated requests, tokens and frames: no crash, no 5xx, memory flat, and clients beside them are answered"
    )
    func slice() {
        var settings: HostileRun.Settings = .init()
        settings.requests = 3_000
        settings.seed = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1
        let outcome: HostileRun.Outcome = HostileRun.run(settings)
        #expect(outcome.faults.isEmpty, "seed \(settings.seed): \(outcome.faults)")
        print("hostile: \(outcome.lines.joined(separator: "; "))")
    }
}
