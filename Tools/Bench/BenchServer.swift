import Glibc
import ThicketServerProcess

/// A real server with an app `bench` and one token for each of its users.
final class BenchServer {
    static let app = "bench"
    let process: ServerProcess
    /// User `n` has the token `tokens[n]`.
    let tokens: [String]

    /// - Parameter parent: the folder for the server's folder; `/dev/shm` removes the disk from the figures.
    convenience init(
        users: Int, settings: [String] = [], parent: String = "/tmp", starts: Bool = true
    ) throws {
        let tokens: [String] = (0..<users).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 32 - digits.count) + digits
        }
        try self.init(tokens: tokens, settings: settings, parent: parent, starts: starts)
    }

    /// - Parameter starts: false only prepares the folder, for another program to start a server on it.
    init(tokens: [String], settings: [String] = [], parent: String = "/tmp", starts: Bool = true) throws {
        process = try ServerProcess(settings: settings, parent: parent)
        self.tokens = tokens
        try process.admin(["app", "create", Self.app])
        let list: String = process.folder + "/tokens.jsonl"
        guard let file: UnsafeMutablePointer<FILE> = fopen(list, "w") else { throw BenchError("cannot write \(list)") }
        for (number, token) in tokens.enumerated() {
            fputs("{\"app\":\"\(Self.app)\",\"user\":\"user\(number)@example.com\",\"token\":\"\(token)\"}\n", file)
        }
        fclose(file)
        try process.admin(["token", "import", list])
        if starts { try process.start() }
    }
}

extension ServerProcess {
    /// Longest wait for a server to finish its background work.
    private static let pauseSeconds: Double = 90

    /// Waits until the server is almost idle: after a start it moves the log that it found into the database.
    func awaitIdle() throws {
        let end: UInt64 = nanoseconds() + UInt64(Self.pauseSeconds * 1e9)
        var quiet = 0
        while quiet < 5 {
            guard nanoseconds() < end else {
                throw BenchError("the server has not come to rest after \(Self.pauseSeconds) s")
            }
            let cpu: Double = cpuSeconds()
            usleep(200_000)
            quiet = cpuSeconds() - cpu < 0.004 ? quiet + 1 : 0
        }
    }
}
