import Glibc
import Synchronization
import ThicketProcesses

/// A program in front of a server: it answers each request by itself, or relays a server's bytes until a text has
/// passed, and nothing after it.
///
/// `@unchecked`: the mutable state is behind its mutex, the descriptors never change, and the links belong to the
/// thread.
final class FakeEdge: @unchecked Sendable {
    enum Manner: Sendable {
        /// Answers each request with this, and ends the connection.
        case answer(String)
        /// Relays to a port until the server's bytes hold this text; the connections stay open then.
        case relay(to: UInt16, until: String)
    }

    private struct Link {
        let client: Int32
        let server: Int32
        /// The bytes from the client, or from the server if the link has one.
        var seen: [UInt8] = []
    }

    let port: UInt16
    private let manner: Manner
    private let listener: Int32
    private let wakeup: (read: Int32, write: Int32)
    private let state = Mutex((isOver: false, connections: 0, isStalled: false))
    private var links: [Link] = []
    private var thread = pthread_t()

    init(_ manner: Manner) throws {
        self.manner = manner
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        self.listener = listener
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { plain in
                bind(listener, plain, length) | listen(listener, 16) | getsockname(listener, plain, &length)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        var ends: [Int32] = [-1, -1]
        guard listener >= 0, status == 0, pipe(&ends) == 0 else { throw ProcessError("no edge: error \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        wakeup = (ends[0], ends[1])
        let this = Unmanaged<FakeEdge>.passRetained(self)
        let made = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<FakeEdge>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, this.toOpaque())
        guard made == 0 else {
            this.release()
            throw ProcessError("no thread: error \(made)")
        }
    }

    var address: String { "http://127.0.0.1:\(port)" }
    var connections: Int { state.withLock(\.connections) }
    /// The text has passed, and nothing follows it.
    var isStalled: Bool { state.withLock(\.isStalled) }

    /// Ends the edge with all its connections; each test that makes one calls this at its end.
    func stop() {
        state.withLock { $0.isOver = true }
        var byte: UInt8 = 1
        _ = write(wakeup.write, &byte, 1)
        pthread_join(thread, nil)
        for descriptor in [listener, wakeup.read, wakeup.write] { close(descriptor) }
    }

    // MARK: - On the edge's thread

    private func run() {
        while !state.withLock(\.isOver) {
            var watched = [wakeup.read, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            for link in links {
                let isStalled = isStalled && link.server >= 0
                watched += [link.client, isStalled ? -1 : link.server].map {
                    pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
                }
            }
            guard poll(&watched, nfds_t(watched.count), -1) > 0 else { continue }
            var kept = [Link]()
            for (place, link) in links.enumerated() {
                var link = link
                var isOpen = true
                if watched[2 + 2 * place].revents != 0 { isOpen = relayFromClient(&link) }
                if isOpen, watched[3 + 2 * place].revents != 0 { isOpen = relayFromServer(&link) }
                if isOpen { kept.append(link) } else { end(link) }
            }
            links = kept
            if watched[1].revents != 0 { acceptLink() }
        }
        for link in links { end(link) }
    }

    private func acceptLink() {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        state.withLock { $0.connections += 1 }
        guard case .relay(let port, _) = manner else { return links.append(Link(client: client, server: -1)) }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var address = Self.address(port)
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { plain in
                connect(server, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let link = Link(client: client, server: server)
        if status == 0 { links.append(link) } else { end(link) }
    }

    private func relayFromClient(_ link: inout Link) -> Bool {
        guard let bytes = bytes(link.client) else { return false }
        guard case .answer(let text) = manner else { return send(bytes, to: link.server) }
        link.seen += bytes
        guard String(decoding: link.seen, as: UTF8.self).contains("\r\n\r\n") else { return true }
        _ = send(Array(text.utf8), to: link.client)
        shutdown(link.client, Int32(SHUT_WR))
        return false
    }

    private func relayFromServer(_ link: inout Link) -> Bool {
        guard case .relay(_, let mark) = manner, let bytes = bytes(link.server) else { return false }
        link.seen += bytes
        if String(decoding: link.seen, as: UTF8.self).contains(mark) { state.withLock { $0.isStalled = true } }
        return send(bytes, to: link.client)
    }

    /// At most 4,096 bytes, so a small message passes as a whole, and little of a long one follows the text; nil when
    /// the other side has ended.
    private func bytes(_ descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    private func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let taken = bytes.withUnsafeBytes { bytes in
                Glibc.send(
                    descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard taken > 0 else { return false }
            sent += taken
        }
        return true
    }

    private func end(_ link: Link) {
        close(link.client)
        if link.server >= 0 { close(link.server) }
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }
}
