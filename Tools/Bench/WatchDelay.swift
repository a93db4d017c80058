import Glibc
import ThicketServerProcess

/// From a key press on one machine to the screen of another: from saving a file in a folder that `thicket mirror` keeps
/// until `thicket watch` has printed it. Three programs: the two and a server, all on this disk. Each save changes the
/// file's size, as typing does.
func watchDelay(rounds: Int) throws -> [Figure] {
    let server = try BenchServer(users: 1)
    let folder: String = server.process.folder
    mkdir(folder + "/notes", 0o700)
    let account: [String] = [
        "THICKET_SERVER=\(server.process.address)", "THICKET_APP=\(BenchServer.app)",
        "THICKET_TOKEN=\(server.tokens[0])",
    ]
    let mirror: Tool = try Tool(
        ["mirror", folder + "/notes", "notes"], environment: account + ["THICKET_HOME=\(folder)/one"])
    let watch = try Tool(["watch", "notes", "--json"], environment: account + ["THICKET_HOME=\(folder)/two"])
    func press(_ number: Int) throws -> Double {
        let typed: String = String(repeating: "a", count: 1 + (number + 1) % 40)
        let text = "{\"title\":\"\(typed)\",\"pressed\":\(number)}"
        let file: Int32 = open(folder + "/notes/page.json", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0, write(file, text, text.utf8.count) == text.utf8.count else {
            throw BenchError("cannot write the file: errno \(errno)")
        }
        let start: UInt64 = nanoseconds()
        close(file)
        try watch.wait(for: "\"pressed\":\(number)", seconds: 60)
        return Double(nanoseconds() - start) / 1e6
    }
    // The first press waits for both programs to be ready.
    _ = try press(-1)
    for number: Int in 0..<5 { _ = try press(number) }
    let sync: Double = try rawAppend(group: 1, rounds: 100).medianSeconds
    let times: [Double] = try (5..<(5 + rounds)).map { try press($0) }.sorted()
    mirror.end()
    watch.end()
    return [
        Figure(name: "key press to the other screen p50", value: quantile(times, 0.5), unit: "ms"),
        Figure(name: "key press to the other screen p99", value: quantile(times, 0.99), unit: "ms"),
        Figure(name: "floor: one append and fdatasync", value: sync * 1e3, unit: "ms"),
    ]
}

/// A running `thicket` whose output is read.
private final class Tool {
    private var process: pid_t = 0
    private var output: Int32 = -1
    private var text: [UInt8] = []

    init(_ arguments: [String], environment: [String]) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw BenchError("no pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        output = ends[0]
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let program: String = try ServerProcess.sibling("thicket")
        let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        let result: Int32 = posix_spawn(&process, program, &actions, nil, words, variables)
        guard result == 0 else { throw BenchError("cannot start \(program): errno \(result)") }
    }

    deinit { end() }

    func end() {
        guard process > 0 else { return }
        kill(process, SIGTERM)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        process = 0
        close(output)
    }

    /// Reads until a line holds `wanted`.
    func wait(for wanted: String, seconds: Int32) throws {
        let needle: [UInt8] = Array(wanted.utf8)
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            while let end: Int = text.firstIndex(of: 0x0A) {
                let line: [UInt8] = Array(text[..<end])
                text.removeFirst(end + 1)
                if contains(line, needle) { return }
            }
            var watched: pollfd = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard poll(&watched, 1, seconds * 1_000) > 0 else { throw BenchError("thicket printed nothing for long") }
            let count: Int = read(output, &chunk, chunk.count)
            guard count > 0 else { throw BenchError("thicket has ended") }
            text += chunk[0..<count]
        }
    }

    /// The number must end there: 1 is not 12.
    private func contains(_ line: [UInt8], _ needle: [UInt8]) -> Bool {
        guard line.count > needle.count else { return false }
        return (0..<(line.count - needle.count)).contains { place in
            line[place..<(place + needle.count)].elementsEqual(needle)
                && !(0x30...0x39).contains(line[place + needle.count])
        }
    }
}
