import Glibc

/// A real `thicketd` on a temporary folder, with an app `bench` and the tokens asked for.
final class ServerProcess {
    let process: pid_t
    let port: UInt16
    let folder: String
    let tokens: [String]
    static let app: String = "bench"

    /// - Parameter users: number of users; user `n` has the token `tokens[n]`.
    init(users: Int, settings: [String] = []) throws {
        let program: String = try Self.sibling("thicketd")
        var template: [CChar] = Array("/tmp/thicket-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder: errno \(errno)") }
        folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        tokens = (0..<users).map { number in
            let digits: String = String(number, radix: 16)
            return String(repeating: "0", count: 32 - digits.count) + digits
        }
        try Self.run([program, "app", "create", Self.app, "--data", folder])
        let list: String = folder + ".tokens"
        guard let file: UnsafeMutablePointer<FILE> = fopen(list, "w") else { throw BenchError("cannot write \(list)") }
        for (number, token): (Int, String) in tokens.enumerated() {
            fputs("{\"app\":\"\(Self.app)\",\"user\":\"user\(number)@example.com\",\"token\":\"\(token)\"}\n", file)
        }
        fclose(file)
        try Self.run([program, "token", "import", list, "--data", folder])
        unlink(list)
        port = try Self.freePort()
        process = try Self.spawn(
            [program, "serve", "--data", folder, "--listen", "127.0.0.1:\(port)", "--log-level", "error"] + settings)
        try Self.waitUntilListening(port)
    }

    deinit {
        kill(process, SIGTERM)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        _ = try? Self.run(["/bin/rm", "-rf", folder])
    }

    /// CPU seconds that the server has used: user and system.
    func cpuSeconds() -> Double {
        let fields: [Substring] = Self.read("/proc/\(process)/stat").split(separator: " ")
        guard fields.count > 15, let user: Double = Double(fields[13]), let system: Double = Double(fields[14]) else {
            return 0
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Proportional resident memory in bytes.
    func memoryBytes() -> Int {
        for line: Substring in Self.read("/proc/\(process)/smaps_rollup").split(separator: "\n")
        where line.hasPrefix("Pss:") {
            return (line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1_024
        }
        return 0
    }

    private static func read(_ path: String) -> String {
        guard let file: UnsafeMutablePointer<FILE> = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes: [UInt8] = .init(repeating: 0, count: 1 << 16)
        let count: Int = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[0..<count], as: UTF8.self)
    }

    private static func sibling(_ name: String) throws -> String {
        var path: [CChar] = .init(repeating: 0, count: 4_096)
        let count: Int = readlink("/proc/self/exe", &path, path.count - 1)
        guard count > 0 else { throw BenchError("who am I? errno \(errno)") }
        let own: String = String(decoding: path[0..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
        let folder: Substring = own[..<(own.lastIndex(of: "/") ?? own.startIndex)]
        let sibling: String = "\(folder)/\(name)"
        guard access(sibling, X_OK) == 0 else { throw BenchError("no \(name) beside \(own): build it first") }
        return sibling
    }

    private static func spawn(_ arguments: [String]) throws -> pid_t {
        var process: pid_t = 0
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for pointer: UnsafeMutablePointer<CChar>? in pointers { free(pointer) } }
        let result: Int32 = posix_spawn(&process, arguments[0], nil, nil, &pointers, environ)
        guard result == 0 else { throw BenchError("cannot start \(arguments[0]): errno \(result)") }
        return process
    }

    private static func run(_ arguments: [String]) throws {
        let process: pid_t = try spawn(arguments)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        guard status == 0 else { throw BenchError("\(arguments.joined(separator: " ")) failed with status \(status)") }
    }

    private static func freePort() throws -> UInt16 {
        let probe: Int32 = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(probe) }
        var address: sockaddr_in = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size: socklen_t = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result: Int32 = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(probe, $0, size) | getsockname(probe, $0, &size) }
        }
        guard result == 0 else { throw BenchError("no free port: errno \(errno)") }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func waitUntilListening(_ port: UInt16) throws {
        for _ in 0..<500 {
            if (try? LoadSocket(port: port, app: app)) != nil { return }
            usleep(20_000)
        }
        throw BenchError("the server does not listen on port \(port) after 10 s")
    }
}
