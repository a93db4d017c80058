import Glibc
import Testing
import ThicketThreats

@Suite("Hostile input against a live server")
struct HostileRunTests {
    /// A slice of `./dev soak --hostile`.
    @Test(
        "3,000 mutated requests, tokens and frames cause no crash, 5xx or growth, and other clients are answered"
    )
    func slice() {
        var settings = HostileRun.Settings()
        settings.requests = 3_000
        settings.seed = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1
        let outcome = HostileRun.run(settings)
        #expect(outcome.faults.isEmpty, "seed \(settings.seed): \(outcome.faults)")
        print("hostile: \(outcome.lines.joined(separator: "; "))")
    }
}
