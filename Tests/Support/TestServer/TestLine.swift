import Glibc
import ThicketNet
import ThicketServer
import ThicketTestSupport

/// A client's socket to a server of a test, with TLS where that server speaks it.
final class TestLine {
    let descriptor: Int32
    private let tls: TLSClientSocket?
    private static let context: TLSClientSocket.Context? = .init()

    /// Connects.
    /// - Parameter receiveBytes: the kernel's buffer for what is not read.
    init(port: Int, receiveBytes: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        try TestClient.connect(descriptor, port)
        guard SecureEdge.isSecure(port: port) else {
            tls = nil
            return
        }
        guard let context = Self.context,
            let made = TLSClientSocket(descriptor, context)
        else { throw TestClient.Failure("no TLS with port \(port)") }
        tls = made
    }

    deinit { Glibc.close(descriptor) }

    /// - Returns: whether all bytes were sent.
    func send(_ bytes: [UInt8]) -> Bool {
        if let tls { return bytes.withUnsafeBytes(tls.write) }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                Glibc.send(
                    descriptor, bytes.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// - Returns: as `recv`.
    func receive(_ room: inout [UInt8], _ count: Int) -> Int {
        guard let tls else { return recv(descriptor, &room, count, 0) }
        return room.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
            tls.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<count]))
        }
    }
}
