import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketTestSupport

/// `thicketd` with TLS, as an operator uses it.
@Suite(
    "thicketd and TLS", .blocking,
    .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct TLSTests {
    private static let curl = "/usr/bin/curl"
    private let folder = TemporaryFolder("tls")
    private var certificate: String { folder.path + "/certificate.pem" }
    private var key: String { folder.path + "/key.pem" }

    private func ask(_ port: UInt16, _ words: [String] = []) throws -> ChildProcess.Outcome {
        try ChildProcess.run(
            [Self.curl, "-s", "-S", "-i", "--cacert", certificate] + words + ["https://localhost:\(port)/health/ready"])
    }

    @Test(
        "curl and 'health' get their answers; SIGHUP loads a new certificate, and keeps the old one if it is bad",
        .enabled(if: access("/usr/bin/curl", X_OK) == 0, "the command curl is missing: apt install curl"))
    func lifecycle() throws {
        SecureEdge.make(certificate: certificate, key: key)
        let flags = ["--tls-cert", certificate, "--tls-key", key]
        let server = try Daemon(folder: folder.path, flags + ["--hsts", "30d"])
        try server.process.wait(for: " subject=\"/CN=localhost\"")
        let first = try ask(server.port)
        #expect(first.output.hasPrefix("HTTP/1.1 200"), "\(first.errors)")
        #expect(first.output.contains("strict-transport-security: max-age=2592000\r\n"))
        let listen = ["health", "--listen", "127.0.0.1:\(server.port)"]
        #expect(try Daemon.command(folder.path, listen + flags).output.hasPrefix("ready"))
        // Without the flags the command reports the reason.
        let lost = try Daemon.command(folder.path, listen)
        #expect(lost.code == 1 && lost.output.contains("https://"), "\(lost.output)\(lost.errors)")

        SecureEdge.make(certificate: certificate, key: key)
        #expect(try ask(server.port).code == 60, "the new certificate was in force before SIGHUP")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=tls.certificate_ends_soon ", times: 2)
        #expect(try ask(server.port, ["--tlsv1.2", "--tls-max", "1.2"]).output.hasPrefix("HTTP/1.1 200"))
        rename(key, key + ".gone")
        server.process.signal(SIGHUP)
        try server.process.wait(for: "event=tls.reload_failed error=\"\(key): cannot be read: No such file")
        #expect(try ask(server.port).output.hasPrefix("HTTP/1.1 200"))
        #expect(try server.terminate().code == 0)
    }

    @Test(
        "a key that other users may read is accepted, since containers mount them so, with a warning"
    )
    func exposedKey() throws {
        SecureEdge.make(certificate: certificate, key: key)
        let flags = ["--tls-cert", certificate, "--tls-key", key]
        for (mode, isExposed): (UInt32, Bool) in [
            (0o600, false), (0o400, false), (0o640, false), (0o644, true), (0o444, true), (0o660, true), (0o604, true),
        ] {
            chmod(key, mode)
            let shown = try Daemon.command(folder.path, ["config"] + flags)
            #expect(
                shown.code == 0 && shown.errors.contains("is accessible to other system users") == isExposed,
                "\(shown.errors)")
            #expect(!isExposed || shown.errors.contains("(mode 0\(String(mode, radix: 8)))"), "\(shown.errors)")
        }
        chmod(key, 0o600)
        let server = try Daemon(folder: folder.path, flags)
        chmod(key, 0o444)
        server.process.signal(SIGHUP)
        try server.process.wait(
            for: "level=warning event=tls.key_exposed advice=\"\(key) is accessible to other system users")
        let outcome = try server.terminate()
        #expect(outcome.code == 0 && outcome.errors.ranges(of: "tls.key_exposed").count == 1, "not at the start")
    }

    @Test("a start with unusable files reports which, why, and what to do, and ends with 1")
    func badStart() throws {
        SecureEdge.make(certificate: certificate, key: key)
        SecureEdge.make(certificate: folder.path + "/other.pem", key: folder.path + "/other.key")
        for (words, said) in [
            (["--tls-cert", certificate], "one of the two is not set"),
            (["--tls-cert", "/nowhere.pem", "--tls-key", key], "/nowhere.pem: cannot be read: No such file"),
            (
                ["--tls-cert", certificate, "--tls-key", folder.path + "/other.key"],
                "does not belong to \(certificate)"
            ),
            (["--tls-cert", certificate, "--tls-key", certificate], "no usable private key"),
        ] {
            let outcome = try Daemon.command(
                folder.path, ["serve", "--listen", "127.0.0.1:0"] + words)
            #expect(outcome.code == 1 && outcome.errors.contains(said), "\(outcome.errors)")
            #expect(!outcome.errors.contains("--listen chooses"), "\(outcome.errors)")
        }
    }
}
