import Glibc
import Testing
import ThicketClient
import ThicketNet
import ThicketProcesses
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A server in this process, and the parts between it and a client: proxies of another implementation, certificates.
final class TransportBench {
    let server: TestServer
    let folder = ThicketProcesses.TemporaryFolder("transport")

    init() throws { server = try TestServer(store: MemoryStore.forTests()) }

    /// A session with the server at `address`, its bucket `notes` opened.
    func session(
        _ address: String, certificates: String? = nil, proxy: String? = nil
    ) async throws -> (session: Session, notes: Bucket) {
        var options = SessionOptions()
        options.certificateFile = certificates
        options.proxy = proxy
        let session = try await Thicket.connect(
            server: address, app: "app", token: "ann-token", options: options)
        return (session, try await session.bucket("notes"))
    }

    /// The reason why a session cannot connect, as shown to a person.
    static func reason(_ session: Session) async throws -> String {
        for await status in await session.status {
            switch status {
            case .offline(.unreachable(let text)), .offline(.untrusted(let text)): return text
            case .connecting: continue
            default: throw TransportFailure("it is connected: \(status)")
            }
        }
        throw TransportFailure("the session ended")
    }

    /// Writes an object through the session and reads it through a plain one.
    func roundTrip(_ session: Session, _ notes: Bucket) async throws {
        // Larger than one TLS record and than a socket accepts at once.
        let long = String(repeating: "0123456789é", count: 60_000)
        try await notes.set("long", to: ["t": .string(long)])
        try await notes.waitUntilSynced(timeout: .seconds(300))
        let (plain, copy) = try await self.session("http://127.0.0.1:\(server.port)")
        try await copy.waitUntilSynced(timeout: .seconds(300))
        #expect(try await copy.get("long")?["t"]?.stringValue?.utf8.elementsEqual(long.utf8) == true)
        var events = await notes.changes.makeAsyncIterator()
        try await copy.set("back", to: ["t": .string(long)])
        guard case .changed(let change)? = await events.next() else {
            throw TransportFailure("nothing came back")
        }
        #expect(change.key == "back")
        #expect(try await notes.get("back")?["t"]?.stringValue?.utf8.elementsEqual(long.utf8) == true)
        await plain.close()
    }

    // MARK: Proxies

    private static let python = "/usr/bin/python3"
    private static let script =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        + "/InteropTests/proxies.py"

    /// A proxy and the port that it listens on.
    static func proxy(_ words: [String]) throws -> (process: ChildProcess, port: Int) {
        let process = try ChildProcess([python, script] + words)
        let line = try process.firstLine()
        guard let port = Int(line) else { throw TransportFailure("'\(line)' is no port") }
        return (process, port)
    }

    // MARK: Certificates

    static var hasOpenSSL: Bool { access("/usr/bin/openssl", X_OK) == 0 }

    /// A certificate authority of our own: the file that clients trust.
    func authority(_ name: String) throws -> String {
        try openSSL([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2",
            "-keyout", file("\(name).key"), "-out", file("\(name).pem"), "-subj",
            "/CN=Thicket test \(name)",
        ])
        return file("\(name).pem")
    }

    /// A TLS proxy before the server, with a certificate for `subject` (such as `IP:127.0.0.1`) by that authority.
    func secured(by authority: String, for subject: String) throws -> (
        process: ChildProcess, port: Int
    ) {
        let files = try certificate(by: authority, for: subject)
        return try Self.proxy(["tls", files.certificate, files.key, String(server.port)])
    }

    /// A certificate for `subject` by that authority.
    /// - Parameter days: days of validity; below 0: expired.
    func certificate(by authority: String, for subject: String, days: Int = 2) throws -> TLSFiles {
        let name = "\(subject.filter { $0.isLetter || $0.isNumber })\(days)"
        try openSSL([
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
            file("\(name).key"), "-out", file("\(name).csr"), "-subj", "/CN=thicket",
            "-addext", "subjectAltName=\(subject)",
        ])
        try openSSL([
            "x509", "-req", "-in", file("\(name).csr"), "-CA", file("\(authority).pem"), "-CAkey",
            file("\(authority).key"), "-set_serial", "\(name.count)", "-days", "\(days)", "-copy_extensions",
            "copy", "-out",
            file("\(name).pem"),
        ])
        return TLSFiles(certificate: file("\(name).pem"), key: file("\(name).key"))
    }

    /// The pin of a certificate's key, as an operator computes it.
    func pin(_ files: TLSFiles) throws -> String {
        let outcome = try ChildProcess.run([
            "/bin/sh", "-c",
            "openssl x509 -in '\(files.certificate)' -pubkey -noout | openssl pkey -pubin -outform der"
                + " | openssl dgst -sha256 -binary | openssl base64",
        ])
        return "sha256//" + outcome.output.filter { !$0.isWhitespace }
    }

    private func file(_ name: String) -> String { folder.path + "/" + name }

    private func openSSL(_ words: [String]) throws {
        let outcome = try ChildProcess.run(["/usr/bin/openssl"] + words)
        guard outcome.code == 0 else {
            throw TransportFailure("openssl \(words[0]): \(outcome.errors)")
        }
    }
}

struct TransportFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
