import Glibc
import ThicketCommandLine
import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// `thicketd health`: asks the running server over the network, as a load balancer would.
enum HealthCommand {
    static func run(_ config: ServerConfig) throws(CommandFailure) {
        let address = reachable(config.listen)
        let answer = try get(
            "/health/ready", address, config)
        Terminal.write(answer.body.hasSuffix("\n") ? answer.body : answer.body + "\n")
        if answer.status != 200 { throw CommandFailure("the server at \(address) is not ready") }
    }

    /// The address to connect to: for a wildcard address that the server listens on, the loopback address.
    private static func reachable(_ listen: ListenAddress) -> ListenAddress {
        switch listen.host {
        case "0.0.0.0": ListenAddress(host: "127.0.0.1", port: listen.port)
        case "::": ListenAddress(host: "::1", port: listen.port)
        default: listen
        }
    }

    private static func get(
        _ path: String, _ address: ListenAddress, _ config: ServerConfig
    ) throws(CommandFailure) -> (status: Int, body: String) {
        let socket = try connect(address)
        defer { close(socket) }
        signal(SIGPIPE, SIG_IGN)
        // When the server takes this machine for a proxy, the header of a proxy that speaks for itself.
        if config.proxyProtocol, let own = IPAddress(ownOf: socket), config.trustedProxies.contains(own) {
            _ = UnixAddress.sendAll(Array("PROXY UNKNOWN\r\n".utf8), to: socket)
        }
        let request = "GET \(path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"
        let bytes = TLSFiles(config) != nil ? securely(request, socket) : plainly(request, socket)
        let text = String(decoding: bytes, as: UTF8.self)
        let words: [Substring] = text.prefix { $0 != "\r\n" }.split(separator: " ")
        guard words.count > 1, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
            throw CommandFailure("the program listening on \(address) does not answer like thicketd")
        }
        let body: Substring = text.firstRange(of: "\r\n\r\n").map { text[$0.upperBound...] } ?? ""
        return (status, String(body))
    }

    /// Largest answer, bytes.
    private static let answerBytesMax = 65_536

    private static func plainly(_ request: String, _ socket: Int32) -> [UInt8] {
        var bytes = [UInt8]()
        guard UnixAddress.sendAll(Array(request.utf8), to: socket) else { return [] }
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < answerBytesMax, case let count = read(socket, &chunk, chunk.count), count > 0 {
            bytes += chunk[..<count]
        }
        return bytes
    }

    /// The certificate is not verified: nothing secret is sent, and it names the server as clients reach it, which
    /// is not the address used here.
    private static func securely(_ request: String, _ socket: Int32) -> [UInt8] {
        guard let context = TLSClientSocket.Context(), let tls = TLSClientSocket(socket, context),
            Array(request.utf8).withUnsafeBytes(tls.write)
        else { return [] }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < answerBytesMax {
            let count = chunk.withUnsafeMutableBytes(tls.read)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        tls.sayFarewell()
        return bytes
    }

    private static func connect(_ address: ListenAddress) throws(CommandFailure) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(address.host, String(address.port), &hints, &found)
        defer { if let found { freeaddrinfo(found) } }
        guard result == 0 else {
            throw CommandFailure("\(address.host) has no address: \(String(cString: gai_strerror(result)))")
        }
        var next = found
        while let candidate = next?.pointee {
            let made = socket(candidate.ai_family, candidate.ai_socktype | Int32(O_CLOEXEC), 0)
            if made >= 0 {
                UnixAddress.limitWaiting(made, seconds: 3)
                if Glibc.connect(made, candidate.ai_addr, candidate.ai_addrlen) == 0 { return made }
                close(made)
            }
            next = candidate.ai_next
        }
        throw CommandFailure("no server listens on \(address): \(DataFolder.reason(errno))", .noServer)
    }
}
