internal import CThicketNet
import Glibc
import ThicketPlatform
import ThicketProtocol

extension EventLoop {
    /// Listens on a TCP address.
    ///
    /// - Parameters:
    ///   - host: a numeric address or a name; empty for every address of this machine.
    ///   - port: 0 picks a free port, which the result reports.
    ///   - isSecure: connections use TLS; `use(_: TLSContext)` must have been called.
    public func listen(host: String, port: Int, isSecure: Bool = false) throws(NetError) -> Listener {
        let shown = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        let descriptor = thicket_listen_tcp(host, String(port), settings.backlog)
        guard descriptor >= 0 else {
            let reason =
                descriptor <= -9_000
                ? String(cString: gai_strerror(descriptor + 10_000)) : SystemError.reason(-descriptor)
            throw NetError.listen(address: "\(shown):\(port)", reason: reason)
        }
        thicket_unsent_max(descriptor, Self.unsentMax)
        let bound = Int(thicket_local_port(descriptor))
        return try register(descriptor, address: "\(shown):\(bound)", port: bound, isSecure: isSecure)
    }

    /// Listens on a Unix-domain socket that only this system user may open.
    ///
    /// A socket file left by a dead server is replaced. The file is not removed at the end.
    public func listen(path: String) throws(NetError) -> Listener {
        let descriptor = thicket_listen_unix(path, settings.backlog)
        guard descriptor >= 0 else { throw NetError.listen(address: path, reason: SystemError.reason(-descriptor)) }
        return try register(descriptor, address: path, port: 0)
    }

    /// Unsent bytes that the kernel buffers for one connection. It reports the socket as writable when half of them are
    /// sent, which is as much as a turn writes.
    static let unsentMax: UInt32 = 512 << 10

    private func register(
        _ descriptor: Int32, address: String, port: Int, isSecure: Bool = false
    ) throws(NetError) -> Listener {
        guard poller.add(descriptor, reads: true, writes: false, token: UInt64(UInt32(descriptor))) else {
            _ = Glibc.close(descriptor)
            throw NetError.listen(address: address, reason: SystemError.reason(errno))
        }
        let listener = Listener(number: listenerCount, port: port, address: address, isSecure: isSecure)
        listenerCount += 1
        listeners[descriptor] = listener
        return listener
    }

    func stopListening() {
        for descriptor in listeners.keys {
            poller.remove(descriptor)
            _ = Glibc.close(descriptor)
        }
        listeners = [:]
    }

    /// Accepts until no connection waits or this turn's time for it is over.
    func accept(_ descriptor: Int32, _ listener: Listener) {
        // New connections wait in the kernel while the unauthenticated ones are throttled.
        guard unauthenticated.throttledUntil <= now else {
            return mute(descriptor, listener, for: .nanoseconds(unauthenticated.throttledUntil - now))
        }
        timed(unauthenticated) { acceptAll(descriptor, listener) }
    }

    private func acceptAll(_ descriptor: Int32, _ listener: Listener) {
        let end = thicket_monotonic_ns() + settings.acceptNanosecondsPerTurn
        repeat {
            let accepted = thicket_accept(descriptor)
            if accepted >= 0 {
                admit(accepted, listener)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED, EPROTO, EPERM: continue
            case EMFILE, ENFILE:
                guard refuseWithSpare(descriptor, listener) else { return mute(descriptor, listener) }
            case EAGAIN: return
            default: return mute(descriptor, listener)
            }
        } while thicket_monotonic_ns() < end
    }

    /// Pauses a listener that would stay ready: the kernel cannot accept (no memory, no descriptor), or unauthenticated
    /// connections are throttled.
    func mute(_ descriptor: Int32, _ listener: Listener, for pause: Duration = listenerPause) {
        let token = UInt64(UInt32(descriptor))
        poller.change(descriptor, reads: false, writes: false, token: token)
        schedule(after: pause) { [unowned self] in
            guard listeners[descriptor]?.number == listener.number else { return }
            if spareDescriptor < 0 { spareDescriptor = thicket_spare_descriptor() }
            poller.change(descriptor, reads: true, writes: false, token: token)
        }
    }

    /// How long a listener pauses when the kernel cannot accept.
    private static let listenerPause = Duration.milliseconds(100)

    private func admit(_ descriptor: Int32, _ listener: Listener) {
        guard connectionCount < settings.connectionsMax && Int(descriptor) < descriptorsMax else {
            return refuse(descriptor, listener)
        }
        if listener.port != 0 {
            thicket_no_delay(descriptor)
            thicket_user_timeout(descriptor, UInt32(clamping: settings.idleTimeout.nanoseconds / 1_000_000))
        }
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        let id = ConnectionID(slot: descriptor, serial: lastSerial)
        guard poller.add(descriptor, reads: true, writes: false, token: id.token) else {
            return refuse(descriptor, listener)
        }
        if Int(descriptor) >= connections.count {
            let missing = max(64, Int(descriptor) + 1 - connections.count, connections.count / 2)
            connections.append(contentsOf: repeatElement(nil, count: missing))
            deadlines.append(contentsOf: repeatElement(.max, count: missing))
        }
        let connection = Connection(id: id, listener: listener, tenant: unauthenticated, settings: settings)
        name(connection)
        unauthenticated.members += 1
        connections[Int(descriptor)] = connection
        if connectionCount == 0 { nextSweep = now + sweepInterval }
        connectionCount += 1
        expire(connection, after: settings.requestTimeout)
        metrics.connectionsAccepted.add()
        metrics.connections.add()
    }

    private func refuse(_ descriptor: Int32, _ listener: Listener) {
        metrics.connectionsRefused.add()
        metrics.limitHit(.connections)
        // A TLS handshake would cost more than the server has left.
        guard !listener.isSecure else {
            _ = Glibc.close(descriptor)
            return
        }
        let answer = HTTPResponse(
            status: 503, fields: [.init("retry-after", "5")], closes: true
        ).encoded(for: nil)
        _ = thicket_send(descriptor, answer, answer.count)
        _ = thicket_shut_write(descriptor)
        _ = Glibc.close(descriptor)
    }

    /// Out of descriptors: uses the spare one to answer a waiting client, which otherwise would wait forever and keep
    /// the listener ready.
    ///
    /// - Returns: whether another attempt is useful.
    private func refuseWithSpare(_ descriptor: Int32, _ listener: Listener) -> Bool {
        guard spareDescriptor >= 0 else { return false }
        _ = Glibc.close(spareDescriptor)
        spareDescriptor = -1
        let accepted = thicket_accept(descriptor)
        if accepted >= 0 { refuse(accepted, listener) }
        spareDescriptor = thicket_spare_descriptor()
        return accepted >= 0
    }
}

extension ConnectionID {
    /// The token that epoll reports for it.
    var token: UInt64 { UInt64(serial) << 32 | UInt64(UInt32(bitPattern: slot)) }
}
