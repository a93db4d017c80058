import Glibc
import ThicketProcesses

/// A server that is killed and started again on the same data and port. Its logs are kept over all its starts.
final class RestartableServer {
    let folder: String
    let port: UInt16
    private var daemon: Daemon?
    private(set) var log = ""

    init(_ folder: String) throws(ProcessError) {
        self.folder = folder
        let daemon = try Daemon(folder: folder)
        (self.daemon, port) = (daemon, daemon.port)
    }

    func start() throws(ProcessError) { daemon = try Daemon(folder: folder, port: port) }

    /// - Parameter body: runs while the process ends.
    func kill(_ body: () -> Void = {}) throws(ProcessError) { try end(SIGKILL, body) }

    func terminate() throws(ProcessError) { try end(SIGTERM) {} }

    private func end(_ signal: Int32, _ body: () -> Void) throws(ProcessError) {
        guard let daemon else { return }
        self.daemon = nil
        daemon.process.signal(signal)
        body()
        let outcome = try daemon.process.finish()
        log += outcome.output + outcome.errors
    }
}
