internal import CThicketNet
import Glibc
import ThicketProtocol

extension EventLoop {
    /// Closes a WebSocket: a close frame behind what is queued, then the peer has the close timeout to answer. The
    /// delegate hears of it by `closed`, as of every end. An HTTP connection is closed behind what is queued.
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
        if let label = Metrics.CloseCode(known: code) { metrics.webSocketErrors.add(1, label) }
        self.end(connection, end)
        connection.phase = .closing
        expire(connection, after: settings.closeTimeout)
        if connection.hasUnread { resume(connection) }
        watch(connection)
    }

    /// What a stop means for one connection.
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

    /// Remembers that an open WebSocket has ended; the delegate is told at the end of the turn. The caller takes the
    /// connection out of its open phase, so it happens once.
    func end(_ connection: Connection, _ end: ConnectionEnd) {
        guard connection.phase == .open else { return }
        ended.append((connection.id, end))
        metrics.webSockets.subtract()
        metrics.connectionsClosed.add(1, .init(end))
    }

    /// Lets what is queued go out, then shuts our direction and waits a little for the peer to do so too.
    func drain(_ connection: Connection) {
        guard connection.phase != .dead && connection.phase != .draining else { return }
        let isResponse = connection.phase == .http && !connection.outbox.isEmpty
        if connection.phase == .http { metrics.connectionsClosed.add(1, isStopping ? .shutdown : .done) }
        connection.phase = .draining
        connection.backlog = []
        forgetStream(connection)
        connection.exchange = nil
        forgetGathered(connection)
        // A response that is long in being read is not cut off for that.
        expire(connection, after: isResponse ? settings.keepAliveTimeout : settings.lingerTimeout)
        if connection.outbox.isEmpty { finishWriting(connection) }
        watch(connection)
    }

    /// Everything is out. A close of the socket now could reset the connection and destroy bytes the peer has not read
    /// yet, so only our direction is shut; the peer's end, or the linger timeout, does the rest.
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

    /// Closes the descriptor. `end` is what a WebSocket's end is called if it was not told yet.
    func drop(_ connection: Connection, _ end: ConnectionEnd) {
        guard connection.phase != .dead else { return }
        self.end(connection, end)
        if connection.phase == .http { metrics.connectionsClosed.add(1, .init(end)) }
        if connection.isWatched { ended.append((connection.id, end)) }
        forgetStream(connection)
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
        move(connection, to: strangers)
        strangers.members -= 1
        // What the socket does not take now is not said.
        _ = connection.tls?.sayFarewell()
        (connection.tls, connection.greeting) = (nil, nil)
        _ = Glibc.close(connection.id.slot)
    }

    /// With what it has gathered. Nobody looks at that: whoever waits is not being read.
    private func leaveRow(_ connection: Connection) {
        guard connection.isQueued else { return }
        connection.row?.remove(connection)
        connection.exchange = nil
        connection.reader.finish()
    }

    /// Only the count: the delegate may be looking at the bytes just now.
    private func forgetGathered(_ connection: Connection) {
        gatheredTotal -= connection.gathered
        connection.group.gathered -= connection.gathered
        connection.gathered = 0
    }

    // MARK: Reading on

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
            // Otherwise it stands in its group's row.
            _ = reads(connection) { readOn(connection) }
        }
    }

    /// Handles what was read before.
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

    /// A sign of life of a WebSocket's peer: a byte from it, or a byte of ours that it took.
    func touch(_ connection: Connection) { expire(connection, after: settings.idleTimeout) }

    /// Sets the time at which the connection is given up; nil: never.
    func expire(_ connection: Connection, after delay: Duration?) {
        deadlines[Int(connection.id.slot)] = delay.map { now + $0.nanoseconds } ?? .max
    }
}
