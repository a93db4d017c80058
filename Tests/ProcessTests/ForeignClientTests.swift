import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketTestSupport

/// `thicketd` with WebSocket libraries that share nothing with ours, and with too few file descriptors.
@Suite("thicketd and foreign programs", .blocking)
struct ForeignClientTests {
    private static let python = "/usr/bin/python3"
    private let folder = TemporaryFolder("foreign")

    private static func has(_ module: String) -> Bool {
        (try? ChildProcess.run([python, "-c", "import \(module)"]))?.code == 0
    }

    /// - Parameter isSecure: over TLS.
    private func sync(through library: String, isSecure: Bool = false) throws {
        let script =
            "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/InteropTests/sync_with.py"
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let files = SecureEdge.files
        let server = try Daemon(
            folder: folder.path, isSecure ? ["--tls-cert", files.certificate, "--tls-key", files.key] : [])
        let outcome = try ChildProcess.run(
            [Self.python, script, library, String(server.port), token, "ann@example.com"]
                + (isSecure ? [files.certificate] : []))
        #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
        print(outcome.output, terminator: "")
        #expect(try server.terminate().code == 0)
    }

    @Test(
        "two clients made with python3-websockets sync",
        .enabled(if: Self.has("websockets"), "the module websockets is missing: apt install python3-websockets"))
    func websockets() throws {
        try sync(through: "websockets")
    }

    @Test(
        "two clients made with python3-websockets sync over TLS and check the certificate",
        .enabled(if: Self.has("websockets"), "the module websockets is missing: apt install python3-websockets"),
        .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
    func secureWebsockets() throws { try sync(through: "websockets", isSecure: true) }

    @Test(
        "two clients made with python3-wsproto sync",
        .enabled(if: Self.has("wsproto"), "the module wsproto is missing: apt install python3-wsproto"))
    func wsproto() throws { try sync(through: "wsproto") }

    @Test("without free file descriptors the server answers 503, keeps its connections, and later serves again")
    func descriptors() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let server = try ChildProcess([
            "/bin/sh", "-c", "ulimit -n 160; exec \"$0\" \"$@\"", Programs.thicketd, "serve", "--listen",
            "127.0.0.1:0", "--data", folder.path, "--drain-timeout", "0s",
        ])
        let port = try #require(try server.firstLine().split(separator: ":").last.flatMap { UInt16($0) })
        let first = try WireSocket(port: port, app: "notes")
        do {
            var others = [WireSocket]()
            let refusal = #expect(throws: ProcessError.self) {
                for _ in 0..<200 { others.append(try WireSocket(port: port, app: "notes")) }
            }
            #expect(refusal?.description.contains("503") ?? false, "\(refusal?.description ?? "nothing was refused")")
            #expect(others.count > 20)
            // An open connection is served while others are refused; opening a bucket reads the database.
            try first.open("note", app: "notes", token: token, clientID: "test")
        }
        let later = Steady.waitFor { try? WireSocket(port: port, app: "notes") }
        try #require(later).open("note", app: "notes", token: token, clientID: "test")
        server.signal(SIGTERM)
        #expect(try server.finish().code == 0)
    }
}
