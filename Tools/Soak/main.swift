import Glibc
import ThicketCommandLine
import ThicketSimulation

/// Plays the simulation for a given time, plays one seed again, or checks that it finds built-in bugs.
private let program = Program(
    name: "thicket-soak", summary: "the simulation of Thicket", version: "1",
    commands: [
        Command(
            "play", summary: "play seeds, and say which fail",
            details: """
                Without --seed: fresh seeds on all cores. With --seed alone: that one seed. Ends with 1 when a seed fails, and
                prints the command that plays it again. docs/SIMULATION.md describes the faults and the checks.

                Other programs of the same command, each with its own --help: ./dev soak --mixed (hours of load on a
                real server), --crash N and --crash-sweep (ends of processes and disks), --hostile (100,000 mutated requests,
                tokens and frames against a live server), --timing (whether the time of an answer shows what was wrong).
                """,
            options: [
                .value("minutes", "N", "play for N minutes; with --seed: from that seed on", defaultText: "10"),
                .value("seed", "S", "play this one seed (with --minutes: begin with it)"),
                .value("with", "NAME=VALUE,…", "one seed with other values than it makes"),
                .flag("verbose", "print every event of the one seed"),
                .flag("traces", "print the trace of each of several seeds: equal seeds have equal ones, in every run"),
                .flag("shrink", "make the failing seed smaller until nothing can be left out, and report it"),
                .flag("storms", "only storms: all people type all the time"),
                .flag("days", "only days of people that work now and then"),
                .flag("disks", "only storms over the real stores, on disks that crash at any write"),
                .flag("sealed", "only seeds with sealed buckets; also beside --storms, --days, --disks"),
                .flag("trees", "only seeds with trees; also beside --storms, --days, --disks"),
                .value("runs", "N", "play N seeds from --seed on, however long it takes"),
                .value("mutant", "NAME", "with a bug built in", completion: .oneOf(Mutant.allCases.map(\.rawValue))),
                .flag("mutants", "build one bug after the other in and see that it is found within a minute"),
            ],
            examples: [
                Example("./dev soak --minutes 5", "fresh seeds, and mixed load beside them"),
                Example("./dev soak --seed 42 --disks --verbose", "one seed, every event"),
                Example("./dev soak --sealed --runs 10000", "10,000 honest runs of sealed buckets: no false alarm"),
                Example("./dev soak --shrink --mutant silentFeed", "the shortest story of a bug"),
            ])
    ])

@Sendable private func say(_ line: String) { _ = Terminal.write(line + "\n") }

private struct Wishes {
    var minutes: Double?
    var seed: UInt64?
    var changes = [String: Int]()
    var isVerbose: Bool
    var printsTraces: Bool
    var shrinks: Bool
    var kind: Kind?
    var mutant: Mutant?
    var playsMutants: Bool
    var isSealed: Bool
    var hasTrees: Bool
    var runs: Int?

    init(_ call: Invocation) throws(BadValue) {
        if call.value("minutes") != nil { minutes = try call.number("minutes", else: 10, in: 0.01...1_000_000) }
        if call.value("seed") != nil { seed = try call.number("seed", else: 0, in: 0...UInt64.max) }
        (isSealed, hasTrees) = (call.flag("sealed"), call.flag("trees"))
        if call.value("runs") != nil { runs = try call.number("runs", else: 1, in: 1...1_000_000_000) }
        printsTraces = call.flag("traces")
        (isVerbose, shrinks, playsMutants) = (call.flag("verbose"), call.flag("shrink"), call.flag("mutants"))
        let kinds = Kind.allCases.filter { call.flag($0.rawValue) }
        guard kinds.count < 2 else {
            throw BadValue("--\(kinds[0].rawValue) and --\(kinds[1].rawValue) exclude each other")
        }
        kind = kinds.first
        if let name = call.value("mutant") {
            guard let known = Mutant(rawValue: name) else {
                throw BadValue(
                    "there is no mutant '\(name)'; there are: "
                        + Mutant.allCases.map(\.rawValue).joined(separator: ", "))
            }
            mutant = known
        }
        if let list = call.value("with") { changes = try Self.changes(list) }
        try check()
    }

    private static func changes(_ list: String) throws(BadValue) -> [String: Int] {
        var changes = [String: Int]()
        for pair in list.split(separator: ",") {
            let parts: [Substring] = pair.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let value = Int(parts[1]), Simulation.knobNames.contains(String(parts[0]))
            else {
                throw BadValue(
                    "--with needs NAME=NUMBER,…, not '\(pair)'; names: " + Simulation.knobNames.joined(separator: ", "))
            }
            changes[String(parts[0])] = value
        }
        return changes
    }

    /// Options that contradict each other are refused, not ignored.
    private func check() throws(BadValue) {
        let isOne = seed != nil && minutes == nil && runs == nil
        if runs != nil, shrinks || minutes != nil || playsMutants {
            throw BadValue("--runs says how long: leave --minutes, --shrink and --mutants out")
        }
        if isVerbose, !isOne || shrinks { throw BadValue("--verbose goes with one seed: --seed S") }
        if printsTraces, isOne || shrinks || playsMutants { throw BadValue("--traces goes with --runs or --minutes") }
        if !changes.isEmpty, !isOne || shrinks { throw BadValue("--with goes with one seed: --seed S") }
        if shrinks, minutes != nil { throw BadValue("--shrink has no time limit: leave --minutes out") }
        if shrinks, seed == nil, mutant == nil { throw BadValue("--shrink needs the failing seed: --seed S") }
        if playsMutants, shrinks || mutant != nil || minutes != nil || kind != nil || isSealed || hasTrees {
            throw BadValue("--mutants goes with --seed only: each bug has its minute")
        }
    }
}

extension SimulationResult {
    /// The run, in one line.
    fileprivate var traceText: String {
        "seed \(seed), \(kind.rawValue): \(events) events, \(virtualSeconds) s, trace \(String(traceHash, radix: 16))"
    }
}

private func replay(_ seed: UInt64, _ wishes: Wishes) -> Int32 {
    let report: @Sendable (String) -> Void = { say($0) }
    let result: SimulationResult = Simulation.run(
        seed: seed, with: wishes.changes, kind: wishes.kind, isSealed: wishes.isSealed, hasTrees: wishes.hasTrees,
        mutant: wishes.mutant, sink: wishes.isVerbose ? report : nil)
    say(result.traceText)
    for problem in result.problems { say("    \(problem)") }
    say(result.problems.isEmpty ? "simulation: passed" : "simulation: FAILED")
    return result.problems.isEmpty ? 0 : 1
}

private func shrink(_ wishes: Wishes) -> Int32 {
    // With a built-in bug, the first seed that finds it is used.
    let seeds = wishes.seed.map { $0...$0 } ?? 1...1_000
    let kind = wishes.kind ?? wishes.mutant?.kind
    for seed in seeds {
        guard
            let outcome = Shrinking.run(
                seed: seed, kind: kind, isSealed: wishes.isSealed, hasTrees: wishes.hasTrees, mutant: wishes.mutant,
                report: { say("  " + $0) })
        else { continue }
        say(outcome.story)
        return 1
    }
    say(wishes.seed.map { "seed \($0) does not fail" } ?? "no seed fails")
    return 0
}

/// - Returns: 1 when a mutant is not found within a minute.
private func hunt(_ cores: Int, from first: UInt64) async -> Int32 {
    var alive = 0
    say("mutant                    found after   seeds   by")
    for mutant in Mutant.allCases {
        let report = await Campaign.run(
            firstSeed: first, seconds: 60, tasks: cores, kind: mutant.kind, mutant: mutant
        ) { _ in }
        let found = report.failures.first
        if found == nil { alive += 1 }
        let name = mutant.rawValue + String(repeating: " ", count: max(1, 26 - mutant.rawValue.count))
        let time = found == nil ? "not found" : "\(Double(Int(report.seconds * 100)) / 100) s"
        let count = String(report.runs)
        let why = found?.problems.first.map { String($0.prefix(90)) } ?? ""
        say(
            name + time + String(repeating: " ", count: max(1, 14 - time.count)) + count
                + String(repeating: " ", count: max(1, 8 - count.count)) + why)
    }
    let count = Mutant.allCases.count
    say(alive == 0 ? "mutants: all \(count) found: passed" : "mutants: \(alive) of \(count) not found: FAILED")
    return alive == 0 ? 0 : 1
}

private func soak(_ call: Invocation) async throws(BadValue) -> Int32 {
    let wishes = try Wishes(call)
    let cores = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    let first = wishes.seed ?? UInt64.random(in: 1...(1 << 40))
    if wishes.playsMutants { return await hunt(cores, from: first) }
    if wishes.shrinks { return shrink(wishes) }
    if let seed: UInt64 = wishes.seed, wishes.minutes == nil, wishes.runs == nil { return replay(seed, wishes) }
    let minutes = wishes.minutes ?? (wishes.runs == nil ? 10 : 1_000_000)
    say("simulation: first seed \(first), " + (wishes.runs.map { "\($0) seeds" } ?? "\(minutes) minutes"))
    let report = await Campaign.run(
        firstSeed: first, seconds: minutes * 60, tasks: cores, kind: wishes.kind, isSealed: wishes.isSealed,
        hasTrees: wishes.hasTrees, runsMax: wishes.runs ?? .max, mutant: wishes.mutant
    ) { result in
        if wishes.printsTraces { say(result.traceText) }
        if !result.problems.isEmpty { say(result.failureText) }
    }
    say(report.summary)
    if wishes.kind == .days, !wishes.isSealed, wishes.mutant == nil {
        let isMet = report.clientDaysPerMinute >= Campaign.Report.clientDaysMin
        say("client-days a minute: goal ≥ \(Campaign.Report.clientDaysMin) on two cores: \(isMet ? "met" : "NOT MET")")
    }
    return report.failures.isEmpty ? 0 : 1
}

// Options without a command mean `play`.
private let words = Array(CommandLine.arguments.dropFirst())
private let isBare = words.first.map { $0.hasPrefix("-") && $0 != "--help" && $0 != "--version" } ?? true
exit(await program.main(isBare ? ["play"] + words : words.first == "--help" ? ["play", "--help"] : words, soak))
