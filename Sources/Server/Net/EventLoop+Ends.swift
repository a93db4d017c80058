import ThicketProtocol

// Connections that end without a word: their time is over, or their peer has gone. Thousands may at once, and closing
// each takes the kernel some microseconds: a turn ends as many as its time for that lasts, on the account of their
// groups, and the next one goes on.
extension EventLoop {
    /// Nanoseconds of a turn for each kind of end: time for one at least.
    private var endTime: Int64 { max(1, settings.endNanosecondsPerTurn) }

    /// Ends some of the connections that are to be ended.
    func endSome() {
        endBroken()
        if now >= nextSweep { beginSweep() }
        sweepOn()
    }

    // MARK: Peers that have gone

    /// Epoll says that a connection is broken of which nothing is read now. It says so once: of thousands it would tell
    /// in each turn, before anything else, until they are ended.
    func tellsBroken(_ connection: Connection) {
        guard connection.phase != .dead, !connection.isBroken else { return }
        connection.isBroken = true
        broken.append(connection)
        watch(connection)
    }

    private func endBroken() {
        var used: Int64 = 0
        while used < endTime, let connection = broken.takeFirst() {
            connection.isBroken = false
            // One that is listened to again is told of again, and read to its end.
            guard connection.phase != .dead && !connection.watchesReads else { continue }
            used += timed(connection.group, isWanted: false) {
                broke(connection)
                watch(connection)
            }
        }
    }

    // MARK: Deadlines

    /// Begins to look at every deadline, unless that is under way.
    private func beginSweep() {
        nextSweep = now + sweepInterval
        if sweepNext == nil { sweepNext = 0 }
        forgetGroups()
    }

    /// Deadlines lie side by side in one array, so 100,000 of them are a matter of microseconds. The sweep has time of
    /// its own: however many peers go, those whose time is over are found.
    private func sweepOn() {
        guard var slot = sweepNext else { return }
        var used: Int64 = 0
        while slot < deadlines.count {
            if deadlines[slot] <= now, let connection = connections[slot], !waitsInRow(connection) {
                guard used < endTime else {
                    sweepNext = slot
                    return
                }
                used += timed(connection.group, isWanted: false) { expired(connection) }
            }
            slot += 1
        }
        sweepNext = nil
    }

    /// What it said in time is read first: `serve` looks at its deadline then.
    private func waitsInRow(_ connection: Connection) -> Bool {
        connection.isQueued && (connection.phase == .http || connection.phase == .open)
    }

    func expired(_ connection: Connection) {
        switch connection.phase {
        // What it said in time may wait; it is looked at again when that has been read (`serve`, and the next sweep).
        case .http where waitsUnread(connection), .open where waitsUnread(connection): break
        case .http:
            if connection.tls?.isHandshaking == true {
                metrics.tlsHandshakes.add(1, .timeout)
                metrics.limitHits.add(1, .handshakeTime)
            }
            guard let exchange = connection.exchange, exchange.requests.isInsideRequest else {
                if !connection.outbox.isEmpty { metrics.limitHits.add(1, .readPace) }
                return drop(connection, .idle)
            }
            metrics.limitHits.add(1, exchange.requests.isInsideBody ? .bodyPace : .headTime)
            metrics.httpErrors.add(1, .timeout)
            enqueue(connection, HTTPResponse(status: 408, closes: true).encoded(for: nil, date: date.text(now)))
            drain(connection)
        case .open:
            guard !connection.isPaused || connection.isGone else { return touch(connection) }
            if connection.gathered > 0 { metrics.limitHits.add(1, .messagePace) }
            close(connection, .goingAway, reason: "idle", .idle)
        case .draining where !connection.outbox.isEmpty:
            metrics.limitHits.add(1, .readPace)
            drop(connection, .vanished)
        case .closing, .draining: drop(connection, .vanished)
        case .dead: break
        }
    }
}
