import Glibc
import Synchronization
import ThicketPlatform
import ThicketServer

/// A TCP relay in this process that passes exactly the bytes that the test has allowed each way: a slow link whose
/// ticks are events.
///
/// `@unchecked`: the state is behind its mutex, the descriptors never change, and the links belong to the thread.
final class SlowRelay: @unchecked Sendable {
    private struct State {
        /// Bytes that may still pass, client to server and back.
        var allowed: (up: Int, down: Int) = (0, 0)
        var connections = 0
        var isOver = false
    }

    private final class Link {
        let client: Int32
        let server: Int32
        var isOver = false
        init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }
    }

    let port: Int
    private let target: Int
    private let listener: Int32
    private let wakeup: (read: Int32, write: Int32)
    private let state: Mutex<State> = Mutex(State())
    private var links = [Link]()
    private var thread: OwnThread?

    /// Bytes that the kernel may buffer: data that is not allowed yet stays with its sender.
    private static let bufferBytes: Int32 = 16 << 10
    private static let segmentBytes: Int32 = 1_400

    init(to target: Int) throws {
        self.target = target
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var size = Self.bufferBytes
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        // Segments as on a real network: loopback's of 64 KiB would be acknowledged in steps of half the window.
        var segment = Self.segmentBytes
        setsockopt(listener, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, socklen_t(MemoryLayout<Int32>.size))
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status: Int32 = withUnsafeMutablePointer(to: &address) {
            (address: UnsafeMutablePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                (plain: UnsafeMutablePointer<sockaddr>) in
                bind(listener, plain, length) | listen(listener, 16) | getsockname(listener, plain, &length)
            }
        }
        var ends: [Int32] = [-1, -1]
        guard status == 0, pipe(&ends) == 0 else { throw TransportFailure("no relay: error \(errno)") }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        wakeup = (ends[0], ends[1])
        port = Int(UInt16(bigEndian: address.sin_port))
        thread = OwnThread("relay") { self.run() }
    }

    /// Ends the relay and all its connections; to be called once at the end.
    func stop() {
        state.withLock { $0.isOver = true }
        ring()
        thread?.join()
        for descriptor: Int32 in [listener, wakeup.read, wakeup.write] { close(descriptor) }
    }

    /// Connections made so far.
    var connectionCount: Int { state.withLock { $0.connections } }

    /// Allows further bytes to pass.
    func allow(up: Int, down: Int) {
        state.withLock { $0.allowed = ($0.allowed.up + up, $0.allowed.down + down) }
        ring()
    }

    /// Sets the number of bytes that may pass upwards from now on.
    func restrict(up: Int) { state.withLock { $0.allowed.up = up } }

    /// Whether all that was allowed, upwards or back, has passed.
    var isUsedUp: Bool { state.withLock { $0.allowed.up == 0 || $0.allowed.down == 0 } }

    /// Waits until all that was allowed upwards has passed.
    func waitUntilUsed() throws {
        for _ in 0..<4_000 {
            if state.withLock({ $0.allowed.up }) == 0 { return }
            poll(nil, 0, 5)
        }
        throw TransportFailure("nobody used what the relay lets pass upwards")
    }

    // MARK: On the relay's thread

    private func run() {
        while !state.withLock({ $0.isOver }) {
            let allowed: (up: Int, down: Int) = state.withLock { $0.allowed }
            var watched: [pollfd] = [
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wakeup.read, events: Int16(POLLIN), revents: 0),
            ]
            for link in links {
                watched.append(
                    pollfd(fd: allowed.up > 0 ? link.client : -1, events: Int16(POLLIN), revents: 0))
                watched.append(
                    pollfd(fd: allowed.down > 0 ? link.server : -1, events: Int16(POLLIN), revents: 0))
            }
            guard poll(&watched, nfds_t(watched.count), -1) > 0 else { continue }
            var byte = [UInt8](repeating: 0, count: 64)
            if watched[1].revents != 0 { while read(wakeup.read, &byte, byte.count) > 0 {} }
            for (place, link) in links.enumerated() {
                if watched[2 + 2 * place].revents != 0 {
                    pass(link, from: link.client, to: link.server, \.up)
                }
                if watched[3 + 2 * place].revents != 0 {
                    pass(link, from: link.server, to: link.client, \.down)
                }
            }
            for link in links where link.isOver { end(link) }
            links.removeAll(where: \.isOver)
            if watched[0].revents != 0 { acceptLink() }
        }
        for link in links { end(link) }
    }

    private func acceptLink() {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(UInt16(target))
        let status = withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                (plain: UnsafePointer<sockaddr>) in
                connect(server, plain, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let link = Link(client: client, server: server)
        guard status == 0 else { return end(link) }
        links.append(link)
        state.withLock { $0.connections += 1 }
    }

    private func pass(
        _ link: Link, from source: Int32, to target: Int32,
        _ way: WritableKeyPath<(up: Int, down: Int), Int>
    ) {
        let room = state.withLock { min($0.allowed[keyPath: way], 64 << 10) }
        guard room > 0, !link.isOver else { return }
        var bytes = [UInt8](repeating: 0, count: room)
        let count: Int = recv(source, &bytes, room, 0)
        guard count > 0 else {
            link.isOver = true
            return
        }
        var sent = 0
        while sent < count {
            let taken = bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                send(target, bytes.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
            }
            guard taken > 0 else {
                link.isOver = true
                return
            }
            sent += taken
        }
        state.withLock { $0.allowed[keyPath: way] = max(0, $0.allowed[keyPath: way] - count) }
    }

    private func end(_ link: Link) {
        link.isOver = true
        close(link.client)
        close(link.server)
    }

    private func ring() {
        var byte: UInt8 = 1
        _ = write(wakeup.write, &byte, 1)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
