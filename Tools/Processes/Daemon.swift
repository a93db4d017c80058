import Glibc

/// The programs of this package, which are built beside the running test or tool.
public enum Programs {
    public static let thicketd: String = sibling("thicketd")
    public static let thicket: String = sibling("thicket")

    /// The path of another program of this package.
    public static func beside(_ name: String) -> String { sibling(name) }

    private static func sibling(_ name: String) -> String {
        var path = [UInt8](repeating: 0, count: 4_096)
        let count = path.withUnsafeMutableBytes { (room: UnsafeMutableRawBufferPointer) in
            room.baseAddress.map { (start: UnsafeMutableRawPointer) in readlink("/proc/self/exe", start, room.count) }
                ?? 0
        }
        let own = String(decoding: path[..<max(0, count)], as: UTF8.self)
        return own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/"
            + name
    }
}

/// A temporary folder, removed when this object is released.
public final class TemporaryFolder: Sendable {
    public let path: String

    public init(_ name: String = "folder") {
        path = "/tmp/thicket-\(name)-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        mkdir(path, 0o700)
    }

    deinit { TemporaryFolder.remove(path) }

    private static func remove(_ path: String) {
        guard let folder = opendir(path) else {
            unlink(path)
            return
        }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { remove(path + "/" + name) }
        }
        closedir(folder)
        rmdir(path)
    }
}

/// A real `thicketd` on a data folder, listening on a port that the kernel chose.
public final class Daemon {
    public let process: ChildProcess
    public let port: UInt16
    public let folder: String

    /// Starts it and waits until it listens.
    /// - Parameters:
    ///   - words: more words for `serve`.
    ///   - port: the loopback port; 0 lets the kernel choose.
    ///   - limit: a shell command to run before, such as `ulimit -S -f 100`.
    public init(
        folder: String, _ words: [String] = [], port: UInt16 = 0, variables: [String: String] = [:],
        limit: String? = nil
    ) throws(ProcessError) {
        self.folder = folder
        let plain = [Programs.thicketd, "serve", "--data", folder, "--listen", "127.0.0.1:\(port)"] + words
        process = try ChildProcess(
            limit.map { ["/bin/bash", "-c", "\($0); exec \"$@\"", "bash"] + plain } ?? plain, variables: variables)
        let line = try process.firstLine()
        guard let digits = line.split(separator: ":").last, let port = UInt16(digits) else {
            throw ProcessError("'\(line)' names no port")
        }
        self.port = port
    }

    /// Ends it as an operator does.
    public func terminate() throws(ProcessError) -> ChildProcess.Outcome {
        process.signal(SIGTERM)
        return try process.finish()
    }

    /// Ends it as a power cut does.
    public func kill() throws(ProcessError) {
        process.signal(SIGKILL)
        _ = try process.finish()
    }

    /// Runs an administrator's command on the folder.
    /// - Parameter seconds: longest time of it.
    @discardableResult
    public static func command(
        _ folder: String, _ words: [String], input: String = "", succeeding: Bool = false, seconds: Int = 180
    ) throws(ProcessError) -> ChildProcess.Outcome {
        let outcome = try ChildProcess.run(
            [Programs.thicketd] + words + ["--data", folder], input: input, seconds: seconds)
        if succeeding, outcome.code != 0 {
            throw ProcessError("thicketd \(words.joined(separator: " ")) failed: \(outcome.errors)\(outcome.output)")
        }
        return outcome
    }

    /// Creates an app and a token for a user.
    public static func token(
        _ folder: String, app: String, user: String, readOnly: Bool = false
    ) throws(ProcessError) -> String {
        try command(folder, ["app", "create", app], succeeding: true)
        let outcome = try command(
            folder, ["token", "create", "--app", app, "--user", user] + (readOnly ? ["--read-only"] : []),
            succeeding: true)
        return String(outcome.output.prefix { $0 != "\n" })
    }
}
