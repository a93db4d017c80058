import Glibc
import ThicketCrypto
import ThicketProtocol

/// One connection of an attacker: it never throws, reconnects when it is closed, and reads only on request.
final class HostileSocket {
    let number: Int
    private let port: UInt16
    private(set) var descriptor: Int32 = -1
    private var waiting: [UInt8] = []
    private var written = 0
    private var reader = WebSocketReader(role: .client, messageBytesMax: 256 << 20)
    /// Messages read since it was opened.
    private(set) var received = 0
    /// Messages sent since it was opened; the attack may set it.
    var sent = 0
    var answered = 0
    /// How often it was opened.
    private(set) var generation = 0
    /// Called with each message.
    var listener: ((UnsafeRawBufferPointer) -> Void)?

    init(port: UInt16, number: Int) { (self.port, self.number) = (port, number) }

    deinit { shut() }

    var isOpen: Bool { descriptor >= 0 }
    /// Bytes that the kernel has not accepted yet.
    var pending: Int { waiting.count - written }

    /// Connects without a handshake.
    func connectPlain(receiveBytes: Int32? = nil) -> Bool {
        shut()
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return false }
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var patience = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result: Int32 = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result != 0 { shut() }
        return result == 0
    }

    /// Connects and shakes hands.
    func connect(receiveBytes: Int32? = nil) -> Bool {
        guard connectPlain(receiveBytes: receiveBytes) else { return false }
        let request: [UInt8] = WebSocketHandshake.request(
            host: "127.0.0.1:\(port)", target: "/sock/1/\(BenchServer.app)/websocket", nonce: RandomBytes.make(16))
        _ = Glibc.send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard recv(descriptor, &byte, 1, 0) == 1, head.count < 4_096 else {
                shut()
                return false
            }
            head.append(byte)
        }
        makeQuick()
        return head.starts(with: "HTTP/1.1 101".utf8)
    }

    func makeQuick() { _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) }

    func shut() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        (waiting, written, received, sent, answered) = ([], 0, 0, 0, 0)
        reader = WebSocketReader(role: .client, messageBytesMax: 256 << 20)
        generation += 1
    }

    func send(_ text: String) { send(raw: WebSocketWriter.frame(.text, Array(text.utf8), mask: 0x5A17_C3F1)) }

    func send(raw bytes: [UInt8]) {
        waiting += bytes
        sent += 1
    }

    /// Sends what the kernel accepts, and reads what is available.
    func move(reads: Bool, _ scratch: UnsafeMutableRawBufferPointer) {
        while isOpen, pending > 0 {
            let count: Int = waiting.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + written, pending, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                if errno != EAGAIN, errno != EINTR { return shut() }
                break
            }
            written += count
        }
        if pending == 0 { (waiting, written) = ([], 0) }
        guard reads else { return }
        while isOpen {
            let count: Int = recv(descriptor, scratch.baseAddress, scratch.count, 0)
            if count == 0 { return shut() }
            if count < 0 {
                if errno != EAGAIN, errno != EINTR { shut() }
                return
            }
            guard hear(UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])) else { return shut() }
        }
    }

    private func hear(_ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        var input: UnsafeMutableRawBufferPointer = bytes
        do throws(WebSocketFailure) {
            while let event: WebSocketEvent = try reader.next(&input) {
                switch event {
                case .text(let text):
                    received += 1
                    listener?(text)
                case .gatheredText(let text):
                    received += 1
                    text.withUnsafeBytes { listener?($0) }
                case .pong: received += 1
                case .close: return false
                case .ping, .binary, .gatheredBinary: break
                }
            }
        } catch {
            return false
        }
        return true
    }
}

/// Many hostile connections, driven by one thread.
struct HostileSwarm {
    let sockets: [HostileSocket]
    var reads = true
    /// The kernel's buffer for unread bytes.
    var receiveBytes: Int32?

    init(port: UInt16, count: Int) { sockets = (0..<count).map { HostileSocket(port: port, number: $0) } }

    /// Drives all connections until the time is over.
    ///
    /// - Parameters:
    ///   - opened: called with each new connection.
    ///   - feed: called whenever little data waits to be sent.
    func run(
        until end: UInt64, opened: (HostileSocket) -> Void = { _ in }, feed: (HostileSocket) -> Void
    ) {
        let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 18, alignment: 64)
        defer { scratch.deallocate() }
        while nanoseconds() < end {
            var polls: [pollfd] = []
            for socket in sockets {
                if !socket.isOpen {
                    guard nanoseconds() < end, socket.connect(receiveBytes: receiveBytes) else { continue }
                    opened(socket)
                }
                if socket.pending < 1 << 16 { feed(socket) }
                socket.move(reads: reads, scratch)
                let writes: Int32 = socket.pending > 0 ? Int32(POLLOUT) : 0
                if socket.isOpen {
                    polls.append(
                        pollfd(fd: socket.descriptor, events: Int16((reads ? Int32(POLLIN) : 0) | writes), revents: 0))
                }
            }
            _ = poll(&polls, nfds_t(polls.count), 5)
        }
    }
}
