import Glibc
import ThicketProcesses

/// Accepts connections and never answers.
final class SilentServer: Sendable {
    let port: UInt16
    private let descriptor: Int32

    /// - Parameter port: 0: any that is free.
    init(port: UInt16 = 0) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var (address, length): (sockaddr_in, socklen_t) = (.init(), .init(MemoryLayout<sockaddr_in>.size))
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let (file, size) = (descriptor, length)
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { plain in
                bind(file, plain, size) | listen(file, 16) | getsockname(file, plain, &length)
            }
        }
        self.port = UInt16(bigEndian: address.sin_port)
        guard descriptor >= 0, status == 0 else { throw ProcessError("no port to listen at: error \(errno)") }
    }

    deinit { close(descriptor) }

    var address: String { "http://127.0.0.1:\(port)" }

    /// Whether a client has connected. Connections stay in the queue, so this stays true.
    var wasCalled: Bool {
        var look = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&look, 1, 0) > 0
    }
}
