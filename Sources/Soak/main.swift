import Glibc
import ThicketCommandLine
import ThicketSimulation

/// Plays the simulation for as long as one likes, one seed again, or checks that it finds what it should.
private let help: String = """
    usage: thicket-soak [--minutes N] [--seed S [--with NAME=VALUE,…] [--verbose | --shrink]] [--days | --storms]
                       [--mutants]

      --minutes N    play fresh seeds on all cores for N minutes (default 10); with --seed: from that seed on
      --seed S       play this one seed (with --minutes: begin with it)
      --with LIST    with other values than the seed makes: \(Simulation.knobNames.joined(separator: ", "))
      --verbose      print every event of the one seed
      --shrink       make the failing seed smaller until nothing can be left out
      --days         only days of people who work now and then, instead of mostly storms
      --storms       only storms, in which everybody types all the time
      --mutants      build one bug after the other in and see that it is found within a minute

    Ends with 1 when a seed fails, and prints the command that plays it again. docs/SIMULATION.md tells of the faults.

    """

private struct Wishes {
    var minutes: Double?
    var seed: UInt64?
    var changes: [String: Int] = [:]
    var isVerbose: Bool = false
    var shrinks: Bool = false
    var days: Bool?
    var playsMutants: Bool = false

    /// nil: not understood.
    init?(_ words: [String]) {
        var rest: ArraySlice<String> = words[...]
        while let word: String = rest.popFirst() {
            switch word {
            case "--verbose": isVerbose = true
            case "--shrink": shrinks = true
            case "--days": days = true
            case "--storms": days = false
            case "--mutants": playsMutants = true
            case "--minutes":
                guard let value: Double = rest.popFirst().flatMap(Double.init), value > 0 else { return nil }
                minutes = value
            case "--seed":
                guard let value: UInt64 = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                seed = value
            case "--with":
                guard let list: String = rest.popFirst(), take(list) else { return nil }
            default: return nil
            }
        }
    }

    private mutating func take(_ list: String) -> Bool {
        for pair: Substring in list.split(separator: ",") {
            let parts: [Substring] = pair.split(separator: "=")
            guard parts.count == 2, let value: Int = Int(parts[1]), Simulation.knobNames.contains(String(parts[0]))
            else {
                return false
            }
            changes[String(parts[0])] = value
        }
        return true
    }
}

@Sendable private func say(_ line: String) { _ = Terminal.write(line + "\n") }

private func replay(_ seed: UInt64, _ wishes: Wishes) -> Int32 {
    let tell: @Sendable (String) -> Void = { say($0) }
    let result: SimulationResult = Simulation.run(
        seed: seed, with: wishes.changes, days: wishes.days, sink: wishes.isVerbose ? tell : nil)
    let hash: String = String(result.traceHash, radix: 16)
    say("seed \(seed): \(result.events) events, \(result.virtualSeconds) s, trace \(hash)")
    for problem: String in result.problems { say("    \(problem)") }
    return result.problems.isEmpty ? 0 : 1
}

private func shrink(_ seed: UInt64, _ days: Bool?) -> Int32 {
    guard let outcome: Shrinking.Outcome = Shrinking.run(seed: seed, days: days, tell: { say($0) }) else {
        say("seed \(seed) does not fail")
        return 0
    }
    say("after \(outcome.runs) runs: \(outcome.result.events) events, \(outcome.result.virtualSeconds) s")
    for problem: String in outcome.result.problems.prefix(5) { say("    \(problem.prefix(300))") }
    say(outcome.command)
    return 1
}

/// - Returns: 1 when a mutant lives for a minute.
private func hunt(_ cores: Int, from first: UInt64) async -> Int32 {
    var alive: Int = 0
    say("mutant                    found after   seeds   by")
    for mutant: Mutant in Mutant.allCases {
        let report: Campaign.Report = await Campaign.run(
            firstSeed: first, seconds: 60, tasks: cores, days: false, mutant: mutant
        ) { _ in }
        let found: SimulationResult? = report.failures.first
        if found == nil { alive += 1 }
        let name: String = mutant.rawValue + String(repeating: " ", count: max(1, 26 - mutant.rawValue.count))
        let time: String = found == nil ? "not found" : "\(Double(Int(report.seconds * 100)) / 100) s"
        let count: String = String(report.runs)
        let why: String = found?.problems.first.map { String($0.prefix(90)) } ?? ""
        say(
            name + time + String(repeating: " ", count: max(1, 14 - time.count)) + count
                + String(repeating: " ", count: max(1, 8 - count.count)) + why)
    }
    return alive == 0 ? 0 : 1
}

private func soak(_ wishes: Wishes) async -> Int32 {
    let cores: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    let first: UInt64 = wishes.seed ?? UInt64.random(in: 1...(1 << 40))
    if wishes.playsMutants { return await hunt(cores, from: first) }
    if wishes.shrinks { return shrink(first, wishes.days) }
    if let seed: UInt64 = wishes.seed, wishes.minutes == nil { return replay(seed, wishes) }
    say("first seed \(first)")
    let report: Campaign.Report = await Campaign.run(
        firstSeed: first, seconds: (wishes.minutes ?? 10) * 60, tasks: cores, days: wishes.days
    ) { say($0.failureText) }
    say(report.summary)
    return report.failures.isEmpty ? 0 : 1
}

if let wishes: Wishes = Wishes(Array(CommandLine.arguments.dropFirst())) {
    exit(await soak(wishes))
} else {
    Terminal.writeError(help)
    exit(2)
}
