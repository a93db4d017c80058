import CThicketNet
import Glibc
import Testing
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// A blocking socket with a deadline that sends anything to a server and reads its answers.
final class TestPeer {
    let socket: Int32
    /// Set when the server speaks TLS.
    private(set) var tls: TLSClientSocket?
    private static let context: TLSClientSocket.Context? = .init()
    private var unread: [UInt8] = []
    private var isGone = false
    private var reader = WebSocketReader(role: .client, messageBytesMax: 64 << 20)

    /// - Parameter isPlain: no TLS, whatever the server speaks.
    init(port: Int, isPlain: Bool = false) throws {
        socket = thicket_connect_tcp("127.0.0.1", String(port))
        try prepare()
        if !isPlain, SecureEdge.isSecure(port: port) { try shakeHands() }
    }

    /// Limits the kernel's receive buffer to 64 KiB; by default it may grow to tens of megabytes.
    func keepLittle() {
        var bytes: Int32 = 65_536
        #expect(setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size)) == 0)
    }

    /// Performs the TLS handshake.
    func shakeHands() throws {
        guard let context: TLSClientSocket.Context = Self.context, let made: TLSClientSocket = .init(socket, context)
        else { throw PeerError(what: "no TLS with the server") }
        tls = made
    }

    init(path: String) throws {
        socket = thicket_connect_unix(path)
        try prepare()
    }

    private func prepare() throws {
        guard socket >= 0 else { throw PeerError(what: "connect: \(String(cString: strerror(-socket)))") }
        thicket_no_delay(socket)
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { if socket >= 0 && !isGone { close(socket) } }

    struct PeerError: Error { let what: String }

    enum Answer: Equatable {
        case text([UInt8])
        case binary([UInt8])
        case ping([UInt8])
        case pong([UInt8])
        case close(UInt16?)
        /// The server ended the connection.
        case end
    }

    func send(_ bytes: [UInt8]) throws {
        if let tls {
            guard bytes.withUnsafeBytes(tls.write) else { throw PeerError(what: "send over TLS") }
            return
        }
        var sent = 0
        while sent < bytes.count {
            let count: Int = bytes.withUnsafeBytes {
                thicket_send_blocking(socket, $0.baseAddress?.advanced(by: sent), bytes.count - sent)
            }
            guard count > 0 else { throw PeerError(what: "send: \(String(cString: strerror(errno)))") }
            sent += count
        }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func sendFrame(_ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool = true) throws {
        try send(WebSocketWriter.frame(opcode, isFinal: isFinal, payload, mask: 0x1234_5678))
    }

    /// The next bytes; empty at the end of the connection.
    private func receive() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count: Int = tls.map { bytes.withUnsafeMutableBytes($0.read) } ?? recv(socket, &bytes, bytes.count, 0)
        guard count >= 0 else {
            if errno == ECONNRESET || tls != nil && errno != EAGAIN { return [] }
            throw PeerError(what: "receive: \(String(cString: strerror(errno)))")
        }
        return Array(bytes[..<count])
    }

    /// Everything until the server ends the connection.
    func readToEnd() throws -> String {
        var all: [UInt8] = unread
        while true {
            let more: [UInt8] = try receive()
            if more.isEmpty { return String(decoding: all, as: UTF8.self) }
            all += more
        }
    }

    /// The next response: status and body.
    func readResponse() throws -> (status: Int, fields: HTTPFields, body: [UInt8]) {
        var heads = HTTPResponseHeadReader()
        while true {
            let (head, used): (HTTPResponseHead?, Int) = try unread.withUnsafeBytes { bytes in
                var input: UnsafeRawBufferPointer = bytes
                let head: HTTPResponseHead? = try heads.next(&input)
                return (head, bytes.count - input.count)
            }
            unread.removeFirst(used)
            if let head {
                let length: Int = Int(head.fields["content-length"] ?? "0") ?? 0
                while unread.count < length { try fill() }
                defer { unread.removeFirst(length) }
                return (head.status, head.fields, Array(unread[..<length]))
            }
            try fill()
        }
    }

    /// Reads this number of bytes.
    func read(_ count: Int) throws -> [UInt8] {
        while unread.count < count { try fill() }
        defer { unread.removeFirst(count) }
        return Array(unread[..<count])
    }

    /// Closes the connection. If something was left unread, this resets it.
    func end() {
        close(socket)
        isGone = true
    }

    /// Resets the connection without an announcement.
    func reset() {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        close(socket)
        isGone = true
    }

    private func fill() throws {
        let more: [UInt8] = try receive()
        guard !more.isEmpty else { throw PeerError(what: "the connection ended in a response") }
        unread += more
    }

    /// Opens a WebSocket.
    func upgrade(_ target: String = "/ws") throws {
        let nonce: [UInt8] = Array("0123456789abcdef".utf8)
        try send(WebSocketHandshake.request(host: "localhost", target: target, nonce: nonce))
        let status: Int = try readResponse().status
        guard status == 101 else { throw PeerError(what: "upgrade answered \(status)") }
    }

    /// The next answer of a WebSocket server.
    func readAnswer() throws -> Answer {
        while true {
            if let answer: Answer = try nextAnswer() { return answer }
            let more: [UInt8] = try receive()
            if more.isEmpty { return .end }
            unread += more
        }
    }

    private func nextAnswer() throws -> Answer? {
        var answer: Answer?
        let used: Int = try unread.withUnsafeMutableBytes { bytes in
            var input: UnsafeMutableRawBufferPointer = bytes
            answer = try reader.next(&input).map { event in
                switch event {
                case .text(let payload): .text(Array(payload))
                case .binary(let payload): .binary(Array(payload))
                case .gatheredText(let payload): .text(payload)
                case .gatheredBinary(let payload): .binary(payload)
                case .ping(let payload): .ping(Array(payload))
                case .pong(let payload): .pong(Array(payload))
                case .close(let code, _): .close(code?.rawValue)
                }
            }
            return bytes.count - input.count
        }
        unread.removeFirst(used)
        return answer
    }
}
