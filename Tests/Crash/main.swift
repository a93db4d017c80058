// thicket-crash: the crash test, as long as one likes; `./dev soak --crash N` runs it on a release build.
import Glibc
import ThicketCommandLine
import ThicketProcesses

let program: Program = .init(
    name: "thicket-crash", summary: "the crash test of Thicket", version: "1",
    commands: [
        Command(
            "run", summary: "kill a loaded server again and again, and look for what was lost",
            options: [
                .value("rounds", "N", "how often", defaultText: "100"),
                .value("seed", "NUMBER", "what the authors type", defaultText: "the time"),
            ], examples: [Example("thicket-crash run --rounds 100", "a hundred crashes")])
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

switch program.parse(CommandLine.arguments.dropFirst()) {
case .print(let text): Terminal.write(text)
case .refuse(let text):
    Terminal.writeError(text)
    exit(2)
case .run(let call): exit(crash(call))
}
