import Glibc
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

/// A small blocking HTTP client: one persistent connection, from an address of this machine that the caller chooses,
/// with a deadline for every wait. Used by one thread at a time.
public final class Caller {
    /// An answer, byte for byte.
    public struct Reply: Sendable {
        public let status: Int
        /// First line and fields, with their ends.
        public let head: [UInt8]
        public let body: [UInt8]
        public let fields: HTTPFields
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// A text of a JSON body.
        public func string(_ name: String) throws(ProcessError) -> String {
            guard let root = try? JSONDocument(parsing: body).root, let text = root[name]?.string
            else { throw ProcessError("\(status): no '\(name)' in \(text)") }
            return text
        }
    }

    /// Longest time for one answer, in seconds.
    private static let patience = 20

    private let descriptor: Int32
    private var unread: [UInt8] = []

    /// - Parameter source: the last three bytes of the client's address in 127.0.0.0/8. A server's counters by address
    ///   are separate for each.
    public init(port: UInt16, source: UInt32 = 1) throws(ProcessError) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ProcessError("no socket: \(errno)") }
        var time = timeval(tv_sec: Self.patience, tv_usec: 0)
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        guard Loopback.connect(descriptor, port: port, source: source) else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw ProcessError("no connection to port \(port): \(reason)")
        }
    }

    deinit { close(descriptor) }

    /// One request and its answer.
    public func ask(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], body: String? = nil
    ) throws(ProcessError) -> Reply {
        try send(Self.request(method, path, fields, body: body))
        return try reply(headOnly: method == "HEAD")
    }

    /// A request as bytes.
    public static func request(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], body: String? = nil
    ) -> [UInt8] {
        var text = "\(method) \(path) HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "content-length: \(body.utf8.count)\r\n" }
        return Array((text + "\r\n" + (body ?? "")).utf8)
    }

    /// Sends bytes unchanged.
    public func send(_ bytes: [UInt8]) throws(ProcessError) {
        var sent = 0
        while sent < bytes.count {
            let count: Int = bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                Glibc.send(descriptor, bytes.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw ProcessError("a request could not be sent: error \(errno)") }
            sent += count
        }
    }

    /// The next answer, with a length or in chunks.
    public func reply(headOnly: Bool = false) throws(ProcessError) -> Reply {
        var reader = HTTPResponseHeadReader()
        var raw = [UInt8]()
        while true {
            let (head, used): (HTTPResponseHead?, Int) = try read(&reader)
            raw += unread[..<used]
            unread.removeFirst(used)
            guard let head else {
                try fill()
                continue
            }
            let hasBody = !headOnly && head.status != 204 && head.status != 304
            return Reply(
                status: head.status, head: raw, body: hasBody ? try body(head.fields) : [], fields: head.fields)
        }
    }

    private func read(_ reader: inout HTTPResponseHeadReader) throws(ProcessError) -> (HTTPResponseHead?, Int) {
        let result: Result<(HTTPResponseHead?, Int), HTTPFailure> = unread.withUnsafeBytes {
            (bytes: UnsafeRawBufferPointer) in
            var input: UnsafeRawBufferPointer = bytes
            do throws(HTTPFailure) {
                let head: HTTPResponseHead? = try reader.next(&input)
                return .success((head, bytes.count - input.count))
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let read): return read
        case .failure(let failure): throw ProcessError("no answer: \(failure)")
        }
    }

    private func body(_ fields: HTTPFields) throws(ProcessError) -> [UInt8] {
        guard fields["transfer-encoding"] == "chunked" else {
            return try take(fields["content-length"].flatMap { Int($0) } ?? 0)
        }
        var body = [UInt8]()
        while true {
            var line = [UInt8]()
            while line.suffix(2) != [13, 10] { line += try take(1) }
            guard let count = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else {
                throw ProcessError("no chunk")
            }
            body += try take(count)
            _ = try take(2)
            if count == 0 { return body }
        }
    }

    private func take(_ count: Int) throws(ProcessError) -> [UInt8] {
        while unread.count < count { try fill() }
        defer { unread.removeFirst(count) }
        return Array(unread[..<count])
    }

    private func fill() throws(ProcessError) {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else {
            throw ProcessError(
                count < 0 && errno == EAGAIN ? "nothing came for \(Self.patience) s" : "the connection ended")
        }
        unread += bytes[..<count]
    }
}

/// Connections inside of this machine.
enum Loopback {
    /// - Parameter source: as in `Caller.init`.
    /// - Returns: false with `errno` after a failure; a connection in progress counts as made.
    static func connect(_ descriptor: Int32, port: UInt16, source: UInt32 = 1) -> Bool {
        var own = address(source, port: 0)
        let isBound = withUnsafePointer(to: &own) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                bind(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound else { return false }
        var other = address(1, port: port)
        let result = withUnsafePointer(to: &other) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                Glibc.connect(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return result == 0 || errno == EINPROGRESS
    }

    private static func address(_ host: UInt32, port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = (0x7F00_0000 | host & 0xFF_FFFF).bigEndian
        return address
    }
}
