// thicket-threats: attackers against a real server; `./dev soak --hostile` and `./dev soak --timing` run it.
import Glibc
import ThicketCommandLine
import ThicketProcesses
import ThicketThreats

let seed: Option = .value("seed", "NUMBER", "what is sent, in which order", defaultText: "the time")

let program = Program(
    name: "thicket-threats", summary: "attackers against a real server", version: "1",
    commands: [
        Command(
            "hostile", summary: "mutated requests, tokens and frames, with clients beside them that must be answered",
            options: [
                .value("requests", "N", "how many connections with such", defaultText: "100000"), seed,
                .value("first", "NUMBER", "the first one's number, to send one again", defaultText: "0"),
            ],
            examples: [
                Example("./dev soak --hostile", "a hundred thousand"),
                Example("./dev soak --hostile --requests 1 --seed 7 --first 4711", "one of them again"),
            ]),
        Command(
            "timing", summary: "whether the time of an answer tells what was wrong (docs/THREATS.md)",
            options: [
                .value("count", "N", "measurements of each kind", defaultText: "2000"),
                .value("costly", "N", "the same where a password is stretched", defaultText: "200"), seed,
            ], examples: [Example("./dev soak --timing", "some minutes on a quiet machine")]),
        Command(
            "words", summary: "each change of one recovery word: taken at the checksum's rate (docs/THREATS.md, T24)",
            options: [.value("phrases", "N", "how many phrases are changed", defaultText: "1000"), seed],
            examples: [Example("./dev prove --long", "49 million phrases, with the rest")]),
    ])

func say(_ line: String) { _ = Terminal.write(line + "\n") }

func attack(_ call: Invocation) async throws(BadValue) -> Int32 {
    let seed: UInt64 = try call.number("seed", else: UInt64(Steady.milliseconds()), in: 0...UInt64.max)
    let name: String = call.command.name
    say("\(name): seed \(seed)")
    var faults: [String]
    if name == "words" {
        let phrases: Int = try call.number("phrases", else: 1_000, in: 1...100_000)
        do { faults = try WordsRun.run(phrases: phrases, seed: seed, report: say) } catch { faults = ["\(error)"] }
    } else if name == "timing" {
        var settings = TimingRun.Settings()
        settings.count = try call.number("count", else: settings.count, in: 10...1_000_000)
        settings.costly = try call.number("costly", else: settings.costly, in: 10...100_000)
        settings.seed = seed
        do throws(ProcessError) {
            faults = try TimingRun.run(settings, report: say)
        } catch {
            faults = ["\(error)"]
        }
    } else {
        var settings = HostileRun.Settings()
        settings.requests = try call.number("requests", else: settings.requests, in: 1...100_000_000)
        settings.first = try call.number("first", else: 0, in: 0...100_000_000)
        settings.seed = seed
        let outcome: HostileRun.Outcome = HostileRun.run(settings, report: say)
        outcome.lines.forEach(say)
        faults = outcome.faults
    }
    for fault in faults { say("FAULT \(fault)") }
    say(faults.isEmpty ? "\(name): passed" : "\(name): FAILED, \(faults.count) faults")
    return faults.isEmpty ? 0 : 1
}

exit(await program.main(CommandLine.arguments.dropFirst(), attack))
