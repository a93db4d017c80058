import Glibc
import ThicketCommandLine
import ThicketSimulation

/// Plays the simulation for as long as one likes, or one seed again.
private let help: String = """
    usage: thicket-soak [--minutes N] [--seed S [--verbose]]

      --minutes N   play fresh seeds on all cores for N minutes (default 10); with --seed: from that seed on
      --seed S      play this one seed (with --minutes: begin with it)
      --verbose     print every event of the one seed

    Ends with 1 when a seed fails, and prints the command that plays it again.

    """

private struct Wishes {
    var minutes: Double?
    var seed: UInt64?
    var isVerbose: Bool = false

    /// nil: not understood.
    init?(_ words: [String]) {
        var rest: ArraySlice<String> = words[...]
        while let word: String = rest.popFirst() {
            switch word {
            case "--verbose": isVerbose = true
            case "--minutes":
                guard let value: Double = rest.popFirst().flatMap(Double.init), value > 0 else { return nil }
                minutes = value
            case "--seed":
                guard let value: UInt64 = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                seed = value
            default: return nil
            }
        }
    }
}

private func soak(_ wishes: Wishes) async -> Int32 {
    if let seed: UInt64 = wishes.seed, wishes.minutes == nil {
        let tell: @Sendable (String) -> Void = { line in _ = Terminal.write(line + "\n") }
        let result: SimulationResult = Simulation.run(seed: seed, sink: wishes.isVerbose ? tell : nil)
        let hash: String = String(result.traceHash, radix: 16)
        Terminal.write("seed \(seed): \(result.events) events, \(result.virtualSeconds) s, trace \(hash)\n")
        for problem: String in result.problems { Terminal.write("    \(problem)\n") }
        return result.problems.isEmpty ? 0 : 1
    }
    let first: UInt64 = wishes.seed ?? UInt64.random(in: 1...(1 << 40))
    Terminal.write("first seed \(first)\n")
    let cores: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    let report: Campaign.Report = await Campaign.run(
        firstSeed: first, seconds: (wishes.minutes ?? 10) * 60, tasks: cores
    ) { failed in _ = Terminal.write(failed.failureText + "\n") }
    Terminal.write(report.summary + "\n")
    return report.failures.isEmpty ? 0 : 1
}

if let wishes: Wishes = Wishes(Array(CommandLine.arguments.dropFirst())) {
    exit(await soak(wishes))
} else {
    Terminal.writeError(help)
    exit(2)
}
