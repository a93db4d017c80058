import Glibc
import ThicketNet
import ThicketProtocol
import ThicketServer

/// One of our servers with a certificate, and functions that use it.
final class TLSTarget {
    let server: BenchServer
    let files: TLSFiles?
    private let context: TLSClientSocket.Context
    private var ticket: TLSClientSocket.Ticket?

    /// - Parameter kind: of the key; nil: plain HTTP.
    init(_ kind: TLSPeer.Kind?) throws {
        guard let made = TLSClientSocket.Context() else { throw BenchError("OpenSSL could not start") }
        context = made
        var settings: [String] = ["--request-timeout", "5m", "--idle-timeout", "1h"]
        files = try kind.map { (kind: TLSPeer.Kind) in try TLSPeer.certificate(kind) }
        if let files { settings += ["--tls-cert", files.certificate, "--tls-key", files.key] }
        server = try BenchServer(users: 1, settings: settings)
    }

    deinit {
        guard let files else { return }
        unlink(files.certificate)
        unlink(files.key)
        rmdir(String(files.key.dropLast("/key.pem".count)))
    }

    /// A connection after its handshake.
    func line(_ ticket: TLSClientSocket.Ticket? = nil) throws -> TLSLine {
        try TLSLine(server.process.port, files == nil ? nil : context, ticket)
    }

    /// - Returns: microseconds of server CPU of each connection with one request.
    func visits(_ count: Int, withTicket: Bool) throws -> Double {
        let before: Double = server.process.cpuSeconds()
        for _ in 0..<count {
            let line: TLSLine = try line(withTicket ? ticket : nil)
            guard line.isResumed == (withTicket && ticket != nil) else {
                throw BenchError("not resumed as it should be")
            }
            _ = try line.get("/health/live")
            line.end()
            ticket = line.ticket
        }
        return (server.process.cpuSeconds() - before) / Double(count) * 1e6
    }

    /// - Returns: megabytes for each second of server CPU.
    func download(_ count: Int) throws -> Double {
        let line: TLSLine = try line()
        var bytes = 0
        let before: Double = server.process.cpuSeconds()
        for _ in 0..<count { bytes += try line.get("/openapi.yaml") }
        return Double(bytes) / 1e6 / (server.process.cpuSeconds() - before)
    }

    /// Full handshakes so far, as the server counts them.
    func handshakes() throws -> Int {
        let page: String = try line().text("/metrics")
        let mark = "thicket_tls_handshakes_total{result=\"full\"} "
        guard let place: Range<String.Index> = page.firstRange(of: mark) else {
            throw BenchError("no count of handshakes")
        }
        return Int(page[place.upperBound...].prefix { $0.isNumber }) ?? 0
    }
}

/// One blocking connection, over TLS or plain.
final class TLSLine {
    private let descriptor: Int32
    private let tls: TLSClientSocket?
    private var chunk = [UInt8](repeating: 0, count: 256 << 10)
    private var unread: [UInt8] = []
    private var reader = WebSocketReader(role: .client, messageBytesMax: 64 << 20)

    init(_ port: UInt16, _ context: TLSClientSocket.Context?, _ ticket: TLSClientSocket.Ticket?) throws {
        descriptor = try LoadSocket.connection(port: port)
        guard let context else {
            tls = nil
            return
        }
        guard let made = TLSClientSocket(descriptor, context, ticket: ticket) else {
            close(descriptor)
            throw BenchError("no TLS with the server")
        }
        tls = made
    }

    deinit { close(descriptor) }

    var isResumed: Bool { tls?.isResumed ?? false }
    var ticket: TLSClientSocket.Ticket? { tls?.ticket }
    func end() { tls?.sayFarewell() }

    private func send(_ bytes: [UInt8]) throws {
        let isSent: Bool =
            tls.map { (tls: TLSClientSocket) in bytes.withUnsafeBytes(tls.write) }
            ?? (write(descriptor, bytes, bytes.count) == bytes.count)
        guard isSent else { throw BenchError("a request was not sent") }
    }

    private func fill() throws {
        let count: Int = tls.map { chunk.withUnsafeMutableBytes($0.read) } ?? read(descriptor, &chunk, chunk.count)
        guard count > 0 else { throw BenchError("the server closed a connection") }
        unread += chunk[..<count]
    }

    /// The head of the next answer, and the length of its body, which stays unread.
    private func head(_ request: String) throws -> (status: String, length: Int) {
        try send(Array(request.utf8))
        let mark: [UInt8] = [13, 10, 13, 10]
        var from = 0
        while true {
            let last: Int = unread.count - 3
            if from < last, let end: Int = (from..<last).first(where: { unread[$0..<$0 + 4].elementsEqual(mark) }) {
                let lines: [Substring] = String(decoding: unread[..<end], as: UTF8.self).split(separator: "\r\n")
                unread.removeFirst(end + 4)
                let field: Substring? = lines.first { $0.hasPrefix("content-length: ") }?.dropFirst(16)
                return (String(lines[0]), field.flatMap { Int($0) } ?? 0)
            }
            from = max(0, last)
            try fill()
        }
    }

    /// Sends one request; returns the number of bytes of its answer's body.
    func get(_ path: String) throws -> Int { try text(path).utf8.count }

    func text(_ path: String) throws -> String {
        let (status, length): (String, Int) = try head("GET \(path) HTTP/1.1\r\nHost: b\r\n\r\n")
        guard status.contains(" 200 ") else { throw BenchError("not answered with 200: \(status)") }
        while unread.count < length { try fill() }
        defer { unread.removeFirst(length) }
        return String(decoding: unread[..<length], as: UTF8.self)
    }

    func upgrade() throws {
        let request: [UInt8] = WebSocketHandshake.request(
            host: "b", target: "/sock/1/\(BenchServer.app)/websocket", nonce: Array(0..<16))
        let (status, _): (String, Int) = try head(String(decoding: request, as: UTF8.self))
        guard status.contains(" 101 ") else { throw BenchError("no WebSocket: \(status)") }
        chunk = .init(repeating: 0, count: 4 << 10)
    }

    func say(_ text: String) throws { try send(WebSocketWriter.frame(.text, Array(text.utf8), mask: 0x5A17_C3F1)) }

    /// The next text message.
    func hear() throws -> String {
        while true {
            var text: String?
            let used: Int = try unread.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
                var input: UnsafeMutableRawBufferPointer = bytes
                while text == nil, let event: WebSocketEvent = try reader.next(&input) {
                    if case .text(let payload) = event { text = String(decoding: payload, as: UTF8.self) }
                }
                return bytes.count - input.count
            }
            unread.removeFirst(used)
            if let text { return text }
            try fill()
        }
    }
}
