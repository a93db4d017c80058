import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// A running `thicketd`, commands beside it, and its end.
@Suite("thicketd serve", .blocking)
struct ServeTests {
    private let folder = TemporaryFolder("serve")

    /// Stores one object through the wire.
    private func put(_ port: UInt16, token: String, key: String, _ text: String) throws {
        let socket = try WireSocket(port: port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "test")
        socket.send(
            #"0:c:{"clientid":"test","id":"\#(key)","o":"M","ccid":"\#(key)-1","v":{"t":{"o":"+","v":"\#(text)"}}}"#)
        let error = try socket.next { (message: ServerMessage) -> Int?? in
            guard case .channel(0, .changes(let events)) = message, let event = events.first else {
                return nil
            }
            if case .refused(let refusal) = event { return refusal.error }
            return .some(nil)
        }
        if let error { throw ProcessError("the change was refused with \(error)") }
    }

    /// Keys and versions of the bucket.
    private func index(_ port: UInt16, token: String) throws -> [String: Version] {
        let socket = try WireSocket(port: port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "test")
        socket.send("0:i::::100")
        let page = try socket.next { (message: ServerMessage) -> IndexPage? in
            if case .channel(0, .index(let page)) = message { page } else { nil }
        }
        var versions = [String: Version]()
        for entry in page.entries { versions[entry.key.text] = entry.version }
        return versions
    }

    @Test("the server prints its address, answers its health, and on SIGTERM closes with 1001 and ends with 0")
    func lifecycle() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let server = try Daemon(folder: folder.path)
        let health = try Daemon.command(
            folder.path, ["health", "--listen", "127.0.0.1:\(server.port)"])
        #expect(health.code == 0 && health.output.hasPrefix("ready"))
        let socket = try WireSocket(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "test")
        let outcome = try server.terminate()
        #expect(outcome.code == 0)
        _ = Steady.waitFor { () -> Bool? in
            _ = socket.take()
            return socket.isClosed ? true : nil
        }
        #expect(socket.closeCode == .goingAway)
        #expect(outcome.errors.contains("event=server.started") && outcome.errors.contains("event=server.stopped"))
        #expect(!outcome.errors.contains("ann@") && !outcome.errors.contains(token))
        #expect(access(folder.path + "/control.sock", F_OK) != 0)
    }

    @Test("revoked tokens end the connections that they opened, and no others")
    func revoked() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann")
        let bobs = try Daemon.token(folder.path, app: "notes", user: "bob")
        let server = try Daemon(folder: folder.path)
        let (ann, bob) = (
            try WireSocket(port: server.port, app: "notes"), try WireSocket(port: server.port, app: "notes")
        )
        try ann.open("note", app: "notes", token: token, clientID: "test")
        try bob.open("note", app: "notes", token: bobs, clientID: "test")
        let revoke = ["token", "revoke", "--app", "notes", "--user", "ann", "--all"]
        #expect(try Daemon.command(folder.path, revoke, succeeding: true).output == "revoked 1 token\n")
        let deadline = Steady.milliseconds() + 120_000
        while !ann.isClosed, Steady.milliseconds() < deadline {
            WireSocket.wait([ann], milliseconds: 100)
            _ = ann.take()
        }
        #expect(ann.closeCode == .policyViolation)
        #expect(throws: ProcessError.self) { try put(server.port, token: token, key: "late", "x") }
        try put(server.port, token: bobs, key: "a", "x")
        #expect(!bob.isClosed)
        #expect(try server.terminate().code == 0)
    }

    @Test("an operator finds an account by its name and ends it beside the running server")
    func accounts() throws {
        let app = try Daemon.command(folder.path, ["app", "create", "notes"], succeeding: true)
        let key: Substring = try #require(app.output.split(separator: "\n").dropFirst().first?.suffix(32))
        let server = try Daemon(folder: folder.path)
        let body = #"{"username":"Ann@example.com","password":"open sesame","client_id":"\#(key)"}"#
        let made = try PlainHTTP.post(server.port, "/1/notes/create/", body)
        let token: Substring = try #require(
            made.split(separator: #""access_token":""#).dropFirst().first?.prefix(32), "\(made)")
        let socket = try WireSocket(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: String(token), clientID: "test")
        let list = ["account", "list", "--app", "notes"]
        let found = try Daemon.command(folder.path, list + ["ann@EXAMPLE.com"]).output
        #expect(found.contains("\tAnn@example.com\tpassword\tmade 2"), "\(found)")
        #expect(try Daemon.command(folder.path, list).output == found)
        let end = ["account", "delete", "--app", "notes", "ann@example.com"]
        #expect(try Daemon.command(folder.path, end, succeeding: true).output.contains("has ended"))
        let deadline = Steady.milliseconds() + 120_000
        while !socket.isClosed, Steady.milliseconds() < deadline {
            WireSocket.wait([socket], milliseconds: 100)
            _ = socket.take()
        }
        #expect(socket.closeCode == .policyViolation)
        #expect(try Daemon.command(folder.path, end).code == 1)
        #expect(try Daemon.command(folder.path, list).output == "no such account\n")
        #expect(try server.terminate().code == 0)
    }

    @Test("an app made for a partner has no sign-ups of its own, unless its creation asks for them")
    func partnerApps() throws {
        let partner = try Daemon.command(folder.path, ["partner", "create"], succeeding: true)
        let id = String(try #require(partner.output.split { " \n".contains($0) }.dropFirst().first))
        var keys = [String]()
        for words in [["closed"], ["open", "--passwords", "sent"]] {
            let app = try Daemon.command(
                folder.path, ["app", "create", words[0], "--partner", id] + words.dropFirst(), succeeding: true)
            let line: Substring = try #require(app.output.split(separator: "\n").first { $0.hasPrefix("api key") })
            keys.append(String(line.suffix(32)))
        }
        let server = try Daemon(folder: folder.path)
        let user = #"{"username":"ann","password":"open sesame"}"#
        func post(_ path: String, _ key: String) throws -> String {
            try PlainHTTP.post(server.port, path, user, fields: ["X-Simperium-API-Key: \(key)"])
        }
        let signup = try post("/1/closed/auth/signup", keys[0])
        #expect(
            signup.hasPrefix("HTTP/1.1 403")
                && (signup.contains("\"not_here\"") || signup.contains("accounts cannot be created")), "\(signup)")
        #expect(
            try post("/1/open/auth/signup", keys[1]).hasPrefix("HTTP/1.1 400"), "accepted, and its body is invalid")
        for path in ["create/", "authorize/"] {
            #expect(try post("/1/closed/\(path)", keys[0]).hasPrefix("HTTP/1.1 403"), "\(path)")
        }
        for path in ["create/", "authorize/"] {
            #expect(try post("/1/open/\(path)", keys[1]).hasPrefix("HTTP/1.1 200"), "\(path)")
        }
        #expect(try server.terminate().code == 0)
    }

    @Test("SIGINT ends the server as SIGTERM does, and SIGHUP does not end it")
    func signals() throws {
        let server = try Daemon(folder: folder.path)
        server.process.signal(SIGHUP)
        #expect(try Daemon.command(folder.path, ["health", "--listen", "127.0.0.1:\(server.port)"]).code == 0)
        server.process.signal(SIGINT)
        let outcome = try server.process.finish()
        #expect(outcome.code == 0 && outcome.errors.contains("event=server.reload"))
    }

    @Test("a second server on the folder is refused with 3, and the first goes on")
    func second() throws {
        let server = try Daemon(folder: folder.path)
        let second = try Daemon.command(folder.path, ["serve", "--listen", "127.0.0.1:0"])
        #expect(second.code == 3 && second.output.isEmpty)
        #expect(second.errors.contains("in use by process \(server.process.id)"), "\(second.errors)")
        #expect(try Daemon.command(folder.path, ["health", "--listen", "127.0.0.1:\(server.port)"]).code == 0)
        try server.kill()
        // The lock ended with the process.
        #expect(try Daemon(folder: folder.path).terminate().code == 0)
    }

    @Test("a port that is in use is named, with what to do")
    func portTaken() throws {
        let server = try Daemon(folder: folder.path)
        let other = TemporaryFolder("other")
        let outcome = try Daemon.command(
            other.path, ["serve", "--listen", "127.0.0.1:\(server.port)"])
        #expect(outcome.code == 1 && outcome.errors.contains("127.0.0.1:\(server.port)"), "\(outcome.errors)")
        #expect(outcome.errors.contains("--listen chooses another"))
    }

    @Test("apps and tokens made beside a running server are valid at once, and read-only tokens may not write")
    func administration() throws {
        let server = try Daemon(folder: folder.path)
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        try put(server.port, token: token, key: "first", "a")
        let reader = try Daemon.token(folder.path, app: "notes", user: "ann@example.com", readOnly: true)
        #expect(try index(server.port, token: reader) == ["first": 1])
        let refused = #expect(throws: ProcessError.self) {
            try put(server.port, token: reader, key: "second", "b")
        }
        #expect(refused?.description.contains("401") == true)
        let imported = "imported-token-0001"
        try Daemon.command(
            folder.path, ["token", "import", "-"],
            input: #"{"app":"notes","user":"ann@example.com","token":"\#(imported)"}"#, succeeding: true)
        #expect(try index(server.port, token: imported) == ["first": 1])
        let wrong = #expect(throws: ProcessError.self) {
            _ = try index(server.port, token: "wrong-token")
        }
        #expect(wrong?.description.contains("401") == true)
        #expect(try Daemon.command(folder.path, ["check"]).code == 0)
    }

    @Test("a backup of the running server is restored after it stopped, with higher versions")
    func backupAndRestore() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let server = try Daemon(folder: folder.path)
        try put(server.port, token: token, key: "kept", "a")
        let copies = TemporaryFolder("copies")
        let file = copies.path + "/copy.db"
        let backup = try Daemon.command(folder.path, ["backup", file])
        #expect(backup.code == 0 && backup.output.contains("1 changes, checked"), "\(backup)")
        #expect(try Daemon.command(folder.path, ["backup", file]).code == 1, "an existing file is not overwritten")
        try put(server.port, token: token, key: "after", "b")

        let refused = try Daemon.command(folder.path, ["restore", file])
        #expect(refused.code == 3 && refused.errors.contains("in use"), "\(refused)")
        #expect(try server.terminate().code == 0)

        let restore = try Daemon.command(folder.path, ["restore", file])
        #expect(restore.code == 0 && restore.output.contains("the previous database is"), "\(restore)")
        #expect(try Daemon.command(folder.path, ["check"]).code == 0)
        let again = try Daemon(folder: folder.path)
        let restored = try index(again.port, token: token)
        #expect(Array(restored.keys) == ["kept"], "the change after the backup is gone")
        let version = try #require(restored["kept"])
        #expect(version > 1_000_000 && version % 1_000_000 == 1, "version \(version) is 1, moved on by whole millions")
        #expect(try again.terminate().code == 0)
        #expect(try Daemon.command(folder.path, ["restore", "/nowhere"]).code == 1)
        #expect(try Daemon.command(folder.path, ["check"]).code == 0, "a restore that failed changed nothing")
    }

    @Test("ask reaches the clients of a bucket and prints their answers")
    func ask() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let server = try Daemon(folder: folder.path)
        let nobody = try Daemon.command(
            folder.path, ["ask", "notes", "ann@example.com", "note", "index", "--wait", "1s"])
        #expect(nobody.code == 1 && nobody.errors.contains("no client has that bucket open now"))

        let socket = try WireSocket(port: server.port, app: "notes")
        try socket.open("note", app: "notes", token: token, clientID: "the client")
        socket.send("0:i::::1")
        let _ = try socket.next { (message: ServerMessage) -> Bool? in
            if case .channel(0, .index) = message { true } else { nil }
        }
        let words = ["ask", "notes", "ann@example.com", "note", "index", "--wait", "1s"]
        let asker = try ChildProcess([Programs.thicketd] + words + ["--data", folder.path])
        let _ = try socket.next { (message: ServerMessage) -> Bool? in
            if case .channel(0, .indexRequest) = message { true } else { nil }
        }
        socket.send(#"0:index:{"index":[{"id":"a","v":1}],"current":"x","pending":{}}"#)
        let outcome = try asker.finish()
        #expect(outcome.code == 0 && outcome.errors.contains("asked 1 client"), "\(outcome)")
        #expect(outcome.output.hasPrefix(#"{"client":"the client","answer":{"#), "\(outcome)")
        #expect(outcome.output.contains(#""index":[{"id":"a","v":1}]"#), "\(outcome)")
        #expect(try server.terminate().code == 0)
        let gone = try Daemon.command(folder.path, words)
        #expect(gone.code == 4 && gone.errors.contains("no server runs on this folder"), "\(gone)")
    }

    @Test("a full disk refuses changes with 503 and reports it; with space again, service resumes by itself")
    func fullDisk() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        // No file of this process may grow beyond 400 KiB, which is like a full disk.
        let server = try Daemon(folder: folder.path, limit: "ulimit -S -f 400")
        let text = String(repeating: "y", count: 4_000)
        var kept = 0
        var refusal: String?
        while refusal == nil, kept < 400 {
            do {
                try put(server.port, token: token, key: "k\(kept)", text)
                kept += 1
            } catch {
                refusal = "\(error)"
            }
        }
        #expect(refusal == "the change was refused with 503", "after \(kept) changes: \(refusal ?? "none")")
        let ill = try Daemon.command(
            folder.path, ["health", "--listen", "127.0.0.1:\(server.port)"])
        #expect(ill.code == 1 && ill.output.hasPrefix("cannot_commit"), "\(ill)")
        #expect(try index(server.port, token: token).count == min(kept, 100), "reading goes on")

        _ = try ChildProcess.run(["/usr/bin/prlimit", "--pid", "\(server.process.id)", "--fsize=unlimited"])
        let taken: Void? = Steady.waitFor { try? put(server.port, token: token, key: "k\(kept)", text) }
        #expect(taken != nil, "the same change, sent again, is accepted")
        let well = try Daemon.command(
            folder.path, ["health", "--listen", "127.0.0.1:\(server.port)"])
        #expect(well.code == 0, "\(well)")
        let outcome = try server.terminate()
        #expect(outcome.code == 0 && outcome.errors.contains("level=") && !outcome.errors.contains("yyyy"))
        let check = try Daemon.command(folder.path, ["check"])
        #expect(check.code == 0 && check.output.contains("\(kept + 1) objects"), "\(check)")
    }

    @Test("settings reach the server: metrics can be disabled")
    func settings() throws {
        let server = try Daemon(
            folder: folder.path, ["--log-level", "error"], variables: ["THICKET_METRICS": "off"])
        #expect(try status("/metrics", server.port) == 404)
        #expect(try status("/health/live", server.port) == 200)
        let outcome = try server.terminate()
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    }

    private func status(_ path: String, _ port: UInt16) throws -> Int? {
        let answer = try PlainHTTP.get(path, port: port)
        return answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }
}
