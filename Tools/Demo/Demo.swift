import Glibc
import ThicketClient
import ThicketReplay
import ThicketServerProcess

/// Two to five people type one page through a real server, once into an open bucket and once into a sealed one. On the
/// way the server is killed twice and each client is disconnected once. At the end every client must hold exactly the
/// recorded text; the demo then shows what the server's database holds of it.
@main
struct Demo {
    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            fail("\(error)")
        }
    }

    static func run(_ arguments: [String]) async throws {
        if arguments.contains("--help") || arguments.contains("-h") { return say(help) }
        if arguments.first == "tree" { return try TreeDemo.run(Array(arguments.dropFirst())) }
        if arguments.first == "chat" { return try ChatDemo.run(Array(arguments.dropFirst())) }
        let isFast = arguments.contains("--fast") || isatty(1) == 0
        var arguments = arguments
        let people = try takePeople(&arguments)
        let path = arguments.first { !$0.hasPrefix("-") }
        if let unknown = arguments.first(where: { $0.hasPrefix("-") && $0 != "--fast" }) {
            throw DemoError("there is no option \(unknown); see --help")
        }
        guard path == nil || people == nil else {
            throw DemoError("a trace says how many people type: no --people with it")
        }
        let trace = try path.map { try Trace(path: $0) } ?? ownTrace(by: people ?? 2)
        guard trace.isConcurrent, TraceGenerator.authors.contains(trace.agentCount) else {
            throw DemoError(
                "the demo wants a concurrent trace of two to five people; `thicket replay` plays every trace")
        }
        let server = ServerBox(try ServerProcess())
        _ = try server.admin(["app", "create", "demo"])
        let token = try server.admin(["token", "create", "--app", "demo", "--user", "two@example.com"])
        try server.start()
        var options = Replay.Options(
            server: server.address, app: "demo",
            token: String(token.split(whereSeparator: { $0 == "\n" || $0 == " " }).last ?? ""), key: "page")
        // A client may pause for a minute between two attempts to connect, and an attempt takes half a minute at most.
        options.patience = .seconds(180)
        let number = ["Two", "Three", "Four", "Five"][trace.agentCount - TraceGenerator.authors.lowerBound]
        say(
            "\(number) people type \(trace.transactions.count) edits into one page; the server keeps it in \(server.folder)."
        )
        say("In an open bucket, where the server reads and merges:")
        options.bucket = openBucket
        try await type(trace, options, server, isFast)
        say("In a sealed bucket, where the server orders what it cannot read and the clients merge:")
        options.bucket = sealedBucket
        options.keys = try Replay.randomKeys(app: options.app, bucket: sealedBucket)
        try await type(trace, options, server, isFast)
        try conclude(trace, server)
    }

    /// The value of `--people`, which is removed from the arguments; nil without it.
    static func takePeople(_ arguments: inout [String]) throws -> Int? {
        guard let place = arguments.firstIndex(of: "--people") else { return nil }
        let value = arguments.dropFirst(place + 1).first
        guard let number = value.flatMap({ Int($0) }), TraceGenerator.authors.contains(number) else {
            throw DemoError("--people takes a number from 2 to 5, not \(value.map { "'\($0)'" } ?? "nothing")")
        }
        arguments.removeSubrange(place...place + 1)
        return number
    }

    static let openBucket = "pages"
    static let sealedBucket = "sealed-pages"

    /// Types the whole trace, with kills of the server and disconnections on the way.
    static func type(
        _ trace: Trace, _ options: Replay.Options, _ server: ServerBox, _ isFast: Bool
    ) async throws {
        var options = options
        let place = "\(server.folder)/\(options.bucket)"
        options.store = { $0 < 0 ? .memory : .file("\(place)-client\($0).db") }
        let stage = try Stage(
            server: server, bucket: options.bucket, keys: options.keys, trace: trace, paceSeconds: isFast ? 0 : 30)
        let report = try await Replay(trace, options: options, observer: stage).run()
        await stage.finish()
        let rate = Int(Double(report.edits) / max(report.seconds, 0.001))
        say(
            "  \(report.edits) edits in \(tenths(report.seconds)) s (\(rate)/s), \(report.bytesSent) bytes sent, "
                + "the page has \(report.length) characters.")
        if let difference = report.difference { throw DemoError("\(difference)") }
    }

    /// The trace of this project: its README and documents, typed by several people.
    static func ownTrace(by people: Int) throws -> Trace {
        let files = ["README.md", "docs/ARCHITECTURE.md", "docs/CONTRIBUTING.md", "docs/PROTOCOL.md"]
        let texts = files.compactMap(contents)
        guard !texts.isEmpty else {
            throw DemoError("there is no README.md here: run it in the project's folder, or name a trace")
        }
        var generator = TraceGenerator(seed: 2_026, texts: texts, authors: people)
        return generator.make(editsMin: 6_000)
    }

    static func contents(of path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            if count == 0 { break }
            bytes += chunk[0..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func conclude(_ trace: Trace, _ server: ServerBox) throws {
        say("What the server's database holds of the page:")
        let words = Holdings.words(of: trace.endContent)
        let open = try Holdings(server.folder, bucket: openBucket, words)
        let sealed = try Holdings(server.folder, bucket: sealedBucket, words)
        say("  open    \(open.line)")
        say("  sealed  \(sealed.line)")
        guard sealed.found == 0 else { throw DemoError("words of the page occur in the sealed bucket") }
        let check = try server.admin(["check"])
        say("thicketd check: \(check.split(separator: "\n").last ?? "nothing printed")")
        let clients = trace.agentCount == 2 ? "both clients" : "all \(trace.agentCount) clients"
        say("MATCH: in both buckets \(clients) and a fresh one hold exactly the recorded text.")
    }

    static let help = """
        usage: thicket-demo [--fast] [--people N | TRACE]
               thicket-demo tree [--size SIZE]
               thicket-demo chat

        Some people, two without --people, type one page through a real server that is killed twice; each of them is
        cut off once. They do so in an open bucket and then in a sealed one, and one sees what the server's database
        holds of each. Without TRACE (a concurrent editing trace of two to five people, .json or .json.gz) they type
        this project's own documents. Run it in the project's folder. The typing takes twice half a minute in a terminal, so that one can watch; with --fast,
        or when the output is no terminal, it goes as fast as it can. Exit code 0: all ended in exactly the recorded text.

        tree: Alice puts a folder of recipes with photos and a video into her tree. The cable is pulled and both programs
        are killed on the way; her other machine shows all names at once and fetches what she opens. At the end one sees
        what the server has of it. The video has 512 MiB, or SIZE (16MiB to 16GiB, such as 2GiB); /tmp needs six times
        as much for a while. Exit code 0: every claim was checked and holds.

        chat: Alice, Bob and Carol write to each other with whatszapp, through a server that is killed meanwhile; Bob buys
        a new phone. At the end one sees what the server has of it.
        """
}

struct DemoError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

func say(_ text: String) {
    let line: [UInt8] = Array((text + "\n").utf8)
    _ = write(1, line, line.count)
}

func fail(_ text: String) -> Never {
    let line: [UInt8] = Array(("demo: " + text + "\n").utf8)
    _ = write(2, line, line.count)
    exit(1)
}

/// A number with one decimal.
func tenths(_ number: Double) -> String {
    let scaled = Int((number * 10).rounded())
    return "\(scaled / 10).\(scaled % 10)"
}
