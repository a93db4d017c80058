import Glibc
import ThicketReplay

/// A real server with an app `bench` and one token for each of its users.
final class BenchServer {
    static let app: String = "bench"
    let process: ServerProcess
    /// User `n` has the token `tokens[n]`.
    let tokens: [String]

    /// - Parameter parent: where the server's folder is made; `/dev/shm` takes the disk out of the figures.
    init(users: Int, settings: [String] = [], parent: String = "/tmp") throws {
        process = try ServerProcess(settings: settings, parent: parent)
        tokens = (0..<users).map { number in
            let digits: String = String(number, radix: 16)
            return String(repeating: "0", count: 32 - digits.count) + digits
        }
        try process.admin(["app", "create", Self.app])
        let list: String = process.folder + "/tokens.jsonl"
        guard let file: UnsafeMutablePointer<FILE> = fopen(list, "w") else { throw BenchError("cannot write \(list)") }
        for (number, token): (Int, String) in tokens.enumerated() {
            fputs("{\"app\":\"\(Self.app)\",\"user\":\"user\(number)@example.com\",\"token\":\"\(token)\"}\n", file)
        }
        fclose(file)
        try process.admin(["token", "import", list])
        try process.start()
    }
}
