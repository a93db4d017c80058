import Glibc

/// Calls around Unix-domain sockets.
enum UnixAddress {
    static func socket() throws(ControlError) -> Int32 {
        // Linux defines SOCK_CLOEXEC as O_CLOEXEC; SOCK_CLOEXEC itself is not always imported.
        let made = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard made >= 0 else { throw ControlError("no socket: " + DataFolder.reason(errno)) }
        return made
    }

    /// Calls `bind` or `connect` with the address of a folder's control socket.
    ///
    /// An address holds 107 bytes and a folder's path may be longer, so the address refers to the open folder:
    /// `/proc/self/fd/N/control.sock`.
    static func with(
        _ folder: DataFolder, _ socket: Int32,
        _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        let opened = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { return -1 }
        defer { close(opened) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = "/proc/self/fd/\(opened)/control.sock"
        withUnsafeMutableBytes(of: &address.sun_path) { (room: UnsafeMutableRawBufferPointer) in
            room.copyBytes(from: path.utf8)
        }
        return withUnsafePointer(to: &address) { (address: UnsafePointer<sockaddr_un>) in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { (plain: UnsafePointer<sockaddr>) in
                call(socket, plain, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Bounds the time that one read or write may wait.
    static func limitWaiting(_ socket: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    /// Whether the peer has closed.
    static func isGone(_ socket: Int32) -> Bool {
        var poll = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 0) == 1 else { return false }
        if poll.revents & Int16(POLLHUP | POLLERR) != 0 { return true }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
    }

    static func sendAll(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { (all: UnsafeRawBufferPointer) in
                send(socket, all.baseAddress! + sent, all.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                return false
            }
            sent += count
        }
        return true
    }
}

/// Splits the bytes of a descriptor into lines.
struct LineReader {
    private let descriptor: Int32
    private let bytesMax: Int
    private var held = [UInt8]()
    /// Offset in `held` at which the search for a line's end continues.
    private var searched = 0

    /// - Parameter bytesMax: a longer line ends the reading.
    init(descriptor: Int32, bytesMax: Int) {
        self.descriptor = descriptor
        self.bytesMax = bytesMax
    }

    /// The next line without its end; nil at the end, on an error, or when a line is too long.
    mutating func next() -> [UInt8]? {
        while true {
            if let end = held[searched...].firstIndex(of: 0x0A) {
                let line = Array(held[..<end])
                held.removeSubrange(...end)
                searched = 0
                return line
            }
            searched = held.count
            guard held.count <= bytesMax else { return nil }
            var chunk = [UInt8](repeating: 0, count: 16_384)
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            held += chunk[..<count]
        }
    }
}
