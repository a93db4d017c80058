import Glibc
import ThicketCrypto
import ThicketProtocol

/// One WebSocket to a server on this machine, for tests: non-blocking after its handshake.
///
/// Used by one thread at a time.
public final class WireSocket {
    public let descriptor: Int32
    /// Set when the other side has closed.
    public private(set) var isClosed = false
    /// Code of the server's close frame, if it sent one.
    public private(set) var closeCode: WebSocketCloseCode?
    private var reader = WebSocketReader(role: .client, messageBytesMax: 256 << 20)
    private var waiting: [UInt8] = []
    private var arrived: [[UInt8]] = []

    /// Connects and shakes hands, at most 10 s.
    public convenience init(port: UInt16, app: String) throws(ProcessError) {
        try self.init(port: port, target: "/sock/1/\(app)/websocket")
    }

    /// The same for any path.
    public init(port: UInt16, target: String) throws(ProcessError) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ProcessError("no socket: \(errno)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                connect(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            throw ProcessError("no connection to port \(port): \(String(cString: strerror(errno)))")
        }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var time = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        try shakeHands(port, target)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close(descriptor) }

    private func shakeHands(_ port: UInt16, _ target: String) throws(ProcessError) {
        let request = WebSocketHandshake.request(
            host: "127.0.0.1:\(port)", target: target, nonce: RandomBytes.make(16))
        guard Glibc.send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw ProcessError("the handshake could not be sent")
        }
        var head = [UInt8]()
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard read(descriptor, &byte, 1) == 1 else { throw ProcessError("the server closed in the handshake") }
            head.append(byte)
        }
        let text = String(decoding: head, as: UTF8.self)
        guard text.hasPrefix("HTTP/1.1 101") else { throw ProcessError("no upgrade: \(text)") }
    }

    /// Sends a text message; bytes that the kernel does not accept are sent by a later call.
    public func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends a text message.
    public func send(_ text: [UInt8]) {
        waiting += WebSocketWriter.frame(.text, text, mask: 0x5A17_C3F1)
        flush()
    }

    /// Sends the waiting bytes.
    public func flush() {
        var sent = 0
        while sent < waiting.count {
            let count = waiting.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                Glibc.send(descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                if errno != EAGAIN, errno != EINTR { isClosed = true }
                break
            }
            sent += count
        }
        waiting.removeFirst(sent)
    }

    /// Whole messages that have arrived since the last call.
    public func take() -> [[UInt8]] {
        flush()
        var chunk = [UInt8](repeating: 0, count: 1 << 17)
        while !isClosed {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR { continue }
                if errno != EAGAIN { isClosed = true }
                break
            }
            if count == 0 { isClosed = true }
            chunk.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
                var input = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                handle(&input)
            }
        }
        defer { arrived = [] }
        return arrived
    }

    private func handle(_ input: inout UnsafeMutableRawBufferPointer) {
        do throws(WebSocketFailure) {
            while let event = try reader.next(&input) {
                switch event {
                case .text(let bytes): arrived.append(Array(bytes))
                case .gatheredText(let bytes): arrived.append(bytes)
                case .ping(let payload): waiting += WebSocketWriter.frame(.pong, payload, mask: 1)
                case .close(let code, _):
                    closeCode = code
                    isClosed = true
                case .binary, .gatheredBinary, .pong: break
                }
            }
        } catch {
            isClosed = true
        }
    }

    /// The next message that `wanted` accepts; others are skipped.
    public func next<Result>(
        seconds: Int = 120, _ wanted: (ServerMessage) -> Result?
    ) throws(ProcessError) -> Result {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        while true {
            let messages = take()
            for (index, bytes) in messages.enumerated() {
                guard let message = try? ServerMessage(parsing: bytes) else {
                    throw ProcessError("not a message: \(String(decoding: bytes.prefix(300), as: UTF8.self))")
                }
                if let result = wanted(message) {
                    arrived = Array(messages[(index + 1)...])
                    return result
                }
            }
            guard !isClosed else { throw ProcessError("the server closed the connection (\(closeCode as Any))") }
            guard Steady.milliseconds() < deadline else { throw ProcessError("no such message within \(seconds) s") }
            WireSocket.wait([self], milliseconds: 100)
        }
    }

    /// Authorizes channel 0 for a bucket.
    public func open(
        _ bucket: String, app: String, token: String, clientID: String, mode: String? = nil
    ) throws(ProcessError) {
        var writer = JSONWriter()
        var hello: JSONObject = [
            "clientid": .string(clientID), "api": "1.1", "token": .string(token), "app_id": .string(app),
            "name": .string(bucket), "library": "thicket", "version": "1",
        ]
        hello["mode"] = mode.map { .string($0) }
        writer.write(hello)
        send(Array("0:init:".utf8) + writer.bytes)
        let refusal = try next { (message: ServerMessage) -> String?? in
            switch message {
            case .channel(0, .authorized): .some(nil)
            case .channel(0, .authFailed(let code, let text)): "\(code) \(text)"
            default: nil
            }
        }
        if let refusal { throw ProcessError("the server refused the token: \(refusal)") }
    }

    /// Waits until one of the sockets is readable, or the time is over.
    public static func wait(_ sockets: [WireSocket], milliseconds: Int) {
        var polls = sockets.map { (socket: WireSocket) in
            let writes = socket.waiting.isEmpty ? 0 : Int32(POLLOUT)
            return pollfd(fd: socket.descriptor, events: Int16(Int32(POLLIN) | writes), revents: 0)
        }
        _ = poll(&polls, nfds_t(polls.count), Int32(milliseconds))
    }
}
