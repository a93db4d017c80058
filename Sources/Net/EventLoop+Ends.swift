import ThicketProtocol

// Ends connections without a close exchange: their deadline has passed or their peer is gone. Thousands may end at
// once, and the kernel takes some microseconds to close each. So a turn ends as many as fit into its time for that,
// charged to their tenants, and the next turn continues.
extension EventLoop {
    /// Nanoseconds per turn for each kind of end, at least enough for one connection.
    private var endTime: Int64 { max(1, settings.endNanosecondsPerTurn) }

    /// Ends some of the connections that must end.
    func endSome() {
        endBroken()
        if now >= nextSweep { beginSweep() }
        sweepOn()
    }

    // MARK: Peers that are gone

    /// Epoll reports a broken connection that is not being read. It reports it once: otherwise thousands of them would
    /// fill every turn, ahead of other events, until they are ended.
    func reportsBroken(_ connection: Connection) {
        guard connection.phase != .dead, !connection.isBroken else { return }
        connection.isBroken = true
        broken.append(connection)
        watch(connection)
    }

    private func endBroken() {
        var used: Int64 = 0
        while used < endTime, let connection = broken.popFirst() {
            connection.isBroken = false
            // A connection with read interest is reported again and read to its end.
            guard connection.phase != .dead && !connection.watchesReads else { continue }
            used += timed(connection.tenant, isWanted: false) {
                broke(connection)
                watch(connection)
            }
        }
    }

    // MARK: Deadlines

    /// Starts a sweep over all deadlines, unless one is in progress.
    private func beginSweep() {
        nextSweep = now + sweepInterval
        if sweepNext == nil { sweepNext = 0 }
        forgetTenants()
    }

    /// Deadlines are contiguous in one array, so that checking 100,000 takes microseconds. The sweep has its own time:
    /// however many peers leave, expired connections are found.
    private func sweepOn() {
        guard var slot = sweepNext else { return }
        var used: Int64 = 0
        while slot < deadlines.count {
            if deadlines[slot] <= now, let connection = connections[slot], !waitsInRow(connection) {
                guard used < endTime else {
                    sweepNext = slot
                    return
                }
                used += timed(connection.tenant, isWanted: false) { expired(connection) }
            }
            slot += 1
        }
        sweepNext = nil
    }

    /// Input that arrived in time is read first; `serve` checks the deadline after that.
    private func waitsInRow(_ connection: Connection) -> Bool {
        connection.isQueued && (connection.phase == .http || connection.phase == .open)
    }

    func expired(_ connection: Connection) {
        switch connection.phase {
        // Input that arrived in time may wait; the deadline is checked again when it was read (`serve`, and the next
        // sweep).
        case .http where waitsUnread(connection), .open where waitsUnread(connection): break
        case .http:
            if connection.tls?.isHandshaking == true {
                metrics.tlsHandshakes.add(1, .timeout)
                metrics.limitHit(.handshakeTime)
            }
            guard let exchange = connection.exchange, exchange.requests.isInsideRequest else {
                if connection.hasOutput { metrics.limitHit(.readPace) }
                return drop(connection, .idle)
            }
            metrics.limitHit(exchange.requests.isInsideBody ? .bodyPace : .headTime)
            metrics.httpErrors.add(1, .timeout)
            enqueue(connection, HTTPResponse(status: 408, closes: true).encoded(for: nil, date: date.text(now)))
            drain(connection)
        case .open:
            guard !connection.isPaused || connection.isGone else { return touch(connection) }
            if connection.gathered > 0 { metrics.limitHit(.messagePace) }
            close(connection, .goingAway, reason: "idle", .idle)
        case .draining where !connection.outbox.isEmpty:
            metrics.limitHit(.readPace)
            drop(connection, .vanished)
        case .closing, .draining: drop(connection, .vanished)
        case .dead: break
        }
    }
}
