internal import CThicketNet
import Glibc
import ThicketProtocol

/// Whose a connection is, where proxies stand before the server.
final class PeerNames {
    /// Who speaks to us, or whom its proxy's preface named.
    var peer: IPAddress
    /// Whose the newest request is.
    var client: IPAddress
    /// Its proxy did not say who the client is: then the client's own word about that does not count either.
    var isUnknown = false

    init(_ peer: IPAddress) { (self.peer, client) = (peer, peer) }
}

/// What a connection has to say before its first request.
final class Greeting {
    /// What its proxy says of its client.
    var preface: ProxyPreface?
    /// Whether TLS comes then.
    let isSecure: Bool

    init(preface: ProxyPreface?, isSecure: Bool) { (self.preface, self.isSecure) = (preface, isSecure) }
}

extension IPAddress {
    /// The other end of a socket; nil where it has no internet address.
    init?(peerOf descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(thicket_address_bytes(descriptor, 1, &bytes))
        self.init(bytes: bytes.prefix(count))
    }

    /// Our end of a socket; nil where it has no internet address.
    init?(ownOf descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(thicket_address_bytes(descriptor, 0, &bytes))
        self.init(bytes: bytes.prefix(count))
    }
}

// What proxies say of their clients, and what comes before the first request.
extension EventLoop {
    /// The client's address without its port; empty for a Unix-domain socket or a connection that is gone. Behind a
    /// proxy that is trusted it is the one that the proxy named for the newest request.
    public func peerAddress(_ id: ConnectionID) -> String {
        guard let connection = lookup(id) else { return "" }
        if let names = connection.names { return names.client.description }
        return IPAddress(peerOf: connection.id.slot)?.description ?? ""
    }

    /// A connection was accepted: notes whose it is, and what it has to say first.
    func name(_ connection: Connection) {
        let isSecure = connection.listener.isSecure
        var preface: ProxyPreface?
        if !settings.trustedProxies.isEmpty, let peer = IPAddress(peerOf: connection.id.slot) {
            connection.names = PeerNames(peer)
            if settings.takesPrefaces, settings.trustedProxies.contains(peer) { preface = ProxyPreface() }
        }
        if isSecure || preface != nil { connection.greeting = Greeting(preface: preface, isSecure: isSecure) }
    }

    /// Whose a request is.
    func name(_ request: HTTPRequest, _ connection: Connection) {
        guard let names = connection.names, !names.isUnknown else { return }
        names.client = settings.trustedProxies.client(of: names.peer, request.fields)
    }

    /// Reads what comes before the first request.
    /// - Returns: whether to read on.
    func greet(_ connection: Connection, _ greeting: Greeting) -> Bool {
        if greeting.preface != nil, !readPreface(connection, greeting) { return false }
        guard greeting.isSecure else {
            connection.greeting = nil
            return true
        }
        return greetSecurely(connection)
    }

    /// Bytes looked at for a preface at once.
    private static let prefaceLook = 256

    /// Takes only what belongs to it: what stands behind it is OpenSSL's, or the first request.
    private func readPreface(_ connection: Connection, _ greeting: Greeting) -> Bool {
        guard let count = look(connection, Self.prefaceLook) else { return false }
        var input = UnsafeRawBufferPointer(rebasing: scratch[..<count])
        do throws(ProxyPreface.Failure) {
            var preface = greeting.preface ?? .init()
            let isComplete = try preface.take(&input)
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

    /// Looks at what has come without taking it, into the loop's buffer.
    /// - Returns: nil when there is nothing, or the connection is over.
    func look(_ connection: Connection, _ most: Int) -> Int? {
        let count = thicket_peek(connection.id.slot, scratch.baseAddress, most)
        guard count <= 0 else { return count }
        if count == 0 || (errno != EAGAIN && errno != EINTR) { drop(connection, .vanished) }
        return nil
    }
}
