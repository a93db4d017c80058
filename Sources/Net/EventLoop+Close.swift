internal import CThicketNet
import Glibc
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

extension EventLoop {
    /// Closes a WebSocket: a close frame follows the queued bytes, then the peer has the close timeout to answer. The
    /// delegate receives `closed`, as for every end. An HTTP connection is closed after its queued bytes.
    public func close(_ id: ConnectionID, _ code: WebSocketCloseCode = .normal, reason: String = "") {
        checkThread()
        guard let connection = lookup(id) else { return }
        if connection.phase == .http { return drain(connection) }
        close(connection, code, reason: reason, .closed(code))
    }

    func close(
        _ connection: Connection, _ code: WebSocketCloseCode, reason: String, _ end: ConnectionEnd
    ) {
        guard connection.phase == .open else { return }
        enqueue(connection, WebSocketWriter.close(code, reason: reason))
        guard connection.phase == .open else { return }
        if let label = NetMetrics.CloseCode(known: code) { metrics.webSocketErrors.add(1, label) }
        self.end(connection, end)
        connection.phase = .closing
        expire(connection, after: settings.closeTimeout)
        if connection.hasUnread { resume(connection) }
        watch(connection)
    }

    /// Ends one connection because the server stops.
    func stop(_ connection: Connection) {
        switch connection.phase {
        case .open: close(connection, .goingAway, reason: "the server stops", .stopping)
        case .http:
            let isBusy = connection.exchange?.awaited != nil || !connection.outbox.isEmpty
            if !isBusy { drop(connection, .stopping) }
        case .closing, .draining, .dead: break
        }
        watch(connection)
    }

    /// Records that an open WebSocket has ended; the delegate is notified at the end of the turn. The caller then
    /// changes the connection's phase, so this happens once.
    func end(_ connection: Connection, _ end: ConnectionEnd) {
        guard connection.phase == .open else { return }
        ended.append((connection.id, end))
        metrics.webSockets.subtract()
        metrics.connectionsClosed.add(1, .init(end))
    }

    /// Sends the queued bytes, then shuts our direction and waits briefly for the peer to do the same.
    func drain(_ connection: Connection) {
        guard connection.phase != .dead && connection.phase != .draining else { return }
        let isResponse = connection.phase == .http && !connection.outbox.isEmpty
        if connection.phase == .http { metrics.connectionsClosed.add(1, isStopping ? .shutdown : .done) }
        connection.phase = .draining
        connection.backlog = []
        forgetStream(connection)
        if connection.exchange?.incoming != nil { ended.append((connection.id, .vanished)) }
        connection.exchange = nil
        forgetGathered(connection)
        // A response that takes long to read must not be cut off.
        expire(connection, after: isResponse ? settings.keepAliveTimeout : settings.lingerTimeout)
        if connection.outbox.isEmpty { finishWriting(connection) }
        watch(connection)
    }

    /// All bytes are sent. To close the socket now could reset the connection and destroy bytes that the peer has not
    /// read. So only our direction is shut; the peer's end or the linger timeout closes the socket.
    func finishWriting(_ connection: Connection) {
        guard !connection.sawEnd, !connection.isGone else { return drop(connection, .vanished) }
        guard !connection.isShut else { return }
        if let stream = connection.tls, !stream.sayFarewell() {
            connection.isBlocked = true
            return
        }
        connection.isShut = true
        expire(connection, after: settings.lingerTimeout)
        _ = thicket_shut_write(connection.id.slot)
    }

    /// Closes the descriptor. `end` is reported as the end of a WebSocket whose end was not recorded yet.
    func drop(_ connection: Connection, _ end: ConnectionEnd) {
        guard connection.phase != .dead else { return }
        self.end(connection, end)
        if connection.phase == .http { metrics.connectionsClosed.add(1, .init(end)) }
        if connection.isWatched || connection.exchange?.incoming != nil { ended.append((connection.id, end)) }
        forgetStream(connection)
        connection.exchange?.download = nil
        connection.phase = .dead
        connections[Int(connection.id.slot)] = nil
        deadlines[Int(connection.id.slot)] = .max
        connectionCount -= 1
        forgetGathered(connection)
        countPending(connection, -connection.outbox.count)
        metrics.connections.subtract()
        connection.outbox = .init()
        connection.backlog = []
        leaveRow(connection)
        move(connection, to: unauthenticated)
        unauthenticated.members -= 1
        // TLS closure bytes that the socket does not accept now are skipped.
        _ = connection.tls?.sayFarewell()
        (connection.tls, connection.greeting) = (nil, nil)
        _ = Glibc.close(connection.id.slot)
    }

    /// Leaves the queue and drops gathered input. The input is not in use: a waiting connection is not being read.
    private func leaveRow(_ connection: Connection) {
        guard connection.isQueued else { return }
        connection.row?.remove(connection)
        connection.exchange = nil
        connection.reader.finish()
    }

    /// Resets only the count: the delegate may be using the bytes.
    private func forgetGathered(_ connection: Connection) {
        gatheredTotal -= connection.gathered
        connection.tenant.gathered -= connection.gathered
        connection.gathered = 0
    }

    // MARK: Waiting input

    /// Has the connection's waiting input handled at the end of this turn or in the next.
    func resume(_ connection: Connection) {
        guard !connection.isResuming, connection.phase != .dead else { return }
        connection.isResuming = true
        resuming.append(connection)
    }

    func resumeAll() {
        let batch = resuming
        resuming = []
        for connection in batch {
            connection.isResuming = false
            guard connection.mayConsume else { continue }
            // Otherwise the connection waits in its tenant's `row`.
            _ = reads(connection) { readOn(connection) }
        }
    }

    /// Handles input that was read earlier.
    func readOn(_ connection: Connection) {
        var backlog = connection.backlog
        connection.backlog = []
        backlog.withUnsafeMutableBytes { bytes in
            var input = bytes
            consume(connection, &input)
        }
        receiveMore(connection)
    }

    // MARK: Deadlines

    /// Restarts the idle timeout of a WebSocket after a byte was received or sent.
    func touch(_ connection: Connection) { expire(connection, after: settings.idleTimeout) }

    /// Sets the time at which the connection is dropped; nil: never.
    func expire(_ connection: Connection, after delay: Duration?) {
        deadlines[Int(connection.id.slot)] = delay.map { now + $0.nanoseconds } ?? .max
    }

    /// Extends a connection's deadline by the time that the bytes received or sent are worth.
    func holdToDataRate(_ connection: Connection, _ count: Int, patience: Duration) {
        let pace = MinimumDataRate(bytesPerSecond: settings.paceBytesPerSecond, patience: patience.nanoseconds)
        let slot = Int(connection.id.slot)
        deadlines[slot] = pace.deadline(deadlines[slot], after: count, now: now)
    }
}
