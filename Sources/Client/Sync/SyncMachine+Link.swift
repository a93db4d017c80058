import ThicketProtocol

/// The connection: opening, keep-alive, closing.
extension SyncMachine {
    /// The connection is open, and messages can be sent.
    package mutating func opened(now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            guard machine.isConnecting else { return }
            machine.adoptLink(.open)
            machine.lastReceived = machine.now
            machine.lastSent = machine.now
            machine.heartbeatSentAt = nil
            machine.logLevel = 0
            machine.logLines = 0
            for number in machine.channels.indices { try machine.openChannel(number) }
        }
    }

    /// Text messages arrived, in this order. They are one turn and so one transaction.
    package mutating func received(_ messages: [[UInt8]], now: Int64) -> [SyncAction] {
        received(ServerBatch(messages), now: now)
    }

    /// As above, with parsed messages.
    package mutating func received(_ batch: ServerBatch, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            for message in batch.messages {
                guard machine.link == .open else { return }
                machine.lastReceived = machine.now
                machine.heartbeatSentAt = nil
                try machine.handle(message)
            }
        }
    }

    /// Bytes of an incomplete message were sent or received: the connection is alive, and answers may follow these
    /// bytes.
    package mutating func moved(now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            guard machine.link == .open else { return }
            machine.lastReceived = machine.now
            machine.lastMoved = machine.now
            machine.heartbeatSentAt = nil
            for number in machine.channels.indices where machine.channels[number].answerDue != nil {
                machine.channels[number].answerDue = machine.now + SyncLimits.answerMilliseconds
            }
        }
    }

    /// The connection could not be made, or ended.
    package mutating func closed(_ closure: LinkClosure, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            guard machine.link == .open || machine.isConnecting else { return }
            if closure.code == 1009 { try machine.refuseLargestFlight() }
            machine.drop(
                closure.isUntrusted ? .untrusted(closure.detail) : .unreachable(closure.detail),
                atLeast: closure.retryAfter ?? 0)
        }
    }

    /// Advances the time. Call it at `deadline` at the latest.
    package mutating func tick(now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            switch machine.link {
            case .parked: break
            case .waiting(let until, _):
                guard until <= machine.now else { return }
                machine.adoptLink(.connecting(since: machine.now))
                machine.actions.append(.connect)
            case .connecting(let since):
                guard machine.now - since >= machine.options.connectMilliseconds else { return }
                machine.hangUp("the server did not answer in time")
            case .open:
                try machine.keepAlive()
            }
        }
    }

    /// Connects now, also after a refused token.
    package mutating func goOnline(now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            switch machine.link {
            case .open, .connecting: return
            case .waiting, .parked:
                machine.backoff.reset()
                // After an explicit request the failure is reported again.
                machine.endedToken = nil
                machine.adoptLink(.connecting(since: machine.now))
                machine.actions.append(.connect)
            }
        }
    }

    /// Ends the connection; no other is made until `goOnline`.
    package mutating func goOffline(_ reason: OfflineReason = .requested, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in machine.park(reason) }
    }

    /// Replaces the token and reconnects.
    package mutating func setToken(_ token: String, now: Int64) -> [SyncAction] {
        quietTurn(now) { machine throws(ClientError) in
            machine.options.token = token
            machine.backoff.reset()
            if machine.link == .open { machine.actions.append(.disconnect) }
            if case .parked(.requested) = machine.link { return }
            machine.disconnectChannels()
            machine.adoptLink(.waiting(until: machine.now, .unreachable("the token changed")))
        }
    }

    /// The time at which `tick` has something to do; nil: never.
    package var deadline: Int64? {
        switch link {
        case .parked: return nil
        case .waiting(let until, _): return until
        case .connecting(let since): return since + options.connectMilliseconds
        case .open: break
        }
        var next = heartbeatDue
        for channel in channels {
            if let due = channel.answerDue { next = min(next, due) }
            if let resume = channel.resumeAt { next = min(next, resume) }
            if let send = channel.sendAt { next = min(next, send) }
            if channel.mayWrite, let due = channel.sealing?.due { next = min(next, due) }
        }
        return next
    }

    private var heartbeatDue: Int64 {
        if let sent = heartbeatSentAt { return sent + SyncLimits.heartbeatAnswerMilliseconds }
        return min(lastSent, lastReceived) + SyncLimits.heartbeatIdleMilliseconds
    }

    private mutating func keepAlive() throws(ClientError) {
        if let sent = heartbeatSentAt {
            if now - sent >= SyncLimits.heartbeatAnswerMilliseconds { return hangUp("no answer to a heartbeat") }
        } else if now >= heartbeatDue {
            heartbeatSentAt = now
            send(Messages.heartbeat(heartbeat))
            // On a live connection, unanswered requests are checked at the interval of heartbeats.
            if hasStaleRequest { return hangUp("a request was not answered") }
        }
        for number in channels.indices {
            if let due = channels[number].answerDue, due <= now { return hangUp("a request was not answered") }
            // The end of the turn sends what waited.
            if let send = channels[number].sendAt, send <= now { channels[number].sendAt = nil }
            guard let resume = channels[number].resumeAt, resume <= now else { continue }
            channels[number].resumeAt = nil
            try resumeChannel(number)
        }
    }

    private var hasStaleRequest: Bool {
        let oldest = now - SyncLimits.answerMilliseconds
        guard lastMoved < oldest else { return false }
        return channels.contains { channel in
            channel.inFlight.contains { $0.value.sentAt < oldest } || channel.reloads.contains { $0.value < oldest }
        }
    }

    /// The connection is useless: ends it and tries again after a pause.
    mutating func hangUp(_ detail: String) {
        actions.append(.disconnect)
        drop(.unreachable(detail))
    }

    /// - Parameter pause: shortest pause in milliseconds before the next attempt.
    private mutating func drop(_ reason: OfflineReason, atLeast pause: Int64 = 0) {
        disconnectChannels()
        adoptLink(.waiting(until: now + max(backoff.next(random.next()), pause), reason))
    }

    mutating func park(_ reason: OfflineReason) {
        if link == .open || isConnecting { actions.append(.disconnect) }
        disconnectChannels()
        adoptLink(.parked(reason))
    }

    private mutating func disconnectChannels() {
        for number in channels.indices { channels[number].disconnected() }
    }
}
