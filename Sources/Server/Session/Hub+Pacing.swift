import ThicketProtocol

// Rates and backpressure: a connection that exceeds its rate is read more slowly, and refused only when that does
// not help.
extension Hub {
    /// Counts one event of a connection against its rate.
    /// - Returns: whether the event must be refused.
    func meter(
        _ meter: inout RateMeter, of session: Session, limit: Metrics.LimitName, now: HubInstant
    ) -> Bool {
        switch meter.admit(at: now.monotonic) {
        case .admit: return false
        case .slow(let until):
            if session.slowUntil <= now.monotonic { metrics.limitHits.add(1, limit) }
            session.slowUntil = max(session.slowUntil, until)
            if !session.pauses.contains(.rate) { slowed.append(session.id) }
            pause(session, .rate)
            return false
        case .refuse:
            metrics.limitHits.add(1, limit)
            return true
        }
    }

    func pause(_ session: Session, _ reason: Session.Pauses) {
        guard !session.isClosing else { return }
        let wasRead = session.pauses.isEmpty
        session.pauses.insert(reason)
        if wasRead { actions.append(.pause(session.id)) }
    }

    func resume(_ session: Session, _ reason: Session.Pauses) {
        guard session.pauses.contains(reason) else { return }
        session.pauses.remove(reason)
        if session.pauses.isEmpty && !session.isClosing { actions.append(.resume(session.id)) }
    }

    func resumeSlowed(_ now: HubInstant) {
        guard !slowed.isEmpty else { return }
        let waiting = slowed
        slowed = []
        for id in waiting {
            guard let session = session(id) else { continue }
            if session.slowUntil <= now.monotonic { resume(session, .rate) } else { slowed.append(id) }
        }
    }

    /// Answers a message that came faster than the connection may send.
    func refuse(_ request: UnreadRequest, on number: ChannelNumber, of session: Session, bytes: Int) {
        guard request.command == .change, let channel = session.channel(number), case .ready = channel.phase
        else {
            return send(Reply.notUnderstood(number), to: session)
        }
        guard !readElsewhere(request, on: channel, bytes: bytes, isRefused: true) else { return }
        switch request.read() {
        case .change(let change): refuse([(change, .unavailable)], on: channel)
        case .changes(let changes): refuse(changes.map { ($0, .unavailable) }, on: channel)
        default: break
        }
    }
}

/// Number and bytes of the changes handed to the shard.
struct InFlight {
    private(set) var count = 0
    private(set) var bytes = 0

    mutating func add(bytes: Int) {
        count += 1
        self.bytes += bytes
    }

    mutating func remove(bytes: Int) {
        count -= 1
        self.bytes -= bytes
    }
}
