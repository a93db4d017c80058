import ThicketProcesses
import ThicketProtocol

/// A real server with an app, and people who use the program `whatszapp`, each with a home folder of its own.
final class ChatHomes {
    static let seconds = 60

    private let place = TemporaryFolder("whatszapp")
    private let daemon: Daemon
    private let apiKey: String

    init(_ people: String...) throws {
        let data = try ChildProcess.run(["/bin/mkdir", "-m", "700", place.path + "/data"])
        guard data.code == 0 else { throw ProcessError("no folder: \(data)") }
        try Daemon.command(place.path + "/data", ["app", "create", "chat"], succeeding: true)
        let key = try Daemon.command(place.path + "/data", ["app", "key", "add", "chat"], succeeding: true)
        apiKey = String(key.output.prefix { $0 != "\n" }.split(separator: " ").last ?? "")
        daemon = try Daemon(folder: place.path + "/data")
        for name in people { try enter("signup", name, home: name) }
    }

    deinit { _ = try? daemon.terminate() }

    func path(_ name: String) -> String { "\(place.path)/\(name)" }

    /// `signup` or `login` on a machine.
    func enter(_ command: String, _ user: String, home: String) throws {
        try good(
            home, command, "--server", "http://127.0.0.1:\(daemon.port)", "--app", "chat", "--api-key", apiKey,
            "--user",
            user)
    }

    private func variables(_ home: String) -> [String: String] {
        [
            "THICKET_HOME": path(home), "THICKET_PASSWORD": "correct horse battery", "SWIFT_BACKTRACE": "enable=no",
            "THICKET_CHEAP_PASSPHRASES": "1",
        ]
    }

    func run(_ home: String, _ words: [String], input: String = "") throws -> ChildProcess.Outcome {
        try ChildProcess.run(
            [Programs.beside("whatszapp")] + words, input: input, variables: variables(home), seconds: Self.seconds)
    }

    /// Runs `thicket`, and expects success.
    func thicket(_ home: String, _ words: String...) throws {
        let outcome = try ChildProcess.run(
            [Programs.thicket] + words, variables: variables(home), seconds: Self.seconds)
        guard outcome.code == 0 else { throw ProcessError("thicket \(words): \(outcome)") }
    }

    /// Runs the program, and expects success.
    @discardableResult
    func good(_ home: String, _ words: String...) throws -> String {
        let outcome = try run(home, words)
        guard outcome.code == 0 else { throw ProcessError("whatszapp \(words): \(outcome)") }
        return outcome.output
    }

    /// `whatszapp watch` in the background, and the file with what it prints.
    struct Watch {
        let process: ChildProcess
        let file: String

        /// Waits until the lines of JSON that were printed are so.
        func wait(_ isSo: ([JSONObject]) -> Bool) throws {
            let happened = Steady.waitFor(seconds: ChatHomes.seconds) {
                let text = (try? ChildProcess.run(["/bin/cat", file]).output) ?? ""
                let lines = text.split(separator: "\n").compactMap {
                    (try? JSONValue(parsing: String($0)))?.objectValue
                }
                return isSo(lines) ? true : process.hasEnded ? false : nil
            }
            guard happened == true else { throw ProcessError("watch has not printed it") }
        }
    }

    func watch(_ home: String) throws -> Watch {
        let file = path("\(home).watch")
        let process = try ChildProcess(
            ["/bin/sh", "-c", "exec \"$0\" watch > '\(file)'", Programs.beside("whatszapp")], variables: variables(home)
        )
        return Watch(process: process, file: file)
    }
}
