import Glibc
import Synchronization
import ThicketProcesses

/// A TCP relay on 127.0.0.1 between clients and a server, in this process, which can be pulled out. It records which
/// bytes of contents pass, from the requests that it relays, so that bytes that pass twice are measured.
///
/// `@unchecked`: the record is behind its mutex, the descriptors never change, and only the thread uses the links.
public final class Cable: @unchecked Sendable {
    struct State {
        var record = PassageRecord()
        var isPulled = false
        var isOver = false
    }

    public let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private let wakeup: (read: Int32, write: Int32)
    private let state: Mutex<State> = Mutex(State())
    private var thread = pthread_t()

    /// Listens on 127.0.0.1.
    /// - Parameter target: port of the server on this machine.
    public init(to target: UInt16) throws(ProcessError) {
        self.target = target
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let status = withUnsafeMutablePointer(to: &address) { (address: UnsafeMutablePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafeMutablePointer<sockaddr>) in
                bind(listener, plain, length) | listen(listener, 64) | getsockname(listener, plain, &length)
            }
        }
        var ends: [Int32] = [-1, -1]
        let piped: Int32 = pipe(&ends)
        wakeup = (ends[0], ends[1])
        port = UInt16(bigEndian: address.sin_port)
        guard listener >= 0, status == 0, piped == 0 else { throw ProcessError("no cable: error \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let this = Unmanaged<Cable>.passRetained(self)
        let made = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Cable>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, this.toOpaque())
        guard made == 0 else {
            this.release()
            throw ProcessError("no thread: error \(made)")
        }
    }

    /// What has passed so far.
    public var record: PassageRecord { state.withLock(\.record) }

    /// Begins the next count: what passes from now on again is counted to this interruption.
    public func countInterruption() { state.withLock { $0.record.interruptions += 1 } }

    /// Pulled: all connections end, and new ones are closed at once.
    public func setPulled(_ isPulled: Bool) {
        state.withLock { $0.isPulled = isPulled }
        wake()
    }

    /// Ends the relay with all its connections; its creator has to call this.
    public func stop() {
        state.withLock { $0.isOver = true }
        wake()
        pthread_join(thread, nil)
        for descriptor in [listener, wakeup.read, wakeup.write] { close(descriptor) }
    }

    private func wake() {
        var byte: UInt8 = 1
        _ = write(wakeup.write, &byte, 1)
    }

    // MARK: On the relay's thread

    private final class Link {
        let client: Int32
        let server: Int32
        var requests = RequestReader()
        var isOver = false

        init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }
    }

    private func run() {
        var links = [Link]()
        var bytes = [UInt8](repeating: 0, count: 256 << 10)
        while !state.withLock({ $0.isOver }) {
            var watched = [wakeup.read, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            for link in links {
                watched += [link.client, link.server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            }
            guard poll(&watched, nfds_t(watched.count), -1) > 0 else { continue }
            if watched[0].revents != 0 { _ = read(wakeup.read, &bytes, bytes.count) }
            let isPulled = state.withLock(\.isPulled)
            for (place, link) in links.enumerated() {
                if isPulled { link.isOver = true }
                if !link.isOver, watched[2 + 2 * place].revents != 0 { link.isOver = !up(link, &bytes) }
                if !link.isOver, watched[3 + 2 * place].revents != 0 {
                    link.isOver = !pass(link.server, link.client, &bytes) { _ in }
                }
                if link.isOver { end(link) }
            }
            links.removeAll(where: \.isOver)
            if watched[1].revents != 0, let link = acceptLink(isPulled) { links.append(link) }
        }
        links.forEach(end)
    }

    private func acceptLink(_ isPulled: Bool) -> Link? {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return nil }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        let server = isPulled ? -1 : socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard server >= 0, Self.connect(server, target) else {
            state.withLock { $0.record.refused += 1 }
            close(client)
            if server >= 0 { close(server) }
            return nil
        }
        var one: Int32 = 1
        for end in [client, server] {
            setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        return Link(client: client, server: server)
    }

    private func up(_ link: Link, _ bytes: inout [UInt8]) -> Bool {
        pass(link.client, link.server, &bytes) { chunk in
            state.withLock { state in link.requests.read(chunk, into: &state.record) }
        }
    }

    /// - Parameter record: gets the bytes before they are passed on.
    /// - Returns: false when the connection is over.
    private func pass(
        _ source: Int32, _ target: Int32, _ bytes: inout [UInt8], _ record: (ArraySlice<UInt8>) -> Void
    ) -> Bool {
        let count = recv(source, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        record(bytes[..<count])
        var sent = 0
        while sent < count {
            let taken = bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                send(target, bytes.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
            }
            guard taken > 0 else { return false }
            sent += taken
        }
        return true
    }

    private func end(_ link: Link) {
        close(link.client)
        close(link.server)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = port.bigEndian
        return address
    }

    private static func connect(_ descriptor: Int32, _ port: UInt16) -> Bool {
        var address = address(port)
        return withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_in>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                Glibc.connect(descriptor, plain, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
