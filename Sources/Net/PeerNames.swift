internal import CThicketNet
import Glibc
import ThicketProtocol

/// The addresses of a connection that may come through proxies.
final class PeerNames {
    /// The other end of the connection, or the client named in the proxy's preface.
    var peer: IPAddress
    /// The client of the newest request.
    var client: IPAddress
    /// The proxy did not name the client: then the client's own header about its address is not trusted either.
    var isUnknown = false

    init(_ peer: IPAddress) { (self.peer, client) = (peer, peer) }
}

/// What a connection must send before its first request.
final class Greeting {
    /// The proxy's statement about its client.
    var preface: ProxyPreface?
    /// Whether TLS follows.
    let isSecure: Bool

    init(preface: ProxyPreface?, isSecure: Bool) { (self.preface, self.isSecure) = (preface, isSecure) }
}

extension IPAddress {
    /// The other end of a socket; nil where it has no internet address.
    package init?(peerOf descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(thicket_address_bytes(descriptor, 1, &bytes))
        self.init(bytes: bytes.prefix(count))
    }

    /// Our end of a socket; nil where it has no internet address.
    package init?(ownOf descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(thicket_address_bytes(descriptor, 0, &bytes))
        self.init(bytes: bytes.prefix(count))
    }
}

// What proxies report about their clients, and what precedes the first request.
extension EventLoop {
    /// The client's address without its port; empty for a Unix-domain socket or a connection that has ended. Behind a
    /// trusted proxy it is the address that the proxy named for the newest request.
    public func peerAddress(_ id: ConnectionID) -> String {
        guard let connection = lookup(id) else { return "" }
        if let names = connection.names { return names.client.description }
        return IPAddress(peerOf: connection.id.slot)?.description ?? ""
    }

    /// Records the peer of an accepted connection, and what it must send first.
    func name(_ connection: Connection) {
        let isSecure = connection.listener.isSecure
        var preface: ProxyPreface?
        if !settings.trustedProxies.isEmpty, let peer = IPAddress(peerOf: connection.id.slot) {
            connection.names = PeerNames(peer)
            if settings.acceptsPrefaces, settings.trustedProxies.contains(peer) { preface = ProxyPreface() }
        }
        if isSecure || preface != nil { connection.greeting = Greeting(preface: preface, isSecure: isSecure) }
    }

    /// Records the client of a request.
    func name(_ request: HTTPRequest, _ connection: Connection) {
        guard let names = connection.names, !names.isUnknown else { return }
        names.client = settings.trustedProxies.client(of: names.peer, request.fields)
    }

    /// Reads what precedes the first request.
    /// - Returns: whether to read on.
    func greet(_ connection: Connection, _ greeting: Greeting) -> Bool {
        if greeting.preface != nil, !readPreface(connection, greeting) { return false }
        guard greeting.isSecure else {
            connection.greeting = nil
            return true
        }
        return greetSecurely(connection)
    }

    /// Most bytes examined for a preface at once.
    private static let prefaceLook = 256

    /// Takes only the bytes of the preface: what follows belongs to OpenSSL or to the first request.
    private func readPreface(_ connection: Connection, _ greeting: Greeting) -> Bool {
        guard let count = look(connection, Self.prefaceLook) else { return false }
        var input = UnsafeRawBufferPointer(rebasing: scratch[..<count])
        do throws(ProxyPreface.Failure) {
            var preface = greeting.preface ?? .init()
            let isComplete = try preface.consume(&input)
            greeting.preface = isComplete ? nil : preface
            _ = thicket_receive(connection.id.slot, scratch.baseAddress, count - input.count)
            guard isComplete else { return false }
            metrics.proxyPrefaces.add(1, .taken)
            if let source = preface.source { connection.names = PeerNames(source) }
            connection.names?.isUnknown = preface.source == nil
            return true
        } catch {
            metrics.proxyPrefaces.add(1, .refused)
            metrics.httpErrors.add(1, .badRequest)
            connection.greeting = nil
            let answer = HTTPResponse.text(
                400, "a connection of this proxy begins with the PROXY protocol (\(error))\n", closes: true)
            enqueue(connection, answer.encoded(for: nil, date: date.text(now)))
            drain(connection)
            return false
        }
    }

    /// Copies received bytes into the loop's buffer without taking them from the socket.
    /// - Returns: nil when nothing has arrived or the connection is over.
    func look(_ connection: Connection, _ most: Int) -> Int? {
        let count = thicket_peek(connection.id.slot, scratch.baseAddress, most)
        guard count <= 0 else { return count }
        if count == 0 || (errno != EAGAIN && errno != EINTR) { drop(connection, .vanished) }
        return nil
    }
}
