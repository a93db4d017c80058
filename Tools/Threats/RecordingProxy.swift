import Glibc
import Synchronization
import ThicketProcesses

/// A TCP relay in this process that keeps every byte, both ways, of every connection.
///
/// `@unchecked`: the recording is behind its mutex, the descriptors never change, and only the thread uses the links.
public final class RecordingProxy: @unchecked Sendable {
    /// One connection.
    public struct Line: Sendable {
        /// From the client to the server, and back.
        public internal(set) var up: [UInt8] = []
        public internal(set) var down: [UInt8] = []
    }

    private struct State {
        var lines = [Line]()
        var open = 0
        var isOver = false
    }

    private struct Link {
        let number: Int
        let client: Int32
        let server: Int32
    }

    /// Largest number of recorded bytes, so that an endless client does not fill the memory.
    private static let recordedBytesMax = 64 << 20

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
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
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
        guard listener >= 0, status == 0, piped == 0 else { throw ProcessError("no proxy: error \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let this = Unmanaged<RecordingProxy>.passRetained(self)
        let made = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<RecordingProxy>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, this.toOpaque())
        guard made == 0 else {
            this.release()
            throw ProcessError("no thread: error \(made)")
        }
    }

    /// Ends the proxy with all its connections; its creator has to call this.
    public func stop() {
        state.withLock { $0.isOver = true }
        var byte: UInt8 = 1
        _ = write(wakeup.write, &byte, 1)
        pthread_join(thread, nil)
        for descriptor in [listener, wakeup.read, wakeup.write] { close(descriptor) }
    }

    /// What was recorded so far.
    public var lines: [Line] { state.withLock(\.lines) }

    /// Waits until all connections have ended, so that no bytes are in transit.
    public func quiet() throws(ProcessError) {
        let isQuiet = Steady.waitFor { state.withLock { $0.open } == 0 ? true : nil }
        guard isQuiet != nil else { throw ProcessError("\(state.withLock { $0.open }) connections do not end") }
    }

    // MARK: On the proxy's thread

    private func run() {
        var links = [Link]()
        while !state.withLock({ $0.isOver }) {
            var watched = [wakeup.read, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            for link in links {
                watched += [link.client, link.server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            }
            guard poll(&watched, nfds_t(watched.count), -1) > 0 else { continue }
            var ended = Set<Int>()
            for (place, link) in links.enumerated() {
                if watched[2 + 2 * place].revents != 0, !pass(link, link.client, link.server, \.up) {
                    ended.insert(link.number)
                } else if watched[3 + 2 * place].revents != 0, !pass(link, link.server, link.client, \.down) {
                    ended.insert(link.number)
                }
            }
            for link in links where ended.contains(link.number) { end(link) }
            links.removeAll { ended.contains($0.number) }
            if watched[1].revents != 0, let link = acceptLink() { links.append(link) }
        }
        for link in links { end(link) }
    }

    private func acceptLink() -> Link? {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return nil }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard server >= 0, Loopback.connect(server, port: target) else {
            close(client)
            if server >= 0 { close(server) }
            return nil
        }
        var one: Int32 = 1
        for end in [client, server] {
            setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        return state.withLock { state in
            state.lines.append(Line())
            state.open += 1
            return Link(number: state.lines.count - 1, client: client, server: server)
        }
    }

    /// - Returns: false when the connection is over.
    private func pass(_ link: Link, _ source: Int32, _ target: Int32, _ way: WritableKeyPath<Line, [UInt8]>) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(source, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        // Recorded before it is passed on, so that an answer that has arrived is in the recording.
        let isKept = state.withLock { state in
            state.lines[link.number][keyPath: way] += bytes[..<count]
            return state.lines.reduce(0) { $0 + $1.up.count + $1.down.count } <= Self.recordedBytesMax
        }
        precondition(isKept, "a recording has more than \(Self.recordedBytesMax) bytes")
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
        state.withLock { $0.open -= 1 }
    }
}
