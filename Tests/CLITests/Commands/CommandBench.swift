import Glibc
import Testing
import ThicketProcesses

/// A real server, and the real `thicket` with its own homes.
final class CommandBench {
    /// Whether programs derive keys from passwords with an eighth of the cost. The upgrade of an old account does not.
    var isCheap = true
    let place = TemporaryFolder("cli")
    private(set) var server: Daemon
    let token: String
    /// The token of the data folder that was made later.
    private(set) var newToken = ""

    init() throws {
        mkdir(place.path + "/data", 0o700)
        token = try Daemon.token(place.path + "/data", app: "notes", user: "ann@example.com")
        server = try Daemon(folder: place.path + "/data")
    }

    var address: String { "http://127.0.0.1:\(server.port)" }
    func path(_ name: String) -> String { place.path + "/" + name }

    func stopServer() throws { try server.kill() }
    /// Starts it again on the same port, perhaps with other settings.
    func startServer(_ words: [String] = []) throws {
        server = try Daemon(folder: place.path + "/data", words, port: server.port)
    }

    /// Starts a server on another data folder, made for it, on the same port; returns the token of that folder.
    func startServer(on data: String, user: String) throws -> String {
        mkdir(path(data), 0o700)
        newToken = try Daemon.token(path(data), app: "notes", user: user)
        server = try Daemon(folder: path(data), port: server.port)
        return newToken
    }

    func token(user: String = "ann@example.com", readOnly: Bool = false) throws -> String {
        try Daemon.token(place.path + "/data", app: "notes", user: user, readOnly: readOnly)
    }

    /// The words that name this server and its app, with a new API key.
    func appWords() throws -> [String] {
        let made = try Daemon.command(path("data"), ["app", "key", "add", "notes"], succeeding: true).output
        let key = made.split(separator: "\n").first?.split(separator: " ").last
        return ["--server", address, "--app", "notes", "--api-key", String(try #require(key))]
    }

    /// Signs an account with keys up (`signup`), or logs it in (`login`), on the machine of a home.
    ///
    /// - Parameter place: of `appWords()`.
    func enter(_ command: String, _ user: String, home: String, at place: [String]) throws {
        try good(
            [command] + place + ["--user", user], home: home, variables: ["THICKET_PASSWORD": "sesame of \(user)"])
    }

    func variables(_ home: String, _ more: [String: String]) -> [String: String] {
        [
            "THICKET_HOME": path(home), "SWIFT_BACKTRACE": "enable=no", "VISUAL": "",
            "THICKET_CHEAP_PASSPHRASES": isCheap ? "1" : "",
        ].merging(more) { $1 }
    }

    /// Runs `thicket` to its end.
    @discardableResult
    func run(
        _ words: [String], home: String = "home", input: String = "", variables more: [String: String] = [:]
    ) throws -> ChildProcess.Outcome {
        try ChildProcess.run([Programs.thicket] + words, input: input, variables: variables(home, more))
    }

    /// The same, with a login first.
    @discardableResult
    func good(_ words: [String], home: String, token: String) throws -> String {
        try login(home: home, token: token)
        return try good(words, home: home)
    }

    @discardableResult
    func run(_ words: [String], home: String, token: String) throws -> ChildProcess.Outcome {
        try login(home: home, token: token)
        return try run(words, home: home)
    }

    /// Runs it and expects success; returns its output.
    @discardableResult
    func good(_ words: [String], home: String = "home", variables more: [String: String] = [:]) throws -> String {
        let outcome = try run(words, home: home, variables: more)
        guard outcome.code == 0 else {
            throw ProcessError("thicket \(words.joined(separator: " ")) ended with \(outcome): \(outcome.errors)")
        }
        return outcome.output
    }

    /// Starts it and does not wait for its end.
    func start(_ words: [String], home: String = "home") throws -> ChildProcess {
        try ChildProcess([Programs.thicket] + words, variables: variables(home, [:]))
    }

    func login(home: String = "home", token: String? = nil) throws {
        try good(
            ["login", "--server", address, "--app", "notes"], home: home,
            variables: ["THICKET_TOKEN": token ?? self.token])
    }

    // MARK: - Files

    func write(_ name: String, _ text: String) throws {
        let file = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o755)
        guard file >= 0 else { throw ProcessError("cannot write \(name)") }
        defer { close(file) }
        _ = Glibc.write(file, text, text.utf8.count)
    }

    func read(_ name: String) -> String? {
        let file = open(path(name), O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = Glibc.read(file, &bytes, bytes.count)
        return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }

    func exists(_ name: String) -> Bool { access(path(name), F_OK) == 0 }
}
