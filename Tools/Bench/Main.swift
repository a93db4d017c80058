import Glibc
import ThicketBenchComparison
import ThicketProtocol

/// `thicket-bench [SCENARIO…] [--compare [FILE]] [--save FILE]`: runs scenarios against a real server and prints a
/// table and one line of JSON for each.
@main
struct Bench {
    struct Scenario {
        let name: String
        let what: String
        /// Minutes after which it is aborted; on a quiet machine it needs a third.
        let minutes: Double
        let run: @Sendable () async throws -> [Figure]

        init(
            _ name: String, _ minutes: Double, _ what: String, _ run: @escaping @Sendable () async throws -> [Figure]
        ) {
            (self.name, self.minutes, self.what, self.run) = (name, minutes, what, run)
        }
    }

    static let scenarios: [Scenario] = [
        Scenario("json", 3, "reading and writing JSON beside other libraries") { try jsonSpeed() },
        Scenario("diff", 5, "text differences beside other programs, and what the step budget comes to") {
            try diffs()
        },
        Scenario("jwt", 1, "tokens of partners verified, beside the bare HMAC") { try tokens() },
        Scenario("crypto", 8, "hashing, sealing, signatures and agreements beside openssl speed, and 1 GiB of content")
        {
            try cryptoSpeed() + contentStreams()
        },
        Scenario("store", 5, "the store's writer beside a bare loop over the same SQL") { try storeRates() },
        Scenario("rows", 5, "what the rows of a change cost, and what late heads could save") { try rowCosts() },
        Scenario("schema", 5, "the store's writer beside normalised tables, small objects and large") { try schemas() },
        Scenario("reads", 5, "one reader and the writer beside each other") { try readsBeside() },
        Scenario("disk", 5, "what a change takes of the disk, and how long the log becomes") {
            try await repeated(5) { try diskUse() }
        },
        Scenario("backup", 5, "changes beside backups") { try backupBeside() },
        Scenario("changes", 3, "64 sockets, one durable change outstanding each") {
            try changes(seconds: 5, sockets: try socketsOfChanges())
        },
        Scenario("ping", 2, "one durable change outstanding, beside the disk's sync") { try ping() },
        Scenario("large", 5, "what one large change takes of each thread it passes") { try largeChanges() },
        Scenario("rest", 5, "the data API over 16 connections that stay: objects, index pages, durable changes") {
            try dataAPI()
        },
        Scenario("fanout", 2, "one writer, 1,000 receivers of its bucket") {
            try await repeated(5) { try fanout(receivers: 1_000, rounds: 200) }
        },
        Scenario("sockjs", 3, "one writer, 1,000 receivers over SockJS streams, beside WebSockets") {
            try sockJSFanOut(receivers: 1_000, rounds: 200)
        },
        Scenario("tls", 6, "handshakes beside openssl s_server, tickets, idle memory, large responses") { try tls() },
        Scenario("idle", 5, "10,000 connections with one authorised channel each") {
            try await repeated(5) { try idle(from: 1_000, to: 10_000) }
        },
        Scenario("memory", 8, "server memory with full caches, and with ten times as much that they could keep") {
            try memory()
        },
        Scenario("catchup", 3, "10,000 changes that a client missed") { try catchUp(changes: 10_000) },
        Scenario("growth", 18, "costs, answers at ten times the users, objects, history, missed changes, receivers") {
            try await growth()
        },
        Scenario("firstsync", 5, "100,000 objects of 300 bytes to a new client") {
            try await repeated(5) { try await firstSync(objects: 100_000) }
        },
        Scenario("client", 5, "catch-up, local edits until durable, memory") {
            try await repeated(5) { try await client() }
        },
        Scenario("watch", 5, "from a key press to the screen of another machine") {
            try await repeated(5) { try watchDelay(rounds: 200) }
        },
        Scenario("sealed", 20, "sealed buckets beside open ones: bytes of a character, many typists, a new device") {
            try await sealedBuckets()
        },
        Scenario("tree", 30, "trees: large contents, small nodes, a new device, lists of children, a moved branch") {
            try await trees()
        },
        Scenario("people", 30, "accounts: look-ups in a large key log, sign-ups, messages, a large file to many people")
        {
            try await people()
        },
        Scenario("typing", 30, "a paper typed key by key through one client, one change an edit") {
            try await typing()
        },
        Scenario("peers", 30, "our server beside Redis, NATS and the bare floor, with the generator in THICKET_PEERS") {
            try Peers().run()
        },
        Scenario("hostile", 30, "another tenant's changes while one behaves badly, attack by attack") {
            try hostile()
        },
        Scenario("restart", 10, "start with 100,000 objects, clean and after SIGKILL") {
            try restart(objects: 100_000)
        },
        Scenario("cold", 15, "first change in a bucket with 1,000,000 changes") {
            try coldBucket(changes: 1_000_000)
        },
        Scenario("traces", 60, "recorded typing sessions, whole, through real clients") { try await traces() },
    ]

    static func main() async {
        raiseDescriptorLimit()
        let wanted: [String] = Array(CommandLine.arguments.dropFirst())
        if wanted.contains(where: { ["help", "--help", "-h"].contains($0) }) { return printLine(help) }
        do {
            let call = try BenchCall(wanted, scenarios: scenarios.map(\.name))
            let chosen = scenarios.filter { call.scenarios.isEmpty || call.scenarios.contains($0.name) }
            exit(Watchdog.isChild ? await runHere(chosen) : try call.run { run(chosen) })
        } catch {
            fputsError("bench: \(error)\nSee ./dev bench help.")
            exit(2)
        }
    }

    /// The program's status: 0, 1 if a scenario failed, 3 if one was aborted. A goal that is not met is an ordinary
    /// result.
    private static func run(_ scenarios: [Scenario]) -> Int32 {
        let patience: Double = getenv("THICKET_BENCH_PATIENCE").flatMap { Double(String(cString: $0)) } ?? 1
        var (failed, givenUp, notMeasured): ([String], [String], [String]) = ([], [], [])
        for scenario in scenarios {
            switch Watchdog.run(scenario.name, minutes: scenario.minutes * patience) {
            case .done: break
            case .notMeasured: notMeasured.append(scenario.name)
            case .failed: failed.append(scenario.name)
            case .givenUp: givenUp.append(scenario.name)
            }
        }
        if !notMeasured.isEmpty {
            fputsError("bench: not measured, for what is missing see above: \(notMeasured.joined(separator: ", "))")
        }
        if !failed.isEmpty { fputsError("bench: failed: \(failed.joined(separator: ", "))") }
        if !givenUp.isEmpty { fputsError("bench: given up: \(givenUp.joined(separator: ", "))") }
        return givenUp.isEmpty ? (failed.isEmpty ? 0 : 1) : 3
    }

    /// The body of a scenario's process.
    private static func runHere(_ scenarios: [Scenario]) async -> Int32 {
        Watchdog.endWithParent()
        for scenario in scenarios {
            let start: UInt64 = nanoseconds()
            do {
                let figures: [Figure] = try await scenario.run()
                printResult(scenario.name, figures, seconds: Double(nanoseconds() - start) / 1e9)
            } catch let error as BenchMissing {
                fputsError("bench: \(scenario.name): not measured: \(error)")
                return Watchdog.notMeasuredStatus
            } catch {
                fputsError("bench: \(scenario.name): \(error)")
                return 1
            }
        }
        return 0
    }

    static var help: String {
        let width: Int = (scenarios.map(\.name.count).max() ?? 0) + 2
        let lines: [String] = scenarios.map {
            "  " + padded($0.name, width) + "(\(Int($0.minutes)) min) \($0.what)"
        }
        let attacks: String = HostileAttack.allCases.map(\.rawValue).joined(separator: ", ")
        return """
            usage: ./dev bench [SCENARIO…] [--compare [FILE]] [--save FILE]   (all scenarios without a name)

            Each prints a table, and one line of JSON: of every figure the median, the lowest and highest of its rounds, the
            goal and whether it is met. In brackets: when it is given up; those after it run all the same.
            A quiet machine takes a third of that. A goal whose floor is not installed is printed as not measured, with what
            is missing; `./dev setup --tests` installs it, but for what only `peers`, `typing` and `traces` need: servers of
            others, a load generator and recordings that are no part of this repository. Those say what they miss.

            --compare   then a table: each figure of FILE (default: the newest of Tools/Bench/Baselines), of this run, their ratio,
                        and whether this run's median is within the lowest and highest round of FILE; "better" and
                        "worse" where a goal says which is which. FILE is what --save wrote, or the output of a run
            --save      writes all figures to FILE, with machine, build and date: a baseline for --compare

            Status: 1 when a scenario failed, or a figure that has a goal is worse than in each round of the baseline and
            misses its goal; 3 when a scenario was given up; one that misses something has not failed.

            \(lines.joined(separator: "\n"))

            Settings:
              THICKET_BENCH_PATIENCE   times the minutes in brackets (default 1)
              THICKET_VECTORS          third-party test data of `typing` and `traces`
              THICKET_BENCH_SOCKETS    `changes`: so many sockets, and groups of the floors (default 64)
              THICKET_BENCH_EDITS      `typing`: so many edits of the recording (default: all)
              THICKET_ATTACK           `hostile`: only attacks whose names contain it: \(attacks)
              THICKET_HOSTILE_CORES    `hostile`: shared: server, users and attacker have all cores, and not the server its own
              THICKET_SEALED_OPENING   `sealed`: if set, only the new device, for a profile
              THICKET_TREE_PART        `tree`: one part alone: content, nodes, skeleton, children or move
              THICKET_PEOPLE_PART      `people`: one part alone: log, signups, messages, share or file
              THICKET_PEOPLE_USERS     `people`: users of the key log (default 1000000)
              THICKET_SYNAPSE_PYTHON   `people`: a Python with matrix-synapse and aiohttp: its messages beside ours
              THICKET_PEERS            `peers`: folder of its load generator
              THICKET_PEERS_ROUNDS     `peers`: default 5
              THICKET_PEERS_LINES      `peers`: if set, what the generator says, line by line
              BIG                      `peers`: 0 leaves the run of 9,999 connections out (its goal is then not met)
            """
    }

    static func printResult(_ name: String, _ figures: [Figure], seconds: Double) {
        printLine("\n\(name), \(Int(seconds.rounded())) s")
        for figure in figures { printLine(figure.line) }
        let result = JSONObject([
            (key: "scenario", value: .string(name)),
            (key: "seconds", value: JSONNumber(seconds).map { .number($0) } ?? .null),
            (key: "figures", value: .array(figures.map(\.json))),
        ])
        let line = String(decoding: JSONValue.object(result).serialized(), as: UTF8.self)
        printLine(line)
        // An attacker's process has no figures.
        if !figures.isEmpty { BenchCall.record(line) }
    }

    /// Three decimals, none from 100 on, without an exponent; "none" for what is not a number.
    static func rounded(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "none" }
        if value < 0 { return "-" + rounded(-value) }
        if abs(value) >= 100 { return "\(Int(value.rounded()))" }
        let scaled: Int = Int((value * 1_000).rounded())
        let decimals = String(scaled % 1_000)
        return "\(scaled / 1_000)." + String(repeating: "0", count: 3 - decimals.count) + decimals
    }

    static func padded(_ text: String, _ width: Int, left: Bool = false) -> String {
        let space: String = String(repeating: " ", count: max(1, width - text.count))
        return left ? space + text : text + space
    }

    static func printLine(_ text: String) {
        let bytes: [UInt8] = Array((text + "\n").utf8)
        _ = write(1, bytes, bytes.count)
    }

    static func fputsError(_ text: String) {
        let bytes: [UInt8] = Array((text + "\n").utf8)
        _ = write(2, bytes, bytes.count)
    }

    /// Ten thousand connections need as many descriptors, here and in the server.
    static func raiseDescriptorLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
