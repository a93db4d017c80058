import Testing
import ThicketNet
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

@testable import ThicketClient

/// The servers that a client trusts, and its errors for others: against the server's own TLS.
@Suite(
    "Trusted servers, and others", .timeLimit(.minutes(15)),
    .enabled(if: TransportBench.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct TrustTests {
    private static func secure(_ files: TLSFiles) throws -> TestServer {
        try TestServer(store: MemoryStore.forTests()) {
            ($0.tlsCertificate, $0.tlsKey) = (files.certificate, files.key)
        }
    }

    /// The errors of a session and of a plain request.
    private static func refusals(
        _ address: String, _ options: SessionOptions
    ) async throws -> (status: OfflineReason, error: ClientError) {
        let session = try await Thicket.connect(
            server: address, app: "app", token: "ann-token", options: options)
        var reason: OfflineReason?
        for await status in await session.status {
            if case .offline(let found) = status {
                reason = found
                break
            }
            guard case .connecting = status else { throw TransportFailure("it is connected: \(status)") }
        }
        await session.close()
        let http = try HTTPClient(options: options.transportOptions)
        do throws(ClientError) {
            _ = try await http.request(address + "/health/live", timeoutSeconds: 20)
            throw ClientError(.limit, "it was answered")
        } catch {
            return (try #require(reason), error)
        }
    }

    private static func expect(
        _ address: String, _ options: SessionOptions, says advice: ServerTrust,
        at place: SourceLocation = #_sourceLocation
    ) async throws {
        let (status, error) = try await refusals(address, options)
        #expect(error.code == .untrusted, "\(error)", sourceLocation: place)
        #expect(error.detail.hasPrefix(advice.advice), "\(error)", sourceLocation: place)
        guard case .untrusted(let text) = status else {
            Issue.record("\(status)", sourceLocation: place)
            return
        }
        #expect(text.hasPrefix(advice.advice), "\(text)", sourceLocation: place)
    }

    @Test("a client syncs with the server's own TLS, by its authority and by its pin")
    func believed() async throws {
        let bench = try TransportBench()
        var options = SessionOptions()
        options.certificateFile = try bench.authority("ours")
        let files = try bench.certificate(by: "ours", for: "IP:127.0.0.1")
        options.pinnedKeys = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=;" + (try bench.pin(files))
        let server = try Self.secure(files)
        let address = "https://127.0.0.1:\(server.port)"
        let session = try await Thicket.connect(
            server: address, app: "app", token: "ann-token", options: options)
        let notes = try await session.bucket("notes")
        let long = String(repeating: "0123456789é", count: 20_000)
        try await notes.set("long", to: ["t": .string(long)])
        try await notes.waitUntilSynced(timeout: .seconds(120))
        let other = try await Thicket.connect(
            server: "wss://127.0.0.1:\(server.port)", app: "app", token: "ann-token", options: options)
        let copy = try await other.bucket("notes")
        try await copy.waitUntilSynced(timeout: .seconds(120))
        #expect(try await copy.get("long") == ["t": .string(long)])
        let http = try HTTPClient(options: options.transportOptions)
        #expect(try await http.request(address + "/health/live").status == 200)
        await session.close()
        await other.close()
        server.stop()
        bench.server.abort()
    }

    @Test("each way in which a server may be another one has its own message, and nothing is sent to it")
    func refused() async throws {
        let bench = try TransportBench()
        var options = SessionOptions()
        options.certificateFile = try bench.authority("ours")
        _ = try bench.authority("theirs")
        func serve(_ authority: String, _ subject: String, days: Int = 2) throws -> (TestServer, String) {
            let server = try Self.secure(try bench.certificate(by: authority, for: subject, days: days))
            return (server, "https://127.0.0.1:\(server.port)")
        }
        let (outsider, strange) = try serve("theirs", "IP:127.0.0.1")
        try await Self.expect(strange, options, says: .unknownAuthority)
        let (renamed, elsewhere) = try serve("ours", "DNS:other.example")
        try await Self.expect(elsewhere, options, says: .wrongHost)
        let (expired, old) = try serve("ours", "IP:127.0.0.1", days: -1)
        try await Self.expect(old, options, says: .expired)
        let (good, fine) = try serve("ours", "IP:127.0.0.1")
        var pinned = options
        pinned.pinnedKeys = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        try await Self.expect(fine, pinned, says: .wrongPin)
        var lost = options
        lost.certificateFile = "/nowhere/ca.pem"
        try await Self.expect(fine, lost, says: .certificateFile)
        for server in [outsider, renamed, expired, good] {
            #expect(server.metrics.net.receivedBytes.value == 0)
            server.stop()
        }
        // Plain HTTP where TLS is expected.
        try await Self.expect("https://127.0.0.1:\(bench.server.port)", options, says: .noCommonTLS)
        bench.server.abort()
    }

    @Test("a server with nothing newer than TLS 1.1 is refused")
    func oldServer() async throws {
        let bench = try TransportBench()
        var options = SessionOptions()
        options.certificateFile = try bench.authority("ours")
        let files = try bench.certificate(by: "ours", for: "IP:127.0.0.1")
        let server = try ChildProcess([
            "/usr/bin/openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", files.certificate, "-key", files.key,
            "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0", "-no_dhe", "-www",
        ])
        let port = try #require(try server.firstLine().split(separator: ":").last.flatMap { Int($0) })
        try await Self.expect("https://127.0.0.1:\(port)", options, says: .noCommonTLS)
        bench.server.abort()
    }

    @Test("a redirect is not followed, and nothing reaches its target")
    func redirects() async throws {
        let bench = try TransportBench()
        var options = SessionOptions()
        options.certificateFile = try bench.authority("ours")
        let files = try bench.certificate(by: "ours", for: "IP:127.0.0.1")
        let elsewhere = "http://127.0.0.1:\(bench.server.port)/health/live"
        let loop = try RedirectServer(files, to: elsewhere)
        let address = "https://127.0.0.1:\(loop.port)"
        let http = try HTTPClient(options: options.transportOptions)
        #expect(try await http.request(address + "/health/live").status == 302)
        let session = try await Thicket.connect(
            server: address, app: "app", token: "ann-token", options: options)
        let reason = try await TransportBench.reason(session)
        #expect(reason.contains("redirects are not followed"), "\(reason)")
        await session.close()
        #expect(bench.server.metrics.net.receivedBytes.value == 0)
        loop.stop()
        bench.server.abort()
    }

    @Test("an invalid pin is refused before any connection")
    func badPins() async throws {
        for pins in [
            "", "sha256//", "sha256//abc=", "AAAA", "sha1//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=;", "/etc/passwd",
        ] {
            var options = SessionOptions()
            options.pinnedKeys = pins
            options.startsOnline = false
            await #expect(throws: ClientError.self, "\(pins)") {
                _ = try await Thicket.connect(server: "https://127.0.0.1:1", app: "app", token: "t", options: options)
            }
        }
    }
}

/// A server over TLS that redirects every request.
private final class RedirectServer: Sendable {
    let port: Int
    private let handle: LoopHandle
    private let thread: OwnThread

    private final class Delegate: LoopDelegate {
        let target: String
        init(_ target: String) { self.target = target }
        func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
            .respond(HTTPResponse(status: 302, fields: [.init("location", target)]))
        }
        func opened(_ connection: ConnectionID, _ request: HTTPRequest) {}
        func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {}
        func closed(_ connection: ConnectionID, _ end: ConnectionEnd) {}
    }

    init(_ files: TLSFiles, to target: String) throws {
        let started = BlockingQueue<(Int, LoopHandle)?>(bound: 1)
        thread = OwnThread("redirects", stackBytes: 1 << 20) {
            guard let loop: EventLoop = try? .init(), let context: TLSContext = try? .init(files) else {
                started.add(nil)
                return
            }
            loop.use(context)
            guard let listener = try? loop.listen(host: "127.0.0.1", port: 0, isSecure: true) else {
                started.add(nil)
                return
            }
            loop.delegate = Delegate(target)
            started.add((listener.port, loop.handle))
            loop.run()
        }
        guard case (let port, let handle)?? = started.takeAll().first else {
            throw TransportFailure("no server that sends elsewhere")
        }
        (self.port, self.handle) = (port, handle)
    }

    func stop() {
        handle.post { loop in loop.abort() }
        thread.join()
    }
}
