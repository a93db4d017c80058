// thicket-endure: mixed load on a real server for hours; `./dev soak --minutes N` runs it beside the simulation.
import Glibc
import ThicketCommandLine
import ThicketEndurance
import ThicketProcesses

let program: Program = .init(
    name: "thicket-endure", summary: "mixed load on a real server, for hours", version: "1",
    commands: [
        Command(
            "run", summary: "load it, end it, kill it, back it up, and compare everybody at the end",
            options: [
                .value("minutes", "N", "how long", defaultText: "120"),
                .value("seed", "NUMBER", "what the members edit", defaultText: "the time"),
            ], examples: [Example("thicket-endure run --minutes 10", "ten minutes")])
    ])

func endure(_ call: Invocation) async -> Int32 {
    var settings: Endurance.Settings = .init()
    settings.seconds = (call.value("minutes").flatMap { Double($0) } ?? 120) * 60
    settings.seed = call.value("seed").flatMap { UInt64($0) } ?? UInt64(Steady.milliseconds())
    Terminal.write("mixed load, seed \(settings.seed)\n")
    let faults: [String] = await Endurance(settings) { (line: String) in _ = Terminal.write(line + "\n") }.run()
    for fault: String in faults { Terminal.write("FAULT \(fault)\n") }
    return faults.isEmpty ? 0 : 1
}

switch program.parse(CommandLine.arguments.dropFirst()) {
case .print(let text): Terminal.write(text)
case .refuse(let text):
    Terminal.writeError(text)
    exit(2)
case .run(let call): exit(await endure(call))
}
