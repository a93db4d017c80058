import ThicketProtocol

// The long poll: a request for changes that waits while there are none. To the hub it is a channel that went live, and
// the first changes that it would be sent are its answer.
extension Hub {
    /// Requests that wait for changes now.
    public var waitingCount: Int { waiting.count }

    func wait(on channel: Channel, since text: String?, now: HubInstant) {
        guard let feed = channel.feed else { return }
        var start = feed.published
        if let text {
            guard let gid = codec.decode(text, tag: feed.tag), gid <= feed.published else {
                metrics.catchUps.add(1, .unknown)
                return answer(channel.session, RESTAnswer.unknownPosition)
            }
            start = gid
        }
        // When it has caught up and there was nothing, it goes live: `begin(waiting:)`.
        catchUp(channel, from: start, mustAnswer: false, now: now)
    }

    /// Counts the request among those that wait, if there is room.
    func begin(waiting exchange: RESTExchange, on channel: Channel, now: HubInstant) {
        guard !exchange.isWaiting, !channel.session.isClosing else { return }
        guard limits.changesWait > .zero else { return answer(channel.session, RESTAnswer.changes([])) }
        guard waiting.count < limits.changesWaitersMax else {
            metrics.limitHits.add(1, .waiters)
            return answer(channel.session, RESTAnswer.busy("Too many requests wait for changes."))
        }
        exchange.isWaiting = true
        // Who has looked again in between waits no longer for that.
        if exchange.deadline == .max { exchange.deadline = now.monotonic + limits.changesWait.nanoseconds }
        waiting[channel.session.id] = exchange.deadline
        metrics.restWaiters.set(waiting.count)
    }

    /// The request waits no more, for whatever reason.
    func endWaiting(_ session: Session) {
        guard session.exchange?.isWaiting == true else { return }
        session.exchange?.isWaiting = false
        waiting[session.id] = nil
        metrics.restWaiters.set(waiting.count)
    }

    /// Tells those that have waited long enough that there was nothing.
    func releaseWaiting(_ now: HubInstant) {
        guard !waiting.isEmpty else { return }
        for (id, deadline) in waiting where deadline <= now.monotonic {
            if let session = session(id) { answer(session, RESTAnswer.changes([])) }
        }
    }

    /// The server stops: nobody waits any longer.
    public func endWaiting() {
        for id in waiting.keys {
            if let session = session(id) { answer(session, RESTAnswer.changes([])) }
        }
        emptyLeaving()
    }
}
