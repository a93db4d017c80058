import CThicketNet
import Glibc
import ThicketProtocol

/// One writer, many receivers of its bucket over SockJS streams, beside as many over WebSockets in the same run.
func sockJSFanOut(receivers: Int, rounds: Int) throws -> [Figure] {
    let sockets: [Figure] = try fanout(receivers: receivers, rounds: rounds)
    let server = try BenchServer(users: 1, settings: ["--sockjs-response-bytes", "64MiB"])
    let load = try StreamLoad(server, receivers: receivers)
    var everywhere: [Double] = []
    let cpuBefore: Double = server.process.cpuSeconds()
    for round: Int in 0..<rounds {
        let start: UInt64 = nanoseconds()
        load.writer.send(change(of: "k", ccid: "c-\(round)", number: round, version: round))
        try load.awaitAll()
        everywhere.append(Double(nanoseconds() - start) / 1e6)
    }
    let cpu: Double = (server.process.cpuSeconds() - cpuBefore) / Double(rounds * (receivers + 1)) * 1e6
    everywhere.sort()
    let beside: Double = sockets.first { $0.unit == "µs" }?.value ?? .nan
    return [
        Figure(name: "1 → \(receivers) streams: all have it p50", value: quantile(everywhere, 0.5), unit: "ms"),
        Figure(name: "all streams have it p99", value: quantile(everywhere, 0.99), unit: "ms"),
        Figure(name: "server CPU per delivery to a stream", value: cpu, unit: "µs"),
        Figure(name: "server CPU per delivery to a WebSocket", value: beside, unit: "µs"),
        Figure(name: "stream, times a WebSocket", value: cpu / beside, unit: ""),
    ]
}

/// A writer on a WebSocket, and readers of SockJS streams that count the changes that reach them.
private final class StreamLoad {
    let writer: LoadSocket
    private let poll: Int32 = epoll_create1(0)
    private var streams: [Int32: Stream] = [:]
    private let loop = LoadLoop()
    private let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 20, alignment: 64)

    /// One response without an end.
    private final class Stream {
        let descriptor: Int32
        /// The end of the bytes read, in which a word may be cut.
        var tail: [UInt8] = []

        init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }
    }

    init(_ server: BenchServer, receivers: Int) throws {
        writer = try LoadSocket(port: server.process.port, app: BenchServer.app)
        loop.add(writer)
        try authorize([writer], on: loop, server: server, bucket: "b")
        let sender = Stream(try Self.connect(server.process.port))
        for number: Int in 0..<receivers {
            let path = "/sock/1/\(BenchServer.app)/000/stream\(number)"
            let stream = Stream(try Self.connect(server.process.port))
            try Self.post(stream.descriptor, path + "/xhr_streaming", "")
            try read(stream, until: "o\n")
            var writer = JSONWriter()
            writer.write(
                string: initialize(server.tokens[0], client: "stream-\(number)", bucket: "b", command: "i::::1"))
            try Self.post(
                sender.descriptor, path + "/xhr_send", "[\(String(decoding: writer.bytes, as: UTF8.self))]")
            try read(sender, until: "\r\n\r\n")
            try read(stream, until: "0:i:")
            stream.tail = []
            _ = fcntl(stream.descriptor, F_SETFL, fcntl(stream.descriptor, F_GETFL) | O_NONBLOCK)
            var event = epoll_event()
            event.events = EPOLLIN.rawValue
            event.data.fd = stream.descriptor
            epoll_ctl(poll, EPOLL_CTL_ADD, stream.descriptor, &event)
            streams[stream.descriptor] = stream
        }
    }

    deinit {
        close(poll)
        scratch.deallocate()
    }

    /// Waits until one more change has reached all readers.
    func awaitAll() throws {
        var missing: Int = streams.count
        var events = [epoll_event](repeating: epoll_event(), count: 512)
        while missing > 0 {
            let count: Int32 = epoll_wait(poll, &events, 512, 30_000)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw BenchError("nothing arrived for 30 s") }
            for index: Int in 0..<Int(count) {
                guard let stream: Stream = streams[events[index].data.fd] else { continue }
                missing -= try changes(on: stream)
            }
        }
        var isAnswered = false
        try loop.run(until: { isAnswered }, receive: { _, _ in isAnswered = true })
    }

    private func changes(on stream: Stream) throws -> Int {
        let count: Int = Glibc.read(stream.descriptor, scratch.baseAddress, scratch.count)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return 0 }
            throw BenchError("a stream ended")
        }
        let bytes: [UInt8] = stream.tail + [UInt8](UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        let found: Int = bytes.withUnsafeBytes { occurrences(of: "ccids", in: $0) }
        stream.tail = Array(bytes.suffix(4))
        return found
    }

    private func read(_ stream: Stream, until word: StaticString) throws {
        var bytes: [UInt8] = []
        while !bytes.withUnsafeBytes({ contains($0, word) }) {
            let count: Int = Glibc.read(stream.descriptor, scratch.baseAddress, scratch.count)
            guard count > 0 else { throw BenchError("the server did not answer a session") }
            bytes += UnsafeRawBufferPointer(rebasing: scratch[..<count])
        }
    }

    private static func post(_ descriptor: Int32, _ path: String, _ body: String) throws {
        let head = "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let bytes = [UInt8]((head + body).utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw BenchError("a request was not sent") }
    }

    private static func connect(_ port: UInt16) throws -> Int32 {
        let descriptor: Int32 = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result: Int32 = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw BenchError("connect to port \(port): errno \(errno)") }
        return descriptor
    }
}
