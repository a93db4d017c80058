import Glibc
import ThicketProcesses

/// A real server, and machines of one account that use the real `thicket`: what the scenarios of trees run on.
public final class TreeStand {
    static let app = "notes"
    static let name = "alice"
    static let password = "correct horse battery"

    private let place: TemporaryFolder
    let server: RestartableServer
    /// Between all clients and the server.
    public let cable: Cable
    let apiKey: String

    public init() throws(ProcessError) {
        place = TemporaryFolder("acceptance")
        let data = place.path + "/data"
        mkdir(data, 0o700)
        try Daemon.command(data, ["app", "create", Self.app], succeeding: true)
        let made = try Daemon.command(data, ["app", "key", "add", Self.app], succeeding: true)
        apiKey = String(made.output.prefix { $0 != "\n" }.split(separator: " ").last ?? "")
        server = try RestartableServer(data)
        cable = try Cable(to: server.port)
    }

    deinit { cable.stop() }

    /// The address that clients use: that of the cable.
    var address: String { "http://127.0.0.1:\(cable.port)" }
    /// The server's data folder.
    public var data: String { server.folder }

    public func path(_ name: String) -> String { place.path + "/" + name }

    // MARK: - Commands

    /// Makes the account on one machine, and logs in on others.
    public func signUp(_ home: String, _ others: String...) throws(ProcessError) {
        try thicket(["signup"] + loginWords, home, isSecret: true)
        for other in others { try thicket(["login"] + loginWords, other, isSecret: true) }
    }

    /// The words of `thicket signup` and `thicket login`.
    var loginWords: [String] {
        ["--server", address, "--app", Self.app, "--api-key", apiKey, "--user", Self.name]
    }

    /// Runs `thicket` and expects success.
    @discardableResult
    func thicket(_ words: [String], _ home: String, isSecret: Bool = false) throws(ProcessError) -> String {
        let outcome = try ChildProcess.run(
            [Programs.thicket] + words, variables: variables(home, isSecret), seconds: Self.patience)
        guard outcome.code == 0 else {
            throw ProcessError("thicket \(words.joined(separator: " ")) on \(home): \(outcome)")
        }
        return outcome.output
    }

    /// Runs `thicket tree` and expects success.
    @discardableResult
    public func tree(_ home: String, _ words: String...) throws(ProcessError) -> String {
        try thicket(["tree"] + words, home)
    }

    /// Runs `thicket tree`.
    func run(_ home: String, _ words: String...) throws(ProcessError) -> ChildProcess.Outcome {
        try ChildProcess.run([Programs.thicket, "tree"] + words, variables: variables(home), seconds: Self.patience)
    }

    /// Starts `thicket tree` and does not wait for its end.
    public func start(_ home: String, _ words: [String]) throws(ProcessError) -> ChildProcess {
        try ChildProcess([Programs.thicket, "tree"] + words, variables: variables(home))
    }

    /// Longest time of a command in seconds.
    public static let patience: Int = 300

    private func variables(_ home: String, _ isSecret: Bool = false) -> [String: String] {
        let all = ["THICKET_HOME": path(home), "SWIFT_BACKTRACE": "enable=no"]
        return isSecret ? all.merging(["THICKET_PASSWORD": Self.password]) { $1 } : all
    }

    /// Runs a line of shell in the folder of the stand, and expects success.
    @discardableResult
    public func shell(_ line: String) throws(ProcessError) -> String {
        let outcome = try ChildProcess.run(
            ["/bin/bash", "-c", "cd \"$0\" && \(line)", place.path], seconds: Self.patience)
        guard outcome.code == 0 else { throw ProcessError("\(line): \(outcome)") }
        return outcome.output
    }

    // MARK: - The server

    /// Ends the server as a power cut does, and the connections with it.
    public func killServer() throws(ProcessError) {
        // A process that is being killed still accepts connections for a moment. A power cut does not.
        try server.kill { cable.setPulled(true) }
        cable.countInterruption()
        cable.setPulled(false)
    }

    public func startServer() throws(ProcessError) { try server.start() }

    /// Ends the server as an operator does.
    public func terminateServer() throws(ProcessError) { try server.terminate() }

    // MARK: - Files and figures

    /// All regular files below a folder of the stand.
    public func files(below folder: String) throws(ProcessError) -> [String] {
        try shell("find '\(folder)' -type f").split(separator: "\n").map { path(String($0)) }
    }

    static func bytes(of path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var (all, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 20))
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { all += chunk[..<count] }
        return all
    }

    /// The sum of a counter of the server, over all its labels that have `label` in them.
    public func metric(_ name: String, label: String = "") throws(ProcessError) -> Int {
        let text = try PlainHTTP.get("/metrics", port: server.port)
        var sum = 0
        for line in text.split(whereSeparator: \.isNewline)
        where line.hasPrefix(name + " ") || line.hasPrefix(name + "{") && line.contains(label) {
            sum += line.split(separator: " ").last.flatMap { Int($0) } ?? 0
        }
        return sum
    }

    /// Longest time of a check in seconds: a million nodes take some minutes.
    private static let checkSeconds = 3_600

    /// What `thicketd check` finds; empty when all is well.
    public func checkFaults() throws(ProcessError) -> [String] {
        let check = try Daemon.command(data, ["check"], seconds: Self.checkSeconds)
        return check.code == 0 ? [] : ["thicketd check: \(check.output)\(check.errors)"]
    }
}
