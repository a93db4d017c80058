import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Codes for forgotten passwords, from the request to the mail server, with a server that is killed in between.
@Suite("Mail of a server", .blocking)
struct MailTests {
    private static let python = "/usr/bin/python3"
    private static let script =
        "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/InteropTests/smtp_server.py"
    private let folder = TemporaryFolder("mail")

    @Test(
        "a requested code survives SIGKILL on disk, is delivered by the next server, and resets the password",
        .enabled(if: access(python, X_OK) == 0, "no python3"))
    func killed() throws {
        let created = try Daemon.command(
            folder.path, ["app", "create", "notes"], succeeding: true)
        let words: [Substring] = created.output.split { " \n".contains($0) }
        let key = ["X-Simperium-API-Key: \(try #require(words.dropLast(3).last))"]
        // A port on which no server listens any more.
        var mail = try ChildProcess([Self.python, Self.script])
        let port: Substring = try #require(try mail.firstLine().split(separator: ":").last)
        mail.signal(SIGKILL)
        _ = try mail.finish()
        let options = [
            "--smtp-url", "smtp://127.0.0.1:\(port)", "--smtp-starttls", "off", "--mail-from", "thicket@example.com",
        ]
        let first = try Daemon(folder: folder.path, options)
        let user = #"{"username":"ann@example.com","password":"open sesame"}"#
        #expect(try PlainHTTP.post(first.port, "/1/notes/create/", user, fields: key).hasPrefix("HTTP/1.1 200"))
        #expect(try PlainHTTP.post(first.port, "/1/notes/forgot/", user, fields: key).hasPrefix("HTTP/1.1 200"))
        try first.process.wait(for: "event=mail.not_sent")
        try first.kill()
        mail = try .init([Self.python, Self.script, "--port", String(port)])
        _ = try mail.firstLine()
        let second = try Daemon(folder: folder.path, options)
        try mail.wait(for: "ann@example.com")
        mail.signal(SIGKILL)
        let text = try mail.finish().output
        let code: Substring = try #require(text.split(separator: "in notes: ").last?.prefix { $0.isNumber })
        #expect(code.utf8.count == 8)
        let reset = #"{"username":"ann@example.com","code":"\#(code)","new_password":"another word"}"#
        let answer = try PlainHTTP.post(second.port, "/1/notes/verify/", reset, fields: key)
        #expect(answer.hasSuffix(#"{"status":"success"}"#), "\(answer)")
        let end = try second.terminate()
        #expect(end.code == 0)
        #expect(!end.errors.contains("ann@example.com") && !end.errors.contains(code))
    }

    @Test("invalid mail settings end the start with 2 and what to do, and no password is shown")
    func settings() throws {
        let bad = try Daemon.command(
            folder.path, ["serve", "--listen", "127.0.0.1:0", "--smtp-url", "smtp://ann:secret@mail.example.com:587"])
        #expect(bad.code == 2 && bad.errors.contains("smtp-login-file") && !bad.errors.contains("secret"))
    }
}
