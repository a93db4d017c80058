// thicket-endure: mixed load on a real server for hours; `./dev soak --minutes N` runs it beside the simulation.
import Glibc
import ThicketCommandLine
import ThicketEndurance
import ThicketProcesses

let program = Program(
    name: "thicket-endure", summary: "mixed load on a real server, for hours", version: "1",
    commands: [
        Command(
            "run", summary: "load it, end it, kill it, back it up, and compare everybody at the end",
            options: [
                .value("minutes", "N", "how long", defaultText: "120"),
                .value("seed", "NUMBER", "what the members edit", defaultText: "the time"),
            ], examples: [Example("thicket-endure run --minutes 10", "ten minutes")])
    ])

func endure(_ call: Invocation) async throws(BadValue) -> Int32 {
    var settings = Endurance.Settings()
    settings.seconds = try call.number("minutes", else: 120, in: 0.05...100_000) * 60
    settings.seed = try call.number("seed", else: UInt64(Steady.milliseconds()), in: 0...UInt64.max)
    Terminal.write("mixed load: seed \(settings.seed), \(settings.seconds / 60) minutes\n")
    let faults: [String] = await Endurance(settings) { (line: String) in _ = Terminal.write(line + "\n") }.run()
    for fault in faults { Terminal.write("FAULT \(fault)\n") }
    Terminal.write(faults.isEmpty ? "mixed load: passed\n" : "mixed load: FAILED, \(faults.count) faults\n")
    return faults.isEmpty ? 0 : 1
}

exit(await program.main(CommandLine.arguments.dropFirst(), endure))
