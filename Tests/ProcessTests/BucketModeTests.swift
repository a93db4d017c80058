import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// `thicketd bucket mode`, beside a running server and without one.
@Suite("thicketd bucket mode", .blocking)
struct BucketModeTests {
    private let folder = TemporaryFolder("modes")

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    /// The code with which a clear object is refused; nil if it is accepted.
    private func write(_ key: String, _ socket: WireSocket) throws -> Int? {
        socket.send(#"0:c:{"clientid":"c","id":"\#(key)","o":"M","ccid":"\#(key)","v":{"t":{"o":"+","v":"clear"}}}"#)
        return try socket.next { (message: ServerMessage) -> Int?? in
            guard case .channel(0, .changes(let events)) = message, let event = events.first else {
                return nil
            }
            if case .refused(let refusal) = event { return refusal.error }
            return .some(nil)
        }
    }

    @Test("a running server applies a mode at once and notifies its clients; a bucket in use is left unchanged")
    func beside() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann")
        let server = try Daemon(folder: folder.path)
        let (used, new): (WireSocket, WireSocket) = (
            try .init(port: server.port, app: "notes"), try .init(port: server.port, app: "notes")
        )
        try used.open("used", app: "notes", token: token, clientID: "c")
        try new.open("new", app: "notes", token: token, clientID: "c")
        #expect(try write("k", used) == nil)
        let refused = try run("bucket", "mode", "notes", "used", "sealed")
        #expect(refused.code == 1 && refused.output.isEmpty, "\(refused)")
        #expect(refused.errors.contains("1 user has objects in the bucket used") && refused.errors.contains("Nothing"))
        #expect(try write("k2", used) == nil)
        let set = try run("bucket", "mode", "notes", "new", "sealed")
        #expect(
            set.code == 0 && set.output == "buckets named new of the app notes are sealed, for all users\n", "\(set)")
        let reported = try new.next { (message: ServerMessage) -> JSONValue? in
            if case .channel(0, .options(let options)) = message { options } else { nil }
        }
        #expect(reported == ["mode": "sealed"])
        #expect(try write("k", new) == 400)
        #expect(
            try run("bucket", "mode", "notes", "new").output == "new buckets: sealed\nexisting: 0 open, 0 sealed\n"
        )
        #expect(try run("check").code == 0)
        let outcome = try server.terminate()
        #expect(outcome.errors.contains("admin.bucket_mode") && !outcome.errors.contains("clear"))
    }

    @Test("without a server the command works on the folder; invalid words are refused with the reason")
    func alone() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann")
        #expect(try run("bucket", "mode", "notes", "note", "sealed").code == 0)
        #expect(
            try run("bucket", "mode", "notes", "other").output == "new buckets: open\nexisting: 0 open, 0 sealed\n"
        )
        let server = try Daemon(folder: folder.path)
        let socket = try WireSocket(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "c")
        #expect(try write("k", socket) == 400)
        #expect(try server.terminate().code == 0)
        for (words, code, text): ([String], Int32, String) in [
            (["notes", "note", "closed"], 2, "'closed' is not a mode"),
            (["none", "note", "sealed"], 1, "there is no app none"),
            (["notes", "__options__", "sealed"], 1, "always open"),
            (["notes", "two words", "sealed"], 2, "not admitted"),
            (["notes"], 2, "BUCKET"),
        ] {
            let outcome: ChildProcess.Outcome = try Daemon.command(folder.path, ["bucket", "mode"] + words)
            #expect(outcome.code == code && outcome.errors.contains(text), "\(words): \(outcome)")
        }
    }
}
