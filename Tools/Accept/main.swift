// thicket-accept: scenarios of trees with real processes; `./dev soak --tree-scenarios` runs them on a release build.
import Glibc
import ThicketAcceptance
import ThicketCommandLine
import ThicketProcesses

let seedOption = Option.value("seed", "NUMBER", "what is random", defaultText: "the time")

let stormOptions = [
    Option.value("minutes", "N", "how long", defaultText: "2"),
    .value("steps", "N", "most steps of each device in a round of 20 seconds", defaultText: "no bound"), seedOption,
]

let program = Program(
    name: "thicket-accept", summary: "scenarios of trees with a real server and real clients", version: "1",
    commands: [
        Command("all", summary: "all scenarios, at their full sizes", options: [seedOption]),
        Command(
            "kills", summary: "a content goes up and down while client and server are killed",
            options: [
                .value("mebibytes", "N", "size of the content", defaultText: "200"),
                .value("kills", "N", "kills on the way up, and as many on the way down", defaultText: "20"), seedOption,
            ], examples: [Example("thicket-accept kills --kills 20", "twenty in each direction")]),
        Command(
            "devices", summary: "three devices read, write, move and remove at the same time, and are killed",
            options: stormOptions),
        Command(
            "names", summary: "the same, only with moves and new names that collide",
            options: stormOptions),
        Command(
            "screen", summary: "a new device opens a large tree",
            options: [
                .value("containers", "N", "containers", defaultText: "200"),
                .value("children", "N", "nodes in each", defaultText: "500"),
            ]),
        Command("rollback", summary: "a server is restored from an older backup; then a search for secrets"),
        Command(
            "device", summary: "one device, for the scenarios above",
            options: [
                .value("folder", "DIR", "with the file 'login'"), .value("name", "NAME", "of the device"),
                .value("task", "NAME", "work, finish or digest"), .value("mix", "NAME", "all or names"),
                .value("steps", "N", "changes and reads"), .value("milliseconds", "N", "longest time of the work"),
                seedOption,
            ]),
    ])

func say(_ line: String) { _ = Terminal.write(line + "\n") }

func verdict(_ name: String, _ result: AcceptanceResult) -> Int32 {
    for fault in result.faults.prefix(20) { say("FAULT \(fault)") }
    say("\(name): \(result.summary): \(result.faults.isEmpty ? "passed" : "FAILED")")
    return result.faults.isEmpty ? 0 : 1
}

func storm(
    _ mix: DeviceWork.Mix, minutes: Double, seed: UInt64, steps: Int = 1_000_000
) async throws -> Int32 {
    var settings = DeviceStorm.Settings()
    (settings.mix, settings.seed, settings.steps) = (mix, seed, steps)
    settings.rounds = max(2, Int(minutes * 60_000) / Int(settings.roundMilliseconds))
    var scenario = try DeviceStorm(settings, report: say)
    return verdict(mix == .all ? "devices" : "names", try await scenario.run())
}

func kills(_ settings: TransferKills.Settings) throws -> Int32 {
    var scenario = try TransferKills(settings, report: say)
    return verdict("kills", try scenario.run())
}

func device(_ call: Invocation, seed: UInt64) async throws -> Int32 {
    var work = try await DeviceWork(
        folder: call.value("folder") ?? "", device: call.value("name") ?? "", seed: seed, say: say)
    switch call.value("task") {
    case "work":
        let steps = try call.number("steps", else: 100, in: 1...1_000_000_000)
        let milliseconds: Int64 = try call.number("milliseconds", else: 10_000, in: 1...1_000_000_000)
        try await work.work(
            DeviceWork.Mix(rawValue: call.value("mix") ?? "") ?? .all, steps: steps, milliseconds: milliseconds)
    case "finish": try await work.finish()
    default: try await work.digest()
    }
    await work.close()
    return 0
}

func rollback() throws -> Int32 {
    var scenario = try Rollback()
    return verdict("rollback", try scenario.run())
}

func run(_ call: Invocation) async throws -> Int32 {
    let seed = try call.number("seed", else: UInt64(Steady.milliseconds()), in: 0...UInt64.max)
    if call.command.name != "device" { say("seed \(seed)") }
    var (transfer, screen) = (TransferKills.Settings(), FirstScreen.Settings())
    transfer.seed = seed
    switch call.command.name {
    case "kills":
        transfer.mebibytes = try call.number("mebibytes", else: 200, in: 9...100_000)
        transfer.kills = try call.number("kills", else: 20, in: 1...10_000)
        return try kills(transfer)
    case "devices", "names":
        let minutes = try call.number("minutes", else: 2, in: 0.1...10_000)
        let steps = try call.number("steps", else: 1_000_000, in: 1...1_000_000)
        return try await storm(
            call.command.name == "names" ? .names : .all, minutes: minutes, seed: seed, steps: steps)
    case "screen":
        screen.containers = try call.number("containers", else: 200, in: 1...10_000)
        screen.children = try call.number("children", else: 500, in: 1...9_999)
        return verdict("screen", try await FirstScreen(screen, report: say).run())
    case "rollback": return try rollback()
    case "device": return try await device(call, seed: seed)
    default:
        var status = try kills(transfer)
        status |= try await storm(.all, minutes: 2, seed: seed)
        status |= try await storm(.names, minutes: 1, seed: seed)
        status |= verdict("screen", try await FirstScreen(screen, report: say).run())
        return try rollback() | status
    }
}

exit(
    await program.main(CommandLine.arguments.dropFirst()) { (call) throws(BadValue) in
        do { return try await run(call) } catch let error as BadValue { throw error } catch {
            Terminal.writeError("thicket-accept: \(error)\n")
            return 1
        }
    })
