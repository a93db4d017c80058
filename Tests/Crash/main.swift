// thicket-crash: the crash test, as long as one likes; `./dev soak --crash N` runs it on a release build.
import Glibc
import ThicketCommandLine
import ThicketProcesses
import ThicketSweep

let program: Program = .init(
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
                .value("changes", "N", "changes of the crash sweep", defaultText: "1000"),
                .value("stride", "N", "look at every Nth point only", defaultText: "1"),
                .value("seed", "NUMBER", "what is written, and what a crash leaves", defaultText: "the time"),
            ], examples: [Example("thicket-crash sweep", "all points")]),
    ])

func crash(_ call: Invocation) -> Int32 {
    var settings: CrashTest.Settings = .init()
    settings.rounds = call.value("rounds").flatMap { Int($0) } ?? 100
    settings.seed = call.value("seed").flatMap { UInt64($0) } ?? UInt64(Steady.milliseconds())
    Terminal.write("seed \(settings.seed)\n")
    do throws(ProcessError) {
        let result: CrashTest.Result = try CrashTest(settings) { (line: String) in Terminal.write(line + "\n") }.run()
        for fault: String in result.faults { Terminal.write("FAULT \(fault)\n") }
        Terminal.write(result.summary + "\n")
        return result.faults.isEmpty && result.lost == 0 ? 0 : 1
    } catch {
        Terminal.writeError("thicket-crash: \(error)\n")
        return 1
    }
}

func sweep(_ call: Invocation) -> Int32 {
    let seed: UInt64 = call.value("seed").flatMap { UInt64($0) } ?? UInt64(Steady.milliseconds())
    let stride: Int = max(call.value("stride").flatMap { Int($0) } ?? 1, 1)
    let cores: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    var crashes: CrashSweep.Settings = .init()
    (crashes.seed, crashes.stride, crashes.threads) = (seed, stride, cores)
    crashes.changes = call.value("changes").flatMap { Int($0) } ?? 1_000
    var faults: FaultSweep.Settings = .init()
    (faults.seed, faults.stride, faults.threads) = (seed, stride, cores)
    Terminal.write("seed \(seed)\n")
    do {
        let crashed: CrashSweep.Result = try CrashSweep(crashes).run()
        for fault: String in crashed.faults.prefix(20) { Terminal.write("FAULT \(fault)\n") }
        Terminal.write(crashed.summary + "\n")
        let failed: FaultSweep.Result = try FaultSweep(faults).run()
        for fault: String in failed.faults.prefix(20) { Terminal.write("FAULT \(fault)\n") }
        Terminal.write(failed.summary + "\n")
        return crashed.faults.isEmpty && failed.faults.isEmpty ? 0 : 1
    } catch {
        Terminal.writeError("thicket-crash: \(error)\n")
        return 1
    }
}

switch program.parse(CommandLine.arguments.dropFirst()) {
case .print(let text): Terminal.write(text)
case .refuse(let text):
    Terminal.writeError(text)
    exit(2)
case .run(let call): exit(call.command.name == "sweep" ? sweep(call) : crash(call))
}
