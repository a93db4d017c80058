import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketTestSupport

/// `thicketd` as others see it: WebSocket libraries that share nothing with ours, and a machine short of descriptors.
@Suite("thicketd and programs of others", .blocking)
struct ForeignClientTests {
    private static let python: String = "/usr/bin/python3"
    private let folder: TemporaryFolder = .init("foreign")

    private static func has(_ module: String) -> Bool {
        (try? ChildProcess.run([python, "-c", "import \(module)"]))?.code == 0
    }

    /// - Parameter isSecure: over TLS.
    private func sync(through library: String, isSecure: Bool = false) throws {
        let script: String =
            "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/InteropTests/sync_with.py"
        let token: String = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let files: (certificate: String, key: String) = SecureEdge.files
        let server: Daemon = try .init(
            folder: folder.path, isSecure ? ["--tls-cert", files.certificate, "--tls-key", files.key] : [])
        let outcome: ChildProcess.Outcome = try ChildProcess.run(
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
        "the same over TLS, whose certificate they check",
        .enabled(if: Self.has("websockets"), "the module websockets is missing: apt install python3-websockets"),
        .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
    func secureWebsockets() throws { try sync(through: "websockets", isSecure: true) }

    @Test(
        "two clients made with python3-wsproto sync",
        .enabled(if: Self.has("wsproto"), "the module wsproto is missing: apt install python3-wsproto"))
    func wsproto() throws { try sync(through: "wsproto") }

    @Test("short of file descriptors it answers 503, loses nobody it has, and serves again when some are free")
    func descriptors() throws {
        let token: String = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let server: ChildProcess = try .init([
            "/bin/sh", "-c", "ulimit -n 160; exec \"$0\" \"$@\"", Programs.thicketd, "serve", "--listen",
            "127.0.0.1:0", "--data", folder.path, "--drain-timeout", "0s",
        ])
        let port: UInt16 = try #require(try server.firstLine().split(separator: ":").last.flatMap { UInt16($0) })
        let first: WireSocket = try .init(port: port, app: "notes")
        do {
            var others: [WireSocket] = []
            let refusal: ProcessError? = #expect(throws: ProcessError.self) {
                for _: Int in 0..<200 { others.append(try WireSocket(port: port, app: "notes")) }
            }
            #expect(refusal?.description.contains("503") ?? false, "\(refusal?.description ?? "nothing was refused")")
            #expect(others.count > 20)
            // Who is in is served while others are turned away; opening a bucket reads the database.
            try first.open("note", app: "notes", token: token, clientID: "test")
        }
        let later: WireSocket? = Steady.waitFor { try? WireSocket(port: port, app: "notes") }
        try #require(later).open("note", app: "notes", token: token, clientID: "test")
        server.signal(SIGTERM)
        #expect(try server.finish().code == 0)
    }
}
