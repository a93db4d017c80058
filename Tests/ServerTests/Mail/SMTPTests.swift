import Glibc
import Synchronization
import Testing
import ThicketBlocking
import ThicketAuth
@testable import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

@testable import ThicketServer

/// A mail server of the system's Python (`Tests/InteropTests/smtp_server.py`).
final class MailServer {
    let process: ChildProcess
    let port: Int

    init(_ words: [String] = []) throws {
        process = try ChildProcess([SystemPython.path, SystemPython.script("smtp_server.py")] + words)
        let line: String = try process.firstLine()
        port = try #require(Int(line.split(separator: ":").last ?? ""), "\(line)")
    }

    /// The messages that it has accepted, one object each.
    func taken() throws -> [JSONObject] {
        // Not SIGTERM: threads of this process block it for the servers, and child processes inherit that.
        process.signal(SIGKILL)
        return try process.finish().output.split(separator: "\n").dropFirst().map { line in
            try #require(try JSONValue(parsing: Array(line.utf8)).objectValue)
        }
    }
}

/// A certificate for `localhost`, and its key.
struct TestCertificate {
    let (certificate, key): (String, String)

    init(_ folder: String) throws {
        (certificate, key) = (folder + "/cert.pem", folder + "/key.pem")
        let made: ChildProcess.Outcome = try ChildProcess.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
            certificate,
        ])
        try #require(made.code == 0, "\(made.errors)")
    }

    var words: [String] { ["--cert", certificate, "--key", key] }
}

@Suite(
    "SMTP delivery", .blocking,
    .enabled(if: access(SystemPython.path, X_OK) == 0, "no python3"))
struct SMTPTests {
    private let folder = TemporaryFolder("smtp")

    private func config(_ url: String, _ change: (inout ServerConfig) -> Void = { _ in }) -> ServerConfig {
        var config = ServerConfig()
        (config.smtpURL, config.mailFrom, config.smtpStartTLS) = (url, "thicket@example.com", false)
        change(&config)
        return config
    }

    private func sender(_ config: ServerConfig) throws -> SMTPSender {
        SMTPSender(try #require(try SMTPSettings(config))) { false }
    }

    private func message(_ to: String, _ text: String = "one\r\n.two\r\n") throws -> (MailAddress, [UInt8]) {
        (
            try #require(MailAddress(to)),
            Array("From: thicket@example.com\r\nTo: \(to)\r\nSubject: s\r\n\r\n\(text)".utf8)
        )
    }

    private func login(_ text: String, mode: mode_t = 0o600) throws -> String {
        let path: String = folder.path + "/login"
        let file: Int32 = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(file >= 0 && write(file, Array(text.utf8), text.utf8.count) == text.utf8.count)
        close(file)
        chmod(path, mode)
        return path
    }

    @Test(
        "an accepted message arrives unchanged, dots included; refused, deferred and interrupted are told apart")
    func plain() throws {
        let server = try MailServer()
        let sender: SMTPSender = try sender(config("smtp://127.0.0.1:\(server.port)"))
        let results: [(String, MailCourier.Result)] = [
            ("ann@example.com", .taken), ("refuse@example.com", .refused), ("later@example.com", .deferred),
            ("later@example.com", .taken), ("bad@example.com", .refused), ("drop@example.com", .unreachable),
            ("drop@example.com", .taken), ("bob@example.com", .taken),
        ]
        for (to, expected) in results {
            let (address, bytes): (MailAddress, [UInt8]) = try message(to)
            let outcome: SMTPSender.Outcome = sender.send(bytes, to: address)
            #expect(outcome.result == expected, "\(to): \(outcome.reason)")
            #expect(!outcome.reason.contains("@"), "no address is in the log")
        }
        let taken: [JSONObject] = try server.taken()
        #expect(taken.map { $0["to"]?.stringValue } == results.filter { $0.1 == .taken }.map(\.0))
        #expect(taken[0]["text"]?.stringValue?.hasSuffix("\r\n\r\none\r\n.two\r\n") == true)
        #expect(taken[0]["from"]?.stringValue?.hasPrefix("FROM:<thicket@example.com>") == true)
    }

    @Test("with required STARTTLS and a known authority, credentials go over TLS only; otherwise nothing is sent")
    func startTLS() throws {
        let made = try TestCertificate(folder.path)
        let server = try MailServer(["--starttls", "--login", "thicket:a b:c"] + made.words)
        let login: String = try login("thicket\na b:c\n")
        let (to, bytes): (MailAddress, [UInt8]) = try message("ann@example.com")
        let good: ServerConfig = config("smtp://localhost:\(server.port)") {
            ($0.smtpStartTLS, $0.smtpLoginFile, $0.smtpCA) = (true, login, made.certificate)
        }
        let sent: SMTPSender.Outcome = try sender(good).send(bytes, to: to)
        #expect(sent.result == .taken, "\(sent.reason)")
        let outsider: SMTPSender.Outcome = try sender(config(good.smtpURL) { $0.smtpStartTLS = true }).send(
            bytes, to: to)
        #expect(outsider.result == .unreachable && outsider.reason.contains("smtp-ca"), "\(outsider.reason)")
        let byNumber: SMTPSender.Outcome = try sender(
            config("smtp://127.0.0.1:\(server.port)") { ($0.smtpStartTLS, $0.smtpCA) = (true, made.certificate) }
        ).send(bytes, to: to)
        #expect(byNumber.result == .unreachable, "the certificate is for another name")
        _ = try self.login("thicket\nwrong\n")
        let wrong: SMTPSender.Outcome = try sender(good).send(bytes, to: to)
        #expect(wrong.result == .unreachable && wrong.reason.contains("smtp-login-file"), "\(wrong.reason)")
        let taken: [JSONObject] = try server.taken()
        #expect(taken.count == 1)
        #expect(taken.first?["tls"]?.boolValue == true && taken.first?["user"]?.stringValue == "thicket")
    }

    @Test(
        "with STARTTLS required, a server without it gets no message; a server with implicit TLS is reached")
    func transport() throws {
        let (to, bytes): (MailAddress, [UInt8]) = try message("ann@example.com")
        let plain = try MailServer()
        let refused: SMTPSender.Outcome = try sender(
            config("smtp://127.0.0.1:\(plain.port)") { $0.smtpStartTLS = true }
        ).send(bytes, to: to)
        #expect(refused.result == .unreachable && refused.reason.contains("STARTTLS"), "\(refused.reason)")
        #expect(try plain.taken().isEmpty)
        let made = try TestCertificate(folder.path)
        let implicit = try MailServer(["--smtps"] + made.words)
        let sent: SMTPSender.Outcome = try sender(
            config("smtps://localhost:\(implicit.port)") { $0.smtpCA = made.certificate }
        ).send(bytes, to: to)
        #expect(sent.result == .taken, "\(sent.reason)")
        let nobody: SMTPSender.Outcome = try sender(config("smtp://127.0.0.1:1")).send(bytes, to: to)
        #expect(nobody.result == .unreachable && nobody.reason.contains("smtp-url"), "\(nobody.reason)")
    }

    @Test(
        "unusable settings are refused before the start, and no password is shown",
        arguments: [
            ("smtp://mail.example.com", "smtp-url"), ("mail.example.com:25", "smtp-url"),
            ("smtp://mail.example.com:0", "smtp-url"), ("smtp://mail.example.com:587/x", "smtp-url"),
            ("smtp://ann:secret@mail.example.com:587", "smtp-login-file"), ("http://mail.example.com:80", "smtp-url"),
            ("smtp://[::g]:25", "smtp-url"), ("smtp://:25", "smtp-url"),
        ])
    func badURL(url: String, word: String) throws {
        let problem: SMTPSettings.Problem = try #require(throws: SMTPSettings.Problem.self) {
            _ = try SMTPSettings(config(url))
        }
        #expect(problem.description.contains(word), "\(problem)")
        #expect(!problem.description.contains("secret"))
    }

    @Test("a login needs TLS and a two-line file for its owner only; the sender is a plain address")
    func badLogin() throws {
        let url = "smtp://localhost:25"
        let problem: (ServerConfig) throws -> String = { config in
            let found: SMTPSettings.Problem = try #require(throws: SMTPSettings.Problem.self) {
                _ = try SMTPSettings(config)
            }
            return found.description
        }
        let path: String = try login("thicket\nsecret\n")
        #expect(try problem(config(url) { $0.smtpLoginFile = path }).contains("unencrypted"))
        #expect(try SMTPSettings(config(url) { ($0.smtpLoginFile, $0.smtpStartTLS) = (path, true) }) != nil)
        _ = try login("thicket\nsecret\n", mode: 0o644)
        let with: ServerConfig = config(url) { ($0.smtpLoginFile, $0.smtpStartTLS) = (path, true) }
        #expect(try problem(with).contains("chmod 600"))
        for text: String in ["thicket", "a\nb\nc\n", "\n\n", "thicket\n\u{0}\n"] {
            _ = try login(text)
            #expect(try problem(with).contains("two lines"))
        }
        #expect(
            try problem(config(url) { $0.mailFrom = "Thicket <t@example.com>\r\nBcc: eve@x" }).contains("mail-from"))
        #expect(try problem(config(url) { $0.smtpCA = "/nowhere/ca.pem" }).contains("smtp-ca"))
        #expect(try SMTPSettings(ServerConfig()) == nil)
    }

    // MARK: Delivery thread

    private func spool() -> MailSpool { MailSpool(folder: folder.path + "/outbox", from: "thicket@example.com") }

    private func put(_ spool: MailSpool, _ to: String, at now: Double = 1) throws {
        try spool.put(Mail(to: try #require(MailAddress(to)), subject: "Your code", text: "12345678\n"), now: now)
    }

    private func waitFor(_ what: String, _ isTrue: () throws -> Bool) throws {
        let end: Int64 = SystemClock.monotonic() + 120_000_000_000
        while try !isTrue() {
            try #require(SystemClock.monotonic() < end, "it never came to: \(what)")
            poll(nil, 0, 2)
        }
    }

    @Test("accepted messages leave the folder, refused ones are set aside, and deferred ones wait for their time")
    func thread() throws {
        let server = try MailServer()
        let spool: MailSpool = spool()
        for (place, name): (Int, String) in ["drop", "ann", "refuse", "later", "bob"].enumerated() {
            try put(spool, "\(name)@example.com", at: Double(place + 1))
        }
        let clock = SteppedClock()
        let metrics = Metrics()
        let mail = ServerMail(
            try #require(try SMTPSettings(config("smtp://127.0.0.1:\(server.port)"))), spool: spool, metrics: metrics,
            log: .silent, now: { clock.now })
        defer { mail.finish() }
        try waitFor("the break") { metrics.mailDeliveries.value(.unreachable) == 1 }
        #expect(try spool.names().count == 5, "no message leaves before it was accepted")
        clock.step(5_000)
        mail.wake()
        try waitFor("all but one") { try spool.names().count == 1 }
        #expect(try spool.entries().filter { $0.hasSuffix(MailSpool.asideEnding) }.count == 1)
        clock.step(60_000)
        mail.wake()
        try waitFor("the last") { try spool.names().isEmpty }
        try waitFor("the gauge") { metrics.mailsWaiting.value == 0 }
        #expect(metrics.mailDeliveries.value(.taken) == 4)
        #expect(metrics.mailDeliveries.value(.refused) == 1 && metrics.mailDeliveries.value(.deferred) == 1)
        let names: [String] = try server.taken().compactMap { $0["to"]?.stringValue }
        #expect(names == ["drop", "ann", "bob", "later"].map { $0 + "@example.com" })
    }

    @Test("a stalled mail server does not delay the shutdown: the message stays for the next start")
    func stalled() throws {
        let server = try MailServer()
        let spool: MailSpool = spool()
        try put(spool, "stall@example.com")
        try FileWriter.write("x", to: folder.path + "/outbox/.partial")
        let metrics = Metrics()
        let settings: SMTPSettings = try #require(try SMTPSettings(config("smtp://127.0.0.1:\(server.port)")))
        let mail = ServerMail(settings, spool: spool, metrics: metrics, log: .silent, now: { 2_000 })
        try waitFor("the message") { metrics.mailsWaiting.value == 1 }
        let before: Int64 = SystemClock.monotonic()
        mail.finish()
        #expect(SystemClock.monotonic() - before < 15_000_000_000, "not the 60 s of a message")
        #expect(try spool.entries().count == 1, "the partial file is gone, the message is kept")
        #expect(metrics.mailDeliveries.value(.unreachable) == 0)
    }

    @Test("a file that the spool did not write is set aside and not sent")
    func foreign() throws {
        let server = try MailServer()
        let spool: MailSpool = spool()
        try put(spool, "ann@example.com", at: 9)
        for (name, text): (String, String) in [
            ("1-a.eml", "To: ann@example.com, eve@example.com\r\n\r\n"), ("2-b.eml", "no head"),
            ("3-c.eml", "Subject: s\r\n\r\nTo: eve@example.com\r\n"), ("4-d.eml", "To: <eve@example.com>\r\n\r\n"),
        ] { try FileWriter.write(text, to: folder.path + "/outbox/" + name) }
        let metrics = Metrics()
        let settings: SMTPSettings = try #require(try SMTPSettings(config("smtp://127.0.0.1:\(server.port)")))
        let mail = ServerMail(settings, spool: spool, metrics: metrics, log: .silent, now: { 10_000 })
        defer { mail.finish() }
        try waitFor("an empty folder") { try spool.names().isEmpty }
        #expect(metrics.mailDeliveries.value(.unreadable) == 4)
        #expect(try server.taken().count == 1)
    }
}

/// A clock that moves when the test says so.
private final class SteppedClock: Sendable {
    private let milliseconds = Atomic<Int64>(10_000)
    var now: Int64 { milliseconds.load(ordering: .relaxed) }
    func step(_ count: Int64) { milliseconds.wrappingAdd(count, ordering: .relaxed) }
}

private enum FileWriter {
    static func write(_ text: String, to path: String) throws {
        let file: Int32 = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(file >= 0 && Glibc.write(file, Array(text.utf8), text.utf8.count) == text.utf8.count)
        close(file)
    }
}
