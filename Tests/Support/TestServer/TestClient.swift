import Glibc
import ThicketCrypto
import ThicketProtocol

/// A small WebSocket client that blocks, for tests: one thread, one connection, every wait with a deadline.
public final class TestClient {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
        public init(_ description: String) { self.description = description }
    }

    /// Seconds that any single wait may take before the test fails.
    public static let patience = 120

    private let line: TestLine
    private var reader = WebSocketReader(role: .client, messageBytesMax: 256 << 20)
    private var arrived: [String] = []
    private var arrivedStart = 0
    private var scratch = [UInt8](repeating: 0, count: 64 << 10)
    private var head: [UInt8] = []
    /// Code of the server's close frame.
    public private(set) var closeCode: WebSocketCloseCode?
    /// The connection has ended.
    public private(set) var isOver = false

    /// Connects and shakes hands.
    /// - Parameter receiveBytes: the kernel's buffer for what we do not read; small ones make slow readers.
    /// - Parameter path: instead of the app's.
    public init(port: Int, app: String = "app", path: String? = nil, receiveBytes: Int32? = nil) throws {
        line = try TestLine(port: port, receiveBytes: receiveBytes)
        let request = WebSocketHandshake.request(
            host: "127.0.0.1:\(port)", target: path ?? "/sock/1/\(app)/websocket", nonce: RandomBytes.make(16))
        try write(request)
        let answer = try readHead()
        guard answer.hasPrefix("HTTP/1.1 101") else { throw Failure("no upgrade: \(answer)") }
    }

    /// One plain HTTP request on a new connection; returns the whole answer.
    public static func http(port: Int, _ request: String) throws -> String {
        let line = try TestLine(port: port)
        guard line.send(Array(request.utf8)) else {
            throw Failure("the request could not be sent")
        }
        var answer = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = line.receive(&chunk, chunk.count)
            guard count > 0 else { break }
            answer += chunk[..<count]
        }
        return String(decoding: answer, as: UTF8.self)
    }

    // MARK: Messages

    public func send(_ texts: String...) throws {
        for text in texts { try write(WebSocketWriter.frame(.text, Array(text.utf8), mask: 0x1234_5678)) }
    }

    /// Sends bytes as they are: half a frame, several at once, or no frame at all.
    public func send(raw bytes: [UInt8]) throws { try write(bytes) }

    /// The next message, in order.
    public func receive() throws -> String {
        while arrivedStart == arrived.count {
            guard !isOver else {
                throw Failure("the connection ended (\(closeCode.map(\.description) ?? "without a close frame"))")
            }
            try readMore()
        }
        let text = arrived[arrivedStart]
        arrivedStart += 1
        if arrivedStart == arrived.count { (arrived, arrivedStart) = ([], 0) }
        return text
    }

    /// Sends one message and returns the next one that comes.
    public func ask(_ text: String) throws -> String {
        try send(text)
        return try receive()
    }

    /// The messages until the answer to a heartbeat: every effect of what was sent before.
    public func drain(_ beat: Int = 700) throws -> [String] {
        try send("h:\(beat)")
        var texts = [String]()
        while true {
            let text = try receive()
            if text == "h:\(beat + 1)" { return texts }
            texts.append(text)
        }
    }

    /// Authorizes channel 0.
    public func open(
        _ name: String, token: String = "ann-token", bucket: String = "notes", library: String = "test",
        command: String? = nil
    ) throws {
        let extra = command.map { ",\"cmd\":\"\($0)\"" } ?? ""
        let answer = try ask(
            "0:init:{\"clientid\":\"\(name)\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"app\","
                + "\"name\":\"\(bucket)\",\"library\":\"\(library)\"\(extra)}")
        guard answer.hasPrefix("0:auth:"), !answer.hasPrefix("0:auth:{") else { throw Failure(answer) }
    }

    /// Waits for the end of the connection and returns the code of the server's close frame, if it sent one.
    public func end() throws -> WebSocketCloseCode? {
        while !isOver { try readMore() }
        return closeCode
    }

    /// Disconnects without a close frame.
    public func vanish() { shutdown(line.descriptor, Int32(SHUT_RDWR)) }

    // MARK: Bytes

    static func connect(_ descriptor: Int32, _ port: Int) throws {
        var patience = timeval(tv_sec: Self.patience, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                Glibc.connect(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure("no connection to port \(port): error \(errno)") }
    }

    private func write(_ bytes: [UInt8]) throws {
        guard line.send(bytes) else { throw Failure("a message could not be sent: error \(errno)") }
    }

    private func readHead() throws -> String {
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard line.receive(&scratch, 1) == 1 else { throw Failure("the server closed in the handshake") }
            head.append(scratch[0])
        }
        return String(decoding: head, as: UTF8.self)
    }

    private func readMore() throws {
        let count = line.receive(&scratch, scratch.count)
        guard count > 0 else {
            if count < 0 && errno == EAGAIN { throw Failure("nothing came for \(Self.patience) s") }
            isOver = true
            return
        }
        try scratch.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
            var input = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
            while let event = try reader.next(&input) { try handle(event) }
        }
    }

    private func handle(_ event: WebSocketEvent) throws {
        switch event {
        case .text(let bytes): arrived.append(String(decoding: bytes, as: UTF8.self))
        case .gatheredText(let bytes): arrived.append(String(decoding: bytes, as: UTF8.self))
        case .ping(let payload): try write(WebSocketWriter.frame(.pong, payload, mask: 1))
        case .close(let code, _):
            closeCode = code
            isOver = true
            try? write(WebSocketWriter.close(code, mask: 1))
            shutdown(line.descriptor, Int32(SHUT_WR))
        case .binary, .gatheredBinary, .pong: break
        }
    }
}
