import Glibc
import Testing
import ThicketProcesses

/// A real server, and two machines of one account with keys: `home`, which signed up, and `other`.
final class TreeHomes {
    static let password = ["THICKET_PASSWORD": "sesame"]

    let bench: CommandBench
    /// Words of a further login.
    let ann: [String]

    init() throws {
        bench = try CommandBench()
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key = try #require(output.split(separator: "\n").first).split(separator: " ").last
        ann = ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? ""), "--user", "ann"]
        try bench.good(["signup"] + ann, variables: Self.password)
        try bench.good(["login"] + ann, home: "other", variables: Self.password)
    }

    func path(_ name: String) -> String { bench.path(name) }

    /// Runs `thicket tree …` and expects success.
    @discardableResult
    func tree(_ words: String..., home: String = "home") throws -> String {
        try bench.good(["tree"] + words, home: home)
    }

    /// Runs `thicket tree …`.
    @discardableResult
    func run(_ words: String..., home: String = "home", input: String = "") throws -> ChildProcess.Outcome {
        try bench.run(["tree"] + words, home: home, input: input)
    }

    /// Runs a line of shell in the folder of the test, and expects success.
    @discardableResult
    func shell(_ line: String) throws -> String {
        let outcome = try ChildProcess.run(
            ["/bin/bash", "-c", "cd \"$0\" && \(line)", bench.place.path], input: "", variables: [:])
        guard outcome.code == 0 else { throw ProcessError("\(line): \(outcome)") }
        return outcome.output
    }

    /// Starts `thicket tree …` and does not wait for its end.
    func start(_ words: String..., home: String = "home") throws -> ChildProcess {
        try bench.start(["tree"] + words, home: home)
    }

    /// Whether any file of the server holds the word.
    func serverHolds(_ word: String) throws -> Bool {
        try ChildProcess.run(["/bin/grep", "-raq", word, bench.path("data")], input: "", variables: [:]).code == 0
    }

    /// A counter of the server.
    func metric(_ name: String) throws -> UInt64 {
        let text = try PlainHTTP.get("/metrics", port: bench.server.port)
        let line = try #require(text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + " ") })
        return try #require(UInt64(line.dropFirst(name.count + 1)))
    }

    /// Makes a file of pseudo-random bytes, which do not compress.
    func makeFile(_ name: String, mebibytes: Int) throws {
        try shell("head -c \(mebibytes)M /dev/urandom > '\(name)'")
    }

    /// Bytes of the files in a folder, subfolders included.
    func bytes(in folder: String) -> Int {
        let text = (try? shell("du -sb '\(folder)' 2>/dev/null | cut -f1 || true")) ?? ""
        return Int(text.filter(\.isNumber)) ?? 0
    }
}
