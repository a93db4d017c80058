import Glibc
import Testing
import ThicketProcesses
import ThicketProtocol

/// SIGHUP and a real `thicketd`: its settings file is read again.
@Suite("thicketd: settings read again")
struct ReloadTests {
    private let folder = TemporaryFolder("reload")
    private var file: String { folder.path + "/thicket.conf" }

    /// Replaces the file in one step, as editors do.
    private func write(_ text: String) throws {
        let next = file + ".next"
        let opened = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard opened >= 0, Glibc.write(opened, text, text.utf8.count) == text.utf8.count else {
            throw ProcessError("cannot write \(next)")
        }
        close(opened)
        rename(next, file)
    }

    /// The code with which an object of this size is refused; nil if it is accepted.
    private func store(_ socket: WireSocket, _ key: String, bytes: Int) throws -> Int? {
        let text = String(repeating: "x", count: bytes)
        socket.send(#"0:c:{"clientid":"c","id":"\#(key)","o":"M","ccid":"\#(key)","v":{"t":{"o":"+","v":"\#(text)"}}}"#)
        return try socket.next { (message: ServerMessage) -> Int?? in
            guard case .channel(0, .changes(let events)) = message, let event = events.first else {
                return nil
            }
            if case .refused(let refusal) = event { return refusal.error }
            return .some(nil)
        }
    }

    @Test("SIGHUP applies changed settings to open connections and names those for a restart; a bad file has no effect")
    func reload() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        try write("document-bytes-max = 1KiB\nlog-level = warning\n")
        let server = try Daemon(folder: folder.path, ["--config", file, "--drain-timeout", "3s"])
        let socket = try WireSocket(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "c")
        #expect(try store(socket, "a", bytes: 1_500) == 413)

        // A flag overrides the file, before and after; `reader-threads` needs a restart.
        try write(
            "document-bytes-max = 4KiB\nlog-level = info\ndrain-timeout = 9s\nreader-threads = 3\nmetrics = off\n")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=server.reload changed=3 needing_restart=1")
        try server.process.wait(for: "event=config.changed setting=document-bytes-max from=1KiB to=4KiB")
        try server.process.wait(for: "event=config.changed setting=log-level from=warning to=info")
        try server.process.wait(for: "event=config.needs_restart setting=reader-threads from=0 to=3")
        #expect(try store(socket, "a", bytes: 1_500) == nil)
        #expect(try store(socket, "b", bytes: 5_000) == 413)

        // A broken file changes nothing, not even by its good lines, and each problem is reported with its line.
        try write("document-bytes-max = 9KiB\nidle-timeout = soon\nno-such = 1\n")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=config.reload_failed")
        try server.process.wait(for: "\(file):2: idle-timeout")
        try server.process.wait(for: "\(file):3: unknown setting")
        #expect(try store(socket, "b", bytes: 5_000) == 413)
        unlink(file)
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=config.reload_failed", times: 2)
        #expect(try store(socket, "b", bytes: 5_000) == 413)

        // A valid file is read again. A setting that it no longer has returns to its default.
        try write("log-level = info\n")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=config.changed setting=document-bytes-max from=4KiB to=1MiB")
        #expect(try store(socket, "b", bytes: 5_000) == nil)
        #expect(try server.terminate().code == 0)
    }
}
