import CThicketNet
import Glibc
import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Behaviour that exists only with TLS: handshakes, certificates, and clients of other protocols.
@Suite(
    "TLS at the event loop", .serialized,
    .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct LoopTLSTests {
    private func serve(_ settings: NetSettings = .init()) throws -> LoopThread {
        try SecureEdge.$isOn.withValue(true) { try LoopThread(settings: settings) { EchoDelegate($0) } }
    }

    private static let get = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("a client of another protocol gets a plain 400 that names https, is counted, and gets no handshake")
    func plain() throws {
        let server: LoopThread = try serve()
        let texts: [String] = [
            Self.get, "POST /1/app HTTP/1.1\r\n\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n",
            "\0",
            "SSH-2.0-x\r\n",
        ]
        for text in texts {
            let peer = try TestPeer(port: server.port, isPlain: true)
            try peer.send(text)
            let answer: String = try peer.readToEnd()
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("https://"), "\(text)")
        }
        #expect(server.metrics.net.tlsHandshakes.value(.plain) == texts.count)
        #expect(server.metrics.net.tlsHandshakes.value(.full) == 0)
        try server.stop()
    }

    @Test("bytes that begin as TLS and are not valid end their own connection only")
    func garbage() throws {
        let server: LoopThread = try serve()
        let witness = try TestPeer(port: server.port)
        try witness.upgrade()
        var random = SeededRandom(seed: 29)
        for round: Int in 0..<200 {
            let peer = try TestPeer(port: server.port, isPlain: true)
            // Often a record with a valid head, so that the fault is met further inside.
            let body: [UInt8] = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let head: [UInt8] = [0x16, 3, UInt8(random.next() % 5), UInt8(body.count >> 8), UInt8(body.count & 0xFF)]
            let kind: [UInt8] = [1, 0, UInt8(body.count >> 8), UInt8(body.count & 0xFF)]
            let bytes: [UInt8] = round % 3 == 0 ? [0x16] + body : round % 3 == 1 ? head + body : head + kind + body
            try? peer.send(bytes)
            _ = thicket_shut_write(peer.socket)
            _ = try? peer.readToEnd()
        }
        try witness.sendFrame(.text, Array("still here".utf8))
        #expect(try witness.readAnswer() == .text(Array("still here".utf8)))
        #expect(server.metrics.net.tlsHandshakes.value(.failed) > 100)
        #expect(server.metrics.net.tlsHandshakes.value(.full) == 1)
        try server.stop()
    }

    @Test("invalid records on a connection that was fine end that connection only")
    func garbageLater() throws {
        let server: LoopThread = try serve()
        let witness = try TestPeer(port: server.port)
        for bytes: [UInt8] in [[UInt8](repeating: 0x17, count: 400), Array(Self.get.utf8), [0x17, 3, 3, 0xFF, 0xFF]] {
            let peer = try TestPeer(port: server.port)
            try peer.send(Self.get)
            #expect(try peer.readResponse().status == 200)
            _ = thicket_send_blocking(peer.socket, bytes, bytes.count)
            #expect(try peer.readToEnd().isEmpty)
        }
        try witness.send(Self.get)
        #expect(try witness.readResponse().status == 200)
        try server.stop()
    }

    @Test("a handshake that is not finished in time is given up, and single bytes do not extend the time")
    func slowHandshake() throws {
        var settings = NetSettings()
        settings.requestTimeout = .milliseconds(80)
        let server: LoopThread = try serve(settings)
        let peer = try TestPeer(port: server.port, isPlain: true)
        try peer.send([0x16, 3, 1, 1, 0])
        waitFor { (try? peer.send([0])) == nil || server.metrics.net.tlsHandshakes.value(.timeout) == 1 ? true : nil }
        waitFor { server.metrics.net.tlsHandshakes.value(.timeout) == 1 ? true : nil }
        #expect(server.metrics.limitHits.value(.handshakeTime) == 1)
        let silent = try TestPeer(port: server.port, isPlain: true)
        #expect(try silent.readToEnd().isEmpty)
        try server.stop()
    }

    @Test("the server announces its end, against truncation; a client that announces its own still gets its answer")
    func farewell() throws {
        let server: LoopThread = try serve()
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(try peer.readResponse().body.count == 100_000)
        var room: [UInt8] = [0]
        #expect(room.withUnsafeMutableBytes { peer.tls?.read(into: $0) } == 0, "the end was not announced")
        // A client that announces its own end after the request still gets the answer.
        let other = try TestPeer(port: server.port)
        try other.send(Self.get)
        other.tls?.sayFarewell()
        #expect(try other.readResponse().status == 200)
        try server.stop()
    }

    @Test("messages larger than all buffers pass both ways while other connections wait their turn", arguments: [1, 3])
    func large(_ peers: Int) throws {
        let server: LoopThread = try serve()
        let payload: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: 0x20 + $0 % 90) }
        let all: [TestPeer] = try (0..<peers).map { _ in try TestPeer(port: server.port) }
        for peer in all { try peer.upgrade() }
        for peer in all { try peer.sendFrame(.text, payload) }
        for peer in all { #expect(try peer.readAnswer() == .text(payload)) }
        try server.stop()
    }

    @Test("a client with a ticket resumes without a signature, also after another certificate")
    func tickets() throws {
        let server: LoopThread = try serve()
        let context: TLSClientSocket.Context = try #require(TLSClientSocket.Context())
        func visit(_ ticket: TLSClientSocket.Ticket?) throws -> TLSClientSocket.Ticket? {
            let peer = try TestPeer(port: server.port, isPlain: true)
            let tls: TLSClientSocket = try #require(TLSClientSocket(peer.socket, context, ticket: ticket))
            #expect(tls.isResumed == (ticket != nil))
            #expect(tls.version == "TLSv1.3")
            #expect(Array(Self.get.utf8).withUnsafeBytes(tls.write))
            var room = [UInt8](repeating: 0, count: 1_000)
            #expect(room.withUnsafeMutableBytes(tls.read) > 0)
            tls.sayFarewell()
            return tls.ticket
        }
        var ticket: TLSClientSocket.Ticket? = try visit(nil)
        ticket = try visit(ticket)
        let files: (certificate: String, key: String) = SecureEdge.files
        let isRenewed: Bool = try server.onLoop { loop in
            loop.renew(TLSFiles(certificate: files.certificate, key: files.key), .silent)
            return true
        }
        #expect(isRenewed)
        _ = try visit(ticket)
        #expect(server.metrics.net.tlsHandshakes.value(.full) == 1)
        #expect(server.metrics.net.tlsHandshakes.value(.resumed) == 2)
        try server.stop()
    }

    @Test("TLS 1.1, renegotiation, ALPN without http/1.1 and weak ciphers are refused; TLS 1.2 and 1.3 are served")
    func others() throws {
        let server: LoopThread = try serve()
        let base: [String] = ["s_client", "-connect", "127.0.0.1:\(try server.port)", "-brief"]
        #expect(SecureEdge.run(base + ["-tls1_2"]) == 0)
        #expect(SecureEdge.run(base + ["-tls1_3"]) == 0)
        #expect(SecureEdge.run(base + ["-alpn", "h2,http/1.1"]) == 0)
        // A line with R makes s_client ask for another handshake on the same connection.
        let letter = "/tmp/thicket-renegotiate-\(getpid())"
        let file: Int32 = creat(letter, 0o600)
        _ = write(file, "R\n", 2)
        close(file)
        defer { unlink(letter) }
        let plain: [String] = base.filter { $0 != "-brief" }
        #expect(SecureEdge.run(plain + ["-tls1_2"], input: letter) != 0)
        let good: Int = server.metrics.net.tlsHandshakes.value(.full)
        #expect(good == 4)
        for words: [String] in [
            ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], ["-alpn", "h2"],
            ["-tls1_2", "-cipher", "AES128-SHA:AES256-GCM-SHA384"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
        ] {
            #expect(SecureEdge.run(base + words) != 0, "\(words)")
        }
        #expect(server.metrics.net.tlsHandshakes.value(.full) == good)
        #expect(server.metrics.net.tlsHandshakes.value(.failed) == 4)
        try server.stop()
    }

    @Test("HSTS is sent over TLS when the operator sets it, and never over plain HTTP")
    func hsts() throws {
        var settings = NetSettings()
        settings.hstsSeconds = 3_600
        for isSecure: Bool in [true, false] {
            let server: LoopThread = try SecureEdge.$isOn.withValue(isSecure) {
                try LoopThread(settings: settings) { EchoDelegate($0) }
            }
            let peer = try TestPeer(port: server.port)
            try peer.send(Self.get)
            let reported: String? = try peer.readResponse().fields["strict-transport-security"]
            #expect(reported == (isSecure ? "max-age=3600" : nil))
            try server.stop()
        }
    }
}
