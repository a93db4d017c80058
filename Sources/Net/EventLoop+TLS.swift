internal import CThicketNet
import Glibc
import ThicketProtocol

// TLS sits between the socket and the rest of the loop, which sees only plain bytes.
extension EventLoop {
    /// Uses this certificate for new connections of secure listeners. Open connections keep theirs.
    public func use(_ context: TLSContext) {
        checkThread()
        if let old = tls { context.adoptTicketKeys(of: old) }
        tls = context
        metrics.tlsCertificateEnd.set(Int(context.validity.upperBound))
    }

    /// The first byte that a TLS client sends: a handshake record (RFC 8446, 5.1).
    private static let helloByte: UInt8 = 0x16

    /// Checks the first byte of a connection, so that only TLS connections get memory for TLS.
    /// - Returns: whether to read on.
    func greetSecurely(_ connection: Connection) -> Bool {
        guard look(connection, 1) != nil else { return false }
        guard scratch[0] == Self.helloByte else {
            refusePlain(connection)
            return false
        }
        guard let stream = tls?.accept(connection.id.slot, now: now) else {
            drop(connection, .vanished)
            return false
        }
        (connection.greeting, connection.tls) = (nil, stream)
        return true
    }

    /// Answers a client that does not use TLS in plain HTTP, which most such clients understand.
    private func refusePlain(_ connection: Connection) {
        metrics.tlsHandshakes.add(1, .plain)
        connection.greeting = nil
        let answer = HTTPResponse.text(
            400, "this port requires TLS: use an https:// or wss:// address\n", closes: true)
        enqueue(connection, answer.encoded(for: nil, date: date.text(now)))
        drain(connection)
    }

    /// Reads what the socket and OpenSSL hold, up to the size of the buffer.
    func receive(_ connection: Connection, _ stream: TLSStream) {
        guard connection.phase != .draining else { return discard(connection) }
        guard !stream.isHandshaking || shakeHands(connection, stream) else { return }
        let (count, stop) = stream.read(into: scratch)
        if count > 0 {
            metrics.receivedBytes.add(count)
            var input = UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])
            received(connection, count)
            consume(connection, &input)
        }
        guard connection.phase != .dead else { return }
        switch stop {
        case .ended, .broken:
            // Earlier input is handled first; OpenSSL reports the end again.
            guard connection.backlog.isEmpty else {
                stream.hasMore = true
                return
            }
            stop == .ended ? inputEnded(connection) : drop(connection, .vanished)
        case .wantsWrite:
            connection.isBlocked = true
            watch(connection)
        case .bytes, .wantsRead, nil: break
        }
        if stream.hasMore { resume(connection) }
    }

    /// Reads bytes that OpenSSL may hold and epoll does not report.
    func receiveMore(_ connection: Connection) {
        guard let stream = connection.tls, stream.hasMore else { return }
        guard connection.backlog.isEmpty, connection.mayConsume else { return }
        receive(connection, stream)
    }

    /// Tells browsers to use TLS only (RFC 6797).
    func secure(_ response: inout HTTPResponse, _ connection: Connection) {
        guard connection.tls != nil, settings.hstsSeconds > 0 else { return }
        response.fields.append("strict-transport-security", "max-age=\(settings.hstsSeconds)")
    }

    /// - Returns: whether the handshake is finished.
    private func shakeHands(_ connection: Connection, _ stream: TLSStream) -> Bool {
        switch stream.shakeHands() {
        case nil:
            metrics.tlsHandshakes.add(1, stream.isResumed ? .resumed : .full)
            expire(connection, after: settings.requestTimeout)
            return true
        case .wantsWrite:
            connection.isBlocked = true
            watch(connection)
        case .wantsRead, .bytes: break
        case .ended, .broken:
            metrics.tlsHandshakes.add(1, .failed)
            drain(connection)
        }
        return false
    }

    /// Discards input while waiting for the peer's end, without decrypting it.
    private func discard(_ connection: Connection) {
        let count = thicket_receive(connection.id.slot, scratch.baseAddress, scratch.count)
        if count == 0 { return inputEnded(connection) }
        if count < 0 && errno != EAGAIN && errno != EINTR { drop(connection, .vanished) }
    }

    /// Does the same as `writeOnce`, encrypted.
    /// - Returns: whether to continue.
    func writeOnce(_ connection: Connection, _ stream: TLSStream) -> Bool {
        switch connection.outbox.withNext(gather: gather, stream.write) {
        case .bytes(let written):
            wrote(connection, written)
            return true
        case .wantsWrite: connection.isBlocked = true
        case .wantsRead, .ended, .broken: refusesBytes(connection)
        }
        return false
    }
}
