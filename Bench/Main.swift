import Glibc
import ThicketProtocol

/// `thicket-bench [SCENARIO…]`: runs scenarios against a real server and prints a table and one line of JSON each.
@main
struct Bench {
    typealias Scenario = (name: String, what: String, run: @Sendable () async throws -> [Figure])
    static let scenarios: [Scenario] = [
        ("json", "reading and writing JSON beside other libraries", { try jsonSpeed() }),
        ("diff", "text differences, and what the step budget comes to", { diffs() }),
        ("store", "the store's writer beside a bare loop over the same SQL", { try storeRates() }),
        ("changes", "64 sockets, one durable change outstanding each", { try changes(seconds: 5, sockets: 64) }),
        ("ping", "one durable change outstanding, beside the disk's sync", { try ping() }),
        ("fanout", "one writer, 1,000 receivers of its bucket", { try fanout(receivers: 1_000, rounds: 200) }),
        ("idle", "10,000 connections with one authorised channel each", { try idle(from: 1_000, to: 10_000) }),
        ("catchup", "10,000 changes that a client missed", { try catchUp(changes: 10_000) }),
        ("growth", "costs at ten times the users, objects and history", { try growth() }),
        ("firstsync", "100,000 objects of 300 bytes to a new client", { try await firstSync(objects: 100_000) }),
        ("client", "catch-up, local edits until durable, memory", { try await client() }),
        ("watch", "from a key press to the screen of another machine", { try watchDelay(rounds: 200) }),
        ("typing", "a paper typed key by key through one client, one change an edit", { try await typing() }),
        (
            "peers", "our server beside Redis, NATS and the bare floor, with the generator in THICKET_PEERS",
            { try Peers().run() }
        ),
        ("hostile", "another tenant's changes while one behaves badly, attack by attack", { try hostile() }),
        ("restart", "start with 100,000 objects, clean and after SIGKILL", { try restart(objects: 100_000) }),
        ("cold", "first change in a bucket with 1,000,000 changes", { try coldBucket(changes: 1_000_000) }),
        ("traces", "recorded typing sessions, whole, through real clients", { try await traces() }),
    ]

    static func main() async {
        raiseDescriptorLimit()
        let wanted: [String] = Array(CommandLine.arguments.dropFirst())
        if wanted.contains(where: { ["help", "--help", "-h"].contains($0) }) { return help() }
        for name: String in wanted where !scenarios.contains(where: { $0.name == name }) {
            fputsError("bench: there is no scenario '\(name)'; see `./dev bench help`")
            exit(2)
        }
        var failures: Int32 = 0
        for scenario in scenarios where wanted.isEmpty || wanted.contains(scenario.name) {
            do {
                printResult(scenario.name, try await scenario.run())
            } catch {
                fputsError("bench: \(scenario.name): \(error)")
                failures += 1
            }
        }
        exit(failures)
    }

    static func help() {
        printLine("usage: ./dev bench [SCENARIO…]   (all without a name)\n")
        for scenario in scenarios { printLine("  \(scenario.name): \(scenario.what)") }
    }

    static func printResult(_ name: String, _ figures: [Figure]) {
        printLine("\n\(name)")
        for figure: Figure in figures {
            var line: String = "  " + padded(figure.name, 56) + padded(rounded(figure.value), 12, left: true)
            line += " " + padded(figure.unit, 5)
            if let spread = figure.spread {
                line += padded("(\(rounded(spread.lowerBound))–\(rounded(spread.upperBound)))", 20)
            }
            if let goal: Figure.Goal = figure.goal {
                line += "goal \(goal.text): " + (goal.isMet(by: figure.value) ? "met" : "NOT MET")
            }
            printLine(line)
        }
        let result: JSONObject = .init([
            (key: "scenario", value: .string(name)), (key: "figures", value: .array(figures.map(json))),
        ])
        printLine(String(decoding: JSONValue.object(result).serialized(), as: UTF8.self))
    }

    private static func json(_ figure: Figure) -> JSONValue {
        var pairs: [(key: String, value: JSONValue)] = [
            ("name", .string(figure.name)), ("unit", .string(figure.unit)), ("value", number(figure.value)),
        ]
        if let spread = figure.spread {
            pairs.append(("low", number(spread.lowerBound)))
            pairs.append(("high", number(spread.upperBound)))
        }
        if let goal: Figure.Goal = figure.goal {
            pairs.append(("goal", .string(goal.text)))
            pairs.append(("met", .bool(goal.isMet(by: figure.value))))
        }
        return .object(JSONObject(pairs))
    }

    private static func number(_ value: Double) -> JSONValue { JSONNumber(value).map { .number($0) } ?? .null }

    /// Three significant digits, without an exponent.
    static func rounded(_ value: Double) -> String {
        if abs(value) >= 100 { return "\(Int(value.rounded()))" }
        let scaled: Int = Int((value * 1_000).rounded())
        let decimals: String = String(scaled % 1_000)
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
        var limit: rlimit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
