// thicket-crash: the crash test, for any duration; `./dev soak --crash N` runs it on a release build.
import Glibc
import ThicketCommandLine
import ThicketProcesses
import ThicketSweep

let program = Program(
    name: "thicket-crash", summary: "the crash test of Thicket", version: "1",
    commands: [
        Command(
            "run", summary: "kill a loaded server again and again, and look for what was lost",
            options: [
                .value("rounds", "N", "how often", defaultText: "100"),
                .value("seed", "NUMBER", "what the authors type", defaultText: "the time"),
            ], examples: [Example("thicket-crash run --rounds 100", "a hundred crashes")]),
        Command(
            "sweep", summary: "stop a model of the server at every call to its disk, and let every call fail once",
            options: [
                .value(
                    "changes", "N", "changes of each sweep", defaultText: "1000 with crashes, 240 with failing calls"),
                .value("stride", "N", "look at every Nth point only", defaultText: "1"),
                .value("seed", "NUMBER", "what is written, and what a crash leaves", defaultText: "the time"),
                .value("call", "N", "let this call fail, and nothing else: what a fault named"),
                .flag("trees", "only the sweeps over batches of trees and blobs"),
            ],
            examples: [
                Example("thicket-crash sweep", "all points"),
                Example("thicket-crash sweep --seed 7 --call 1164", "a fault again"),
            ]),
    ])

/// Writes the findings and the verdict.
func verdict(_ summary: String, _ faults: [String], isClean: Bool) -> Bool {
    for fault in faults.prefix(20) { Terminal.write("FAULT \(fault)\n") }
    Terminal.write(summary + (isClean ? ": passed\n" : ": FAILED\n"))
    return isClean
}

func seed(_ call: Invocation) throws(BadValue) -> UInt64 {
    let seed: UInt64 = try call.number("seed", else: UInt64(Steady.milliseconds()), in: 0...UInt64.max)
    Terminal.write("seed \(seed)\n")
    return seed
}

func crash(_ call: Invocation) throws(BadValue) -> Int32 {
    var settings = CrashTest.Settings()
    settings.rounds = try call.number("rounds", else: 100, in: 1...1_000_000)
    settings.seed = try seed(call)
    do throws(ProcessError) {
        let result: CrashTest.Result = try CrashTest(settings) { (line: String) in Terminal.write(line + "\n") }.run()
        return verdict(result.summary, result.faults, isClean: result.faults.isEmpty && result.lost == 0) ? 0 : 1
    } catch {
        Terminal.writeError("thicket-crash: \(error)\n")
        return 1
    }
}

func actions(_ call: Invocation) throws(BadValue) -> Int? {
    call.value("changes") == nil ? nil : try call.number("changes", else: 0, in: 20...1_000_000)
}

/// The sweeps over batches of trees and blobs.
func treeSweep(_ seed: UInt64, stride: Int, actions: Int?, cores: Int) -> Int32 {
    var crashes = TreeCrashSweep.Settings()
    crashes.actions = actions ?? crashes.actions
    (crashes.seed, crashes.stride, crashes.threads) = (seed, stride, cores)
    var faults = TreeFaultSweep.Settings()
    faults.actions = actions ?? faults.actions
    (faults.seed, faults.stride, faults.threads) = (seed, stride, cores)
    do {
        let crashed = try TreeCrashSweep(crashes).run()
        let isSafe = verdict(crashed.summary, crashed.faults, isClean: crashed.faults.isEmpty)
        let failed = try TreeFaultSweep(faults).run()
        return verdict(failed.summary, failed.faults, isClean: failed.faults.isEmpty) && isSafe ? 0 : 1
    } catch {
        Terminal.writeError("thicket-crash: \(error)\n")
        return 1
    }
}

func sweep(_ call: Invocation) throws(BadValue) -> Int32 {
    let stride: Int = try call.number("stride", else: 1, in: 1...1_000_000)
    let cores: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    var (crashes, faults): (CrashSweep.Settings, FaultSweep.Settings) = (.init(), .init())
    crashes.changes = try call.number("changes", else: 1_000, in: 20...1_000_000)
    let seed: UInt64 = try seed(call)
    (crashes.seed, crashes.stride, crashes.threads) = (seed, stride, cores)
    (faults.seed, faults.stride, faults.threads) = (seed, stride, cores)
    if call.value("changes") != nil { faults.changes = crashes.changes }
    if call.flag("trees") { return treeSweep(seed, stride: stride, actions: try actions(call), cores: cores) }
    if call.value("call") != nil {
        (faults.call, faults.stride) = (try call.number("call", else: 0, in: 0...1_000_000), 1)
    }
    do {
        guard faults.call == nil else {
            let failed: FaultSweep.Result = try FaultSweep(faults).run()
            return verdict(failed.summary, failed.faults, isClean: failed.faults.isEmpty) ? 0 : 1
        }
        let crashed: CrashSweep.Result = try CrashSweep(crashes).run()
        let isSafe: Bool = verdict(crashed.summary, crashed.faults, isClean: crashed.faults.isEmpty)
        let failed: FaultSweep.Result = try FaultSweep(faults).run()
        let isFaultless = verdict(failed.summary, failed.faults, isClean: failed.faults.isEmpty)
        return treeSweep(seed, stride: stride, actions: try actions(call), cores: cores) == 0 && isSafe && isFaultless
            ? 0 : 1
    } catch {
        Terminal.writeError("thicket-crash: \(error)\n")
        return 1
    }
}

exit(
    await program.main(CommandLine.arguments.dropFirst()) { (call) throws(BadValue) in
        try call.command.name == "sweep" ? sweep(call) : crash(call)
    })
