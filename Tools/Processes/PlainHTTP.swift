import Glibc

/// One plain HTTP request to a server on this machine.
public enum PlainHTTP {
    /// The whole answer, head and body.
    /// - Throws: without an answer within 5 s.
    public static func get(_ path: String, port: UInt16) throws(ProcessError) -> String {
        try exchange("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", port)
    }

    /// The same with a body.
    /// - Parameter fields: lines such as `Name: value`.
    public static func post(
        _ port: UInt16, _ path: String, _ body: String, fields: [String] = []
    ) throws(ProcessError) -> String {
        let lines = fields.map { $0 + "\r\n" }.joined()
        let head = "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + lines
        return try exchange(head + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)", port)
    }

    private static func exchange(_ text: String, _ port: UInt16) throws(ProcessError) -> String {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ProcessError("no socket: \(errno)") }
        defer { close(descriptor) }
        var time = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                connect(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw ProcessError("no connection to port \(port): error \(errno)") }
        let request: [UInt8] = Array(text.utf8)
        guard Glibc.send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw ProcessError("the request could not be sent")
        }
        var answer = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { break }
            answer += chunk[..<count]
        }
        guard !answer.isEmpty else { throw ProcessError("port \(port) did not answer") }
        return String(decoding: answer, as: UTF8.self)
    }
}
