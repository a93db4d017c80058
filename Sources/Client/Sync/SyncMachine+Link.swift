import ThicketProtocol

/// The connection: opening, keep-alive, closing.
extension SyncMachine {
    /// The connection is open, and messages can be sent.
    package mutating func opened(now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            guard machine.turn.link.isConnecting else { return }
            machine.turn.link.opened(at: machine.turn.now)
            for number in machine.buckets.indices { machine.buckets[number].open(&machine.turn) }
        }
    }

    /// Bytes of an incomplete message were sent or received: the connection is alive, and answers may follow these
    /// bytes.
    package mutating func moved(now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            guard machine.turn.link.isOpen else { return }
            machine.turn.link.receivedBytes(at: machine.turn.now)
            for number in machine.buckets.indices where machine.buckets[number].answerDue != nil {
                machine.buckets[number].answerDue = machine.turn.now + SyncLimits.answerMilliseconds
            }
        }
    }

    /// The connection could not be made, or ended.
    package mutating func closed(_ closure: LinkClosure, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            guard machine.turn.link.isOpen || machine.turn.link.isConnecting else { return }
            if closure.code == 1009 { try machine.refuseLargestInFlight() }
            machine.disconnectBuckets()
            machine.turn.lose(
                closure.isUntrusted ? .untrusted(closure.detail) : .unreachable(closure.detail),
                atLeast: closure.retryAfter ?? 0)
        }
    }

    /// Connects now, also after a refused token.
    package mutating func goOnline(now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            switch machine.turn.link.state {
            case .open, .connecting: return
            case .waiting, .parked:
                machine.turn.link.backoff.reset()
                // After an explicit request the failure is reported again.
                machine.turn.link.endedToken = nil
                machine.turn.connect()
            }
        }
    }

    /// Ends the connection; no other is made until `goOnline`.
    package mutating func goOffline(_ reason: OfflineReason = .requested, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in machine.park(reason) }
    }

    /// No other token is available: ends the connection until `adopt`. Edits wait in the store.
    package mutating func signOut(_ reason: String, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in machine.park(.unauthorized(reason)) }
    }

    /// Replaces the token and reconnects.
    package mutating func setToken(_ token: String, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            machine.turn.link.options.token = token
            machine.turn.link.backoff.reset()
            if machine.turn.link.isOpen { machine.turn.actions.append(.disconnect) }
            if case .parked(.requested) = machine.turn.link.state { return }
            machine.disconnectBuckets()
            machine.turn.link.state = .waiting(until: machine.turn.now, .unreachable("the token changed"))
        }
    }

    /// Uses another token from now on: immediately on channels whose token has expired, and on the others when theirs
    /// expires.
    ///
    /// Connects when the client is offline because the last token was refused.
    package mutating func adopt(token: String, number: Int, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            machine.turn.link.options.token = token
            machine.turn.link.options.tokenNumber = number
            switch machine.turn.link.state {
            case .parked(.unauthorized), .parked(.wrongAccount):
                machine.turn.link.backoff.reset()
                machine.turn.link.state = .waiting(until: machine.turn.now, .unreachable("the token changed"))
            case .parked, .waiting, .connecting: break
            case .open:
                for number in machine.buckets.indices where machine.buckets[number].phase == .lapsed {
                    machine.buckets[number].renew(&machine.turn)
                }
            }
        }
    }

    // MARK: - Time

    /// Advances the time. Call it at `deadline` at the latest.
    package mutating func tick(now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            switch machine.turn.link.state {
            case .parked: break
            case .waiting(let until, _):
                if until <= machine.turn.now { machine.turn.connect() }
            case .connecting(let since):
                guard machine.turn.now - since >= machine.options.connectMilliseconds else { return }
                machine.hangUp("the server did not answer in time")
            case .open: machine.keepAlive()
            }
        }
    }

    /// The time at which `tick` has something to do; nil: never.
    package var deadline: Int64? {
        guard turn.link.isOpen, var next = turn.link.deadline else { return turn.link.deadline }
        for bucket in buckets { if let due = bucket.deadline { next = min(next, due) } }
        return next
    }

    private mutating func keepAlive() {
        switch turn.link.care(now: turn.now) {
        case .none: break
        case .hangUp: return hangUp("no answer to a heartbeat")
        case .send(let heartbeat):
            turn.send(heartbeat)
            // On a live connection, unanswered requests are checked at the interval of heartbeats.
            if hasStaleRequest { return hangUp("a request was not answered") }
        }
        for number in buckets.indices {
            if let due = buckets[number].answerDue, due <= turn.now { return hangUp("a request was not answered") }
            buckets[number].wake(&turn)
        }
    }

    private var hasStaleRequest: Bool {
        let oldest = turn.now - SyncLimits.answerMilliseconds
        guard turn.link.lastMoved < oldest else { return false }
        return buckets.contains { $0.hasRequest(before: oldest) }
    }

    // MARK: - Its end

    private mutating func hangUp(_ detail: String) {
        disconnectBuckets()
        turn.hangUp(detail)
    }

    private mutating func park(_ reason: OfflineReason) {
        disconnectBuckets()
        turn.park(reason)
    }

    mutating func disconnectBuckets() {
        for number in buckets.indices { buckets[number].disconnected() }
    }

    /// The server closed the connection because a message was too large: the largest change must not be sent again.
    private mutating func refuseLargestInFlight() throws(ClientError) {
        var largest: (number: Int, key: EntityKey, bytes: Int)?
        for number in buckets.indices {
            // Sorted, so that among changes of equal size the choice is deterministic.
            for (key, inFlightChange) in buckets[number].outbox.inFlight.sorted(by: { $0.key < $1.key })
            where inFlightChange.bytes > largest?.bytes ?? 0 { largest = (number, key, inFlightChange.bytes) }
        }
        guard let largest, largest.bytes >= SyncLimits.suspectBytesMin else { return }
        try buckets[largest.number].refuseAsTooLarge(largest.key, &turn)
    }
}
