import Glibc
import Testing
import ThicketProcesses
import ThicketProtocol

/// SIGHUP and a real `thicketd`: its settings file is read again.
@Suite("thicketd: settings read again")
struct ReloadTests {
    private let folder: TemporaryFolder = .init("reload")
    private var file: String { folder.path + "/thicket.conf" }

    /// Replaces the file in one step, as editors do.
    private func write(_ text: String) throws {
        let next: String = file + ".next"
        let opened: Int32 = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard opened >= 0, Glibc.write(opened, text, text.utf8.count) == text.utf8.count else {
            throw ProcessError("cannot write \(next)")
        }
        close(opened)
        rename(next, file)
    }

    /// The code with which an object of so many bytes is refused; nil when it is taken.
    private func store(_ socket: WireSocket, _ key: String, bytes: Int) throws -> Int? {
        let text: String = String(repeating: "x", count: bytes)
        socket.send(#"0:c:{"clientid":"c","id":"\#(key)","o":"M","ccid":"\#(key)","v":{"t":{"o":"+","v":"\#(text)"}}}"#)
        return try socket.next { (message: ServerMessage) -> Int?? in
            guard case .channel(0, .changes(let events)) = message, let event: ChangeEvent = events.first else {
                return nil
            }
            if case .refused(let refusal) = event { return refusal.error }
            return .some(nil)
        }
    }

    @Test("what changed in the file is in force at once, for connections that are open; what cannot be is named")
    func reload() throws {
        let token: String = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        try write("document-bytes-max = 1KiB\nlog-level = warning\n")
        let server: Daemon = try .init(folder: folder.path, ["--config", file, "--drain-timeout", "3s"])
        let socket: WireSocket = try .init(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "c")
        #expect(try store(socket, "a", bytes: 1_500) == 413)

        // A flag has its rank over the file, then as now; the port is for the next start.
        try write(
            "document-bytes-max = 4KiB\nlog-level = info\ndrain-timeout = 9s\nreader-threads = 3\nmetrics = off\n")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=server.reload changed=3 needing_restart=1")
        try server.process.wait(for: "event=config.changed setting=document-bytes-max from=1KiB to=4KiB")
        try server.process.wait(for: "event=config.changed setting=log-level from=warning to=info")
        try server.process.wait(for: "event=config.needs_restart setting=reader-threads from=0 to=3")
        #expect(try store(socket, "a", bytes: 1_500) == nil)
        #expect(try store(socket, "b", bytes: 5_000) == 413)

        // A broken file changes nothing, not even by its good lines, and says where it is broken.
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

        // And it is read again when it is whole. What it no longer names is as without it.
        try write("log-level = info\n")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=config.changed setting=document-bytes-max from=4KiB to=1MiB")
        #expect(try store(socket, "b", bytes: 5_000) == nil)
        #expect(try server.terminate().code == 0)
    }
}
