import ThicketPlatform
import ThicketProtocol

// Long polling: a request for changes that waits until changes exist. For the hub it is a channel that went live, and
// the first changes that would be sent to it are its answer.
extension Hub {
    /// Number of requests that wait for changes.
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
        // If the catch-up finds nothing, the channel goes live: `begin(waiting:)`.
        catchUp(channel, from: start, mustAnswer: false, now: now)
    }

    /// Counts the request among the waiting ones, if their bound allows it.
    func begin(waiting exchange: RESTExchange, on channel: Channel, now: HubInstant) {
        guard !exchange.isWaiting, !channel.session.isClosing else { return }
        guard limits.changesWait > .zero else { return answer(channel.session, RESTAnswer.changes([])) }
        guard waiting.count < limits.changesWaitersMax else {
            metrics.limitHits.add(1, .waiters)
            return answer(channel.session, RESTAnswer.busy("Too many requests wait for changes."))
        }
        exchange.isWaiting = true
        // A request that has read again in between keeps its first deadline.
        if exchange.deadline == .max { exchange.deadline = now.monotonic + limits.changesWait.nanoseconds }
        waiting[channel.session.id] = exchange.deadline
        metrics.restWaiters.set(waiting.count)
    }

    /// Ends the wait of a request, for any reason.
    func endWaiting(_ session: Session) {
        guard session.exchange?.isWaiting == true else { return }
        session.exchange?.isWaiting = false
        waiting[session.id] = nil
        metrics.restWaiters.set(waiting.count)
    }

    /// Answers requests whose wait is over with no changes.
    func releaseWaiting(_ now: HubInstant) {
        guard !waiting.isEmpty else { return }
        for (id, deadline) in waiting where deadline <= now.monotonic {
            if let session = session(id) { answer(session, RESTAnswer.changes([])) }
        }
    }

    /// Answers all waiting requests because the server stops.
    public func endWaiting() {
        for id in waiting.keys {
            if let session = session(id) { answer(session, RESTAnswer.changes([])) }
        }
        emptyLeaving()
    }
}
