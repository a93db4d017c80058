import CThicketNet
import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// One client connection of the load generator: non-blocking after its handshake, with its own reader.
final class LoadSocket {
    let descriptor: Int32
    private var reader = WebSocketReader(role: .client, messageBytesMax: 256 << 20)
    private var waiting: [UInt8] = []
    /// For the scenario: when the outstanding request was sent, and its counts.
    var sentAt: UInt64 = 0
    var number = 0
    var received = 0
    private(set) var bytesReceived = 0

    /// Connects and shakes hands, blocking.
    init(port: UInt16, app: String) throws {
        descriptor = try Self.connection(port: port)
        let request: [UInt8] = WebSocketHandshake.request(
            host: "127.0.0.1:\(port)", target: "/sock/1/\(app)/websocket", nonce: RandomBytes.make(16))
        guard write(descriptor, request, request.count) == request.count else { throw BenchError("handshake not sent") }
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard read(descriptor, &byte, 1) == 1 else { throw BenchError("the server closed during the handshake") }
            head.append(byte)
        }
        guard String(decoding: head, as: UTF8.self).hasPrefix("HTTP/1.1 101") else {
            throw BenchError("no upgrade: \(String(decoding: head.prefix(200), as: UTF8.self))")
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// A connection to loopback, blocking.
    static func connection(port: UInt16) throws -> Int32 {
        let descriptor: Int32 = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw BenchError("socket: errno \(errno)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result: Int32 = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw BenchError("connect to port \(port): errno \(errno)") }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        return descriptor
    }

    deinit { close(descriptor) }

    /// Sends a text message; bytes that the kernel does not accept wait for `flush`.
    func send(_ text: String) {
        waiting += WebSocketWriter.frame(.text, Array(text.utf8), mask: 0x5A17_C3F1)
        flush()
    }

    func flush() {
        while !waiting.isEmpty {
            let count: Int = write(descriptor, waiting, waiting.count)
            guard count > 0 else { return }
            waiting.removeFirst(count)
        }
    }

    /// Passes every complete message that has arrived to `receive`. False if the server has closed.
    func drain(_ scratch: UnsafeMutableRawBufferPointer, _ receive: (UnsafeRawBufferPointer) -> Void) throws -> Bool {
        flush()
        while true {
            let count: Int = read(descriptor, scratch.baseAddress, scratch.count)
            if count == 0 { return false }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            bytesReceived += count
            var input = UnsafeMutableRawBufferPointer(rebasing: scratch[0..<count])
            while let event: WebSocketEvent = try reader.next(&input) {
                switch event {
                case .text(let bytes): receive(bytes)
                case .gatheredText(let bytes): bytes.withUnsafeBytes(receive)
                case .ping(let payload):
                    waiting += WebSocketWriter.frame(.pong, payload, mask: 1)
                    flush()
                case .close: return false
                case .binary, .gatheredBinary, .pong: break
                }
            }
            if count < scratch.count { return true }
        }
    }
}

/// Waits for many `LoadSocket`s at once.
final class LoadLoop {
    private let poll: Int32 = epoll_create1(0)
    private var sockets: [Int32: LoadSocket] = [:]
    private let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 20, alignment: 64)

    deinit {
        close(poll)
        scratch.deallocate()
    }

    func add(_ socket: LoadSocket) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = socket.descriptor
        epoll_ctl(poll, EPOLL_CTL_ADD, socket.descriptor, &event)
        sockets[socket.descriptor] = socket
    }

    /// Removes a socket, which closes with its last owner.
    func remove(_ socket: LoadSocket) {
        epoll_ctl(poll, EPOLL_CTL_DEL, socket.descriptor, nil)
        sockets[socket.descriptor] = nil
    }

    /// Runs until `isDone`, and passes each message to `receive`.
    ///
    /// - Throws: when nothing arrives for `patience` seconds, or the server closes a connection.
    func run(
        patience: Double = 30, until isDone: () -> Bool, receive: (LoadSocket, UnsafeRawBufferPointer) -> Void
    ) throws {
        var events = [epoll_event](repeating: epoll_event(), count: 512)
        while !isDone() {
            let count: Int32 = epoll_wait(poll, &events, 512, Int32(patience * 1_000))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw BenchError("nothing arrived for \(patience) s") }
            for index: Int in 0..<Int(count) {
                guard let socket: LoadSocket = sockets[events[index].data.fd] else { continue }
                let isConnected: Bool = try socket.drain(scratch) { receive(socket, $0) }
                guard isConnected else { throw BenchError("the server closed connection \(socket.number)") }
            }
        }
    }
}

struct BenchError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Something that a scenario needs and this machine lacks: not a failure, but nothing is measured.
struct BenchMissing: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Nanoseconds of the monotonic clock.
func nanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
