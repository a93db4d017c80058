import ThicketProtocol

extension ReadQuestion {
    /// An `i` for one entry without its object asks where the bucket stands: nobody walks a bucket one by one. Nothing
    /// is held back for it, except for those who ask `cv` next.
    var isGlance: Bool {
        if case .index(let query, _) = self { return query.isGlance }
        return false
    }
}

extension IndexQuery {
    /// As `ReadQuestion.isGlance`. A walk that took the place of another is none, whatever its pages hold.
    var isGlance: Bool { asksForNewest && told == nil }
}

// Walking the index (wire contract, section 5; decision 0081).
extension Hub {
    /// Starts or continues an index walk.
    func index(_ request: IndexRequest, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        let query = indexQuery(request, of: feed)
        walk(channel, by: query, now: now)
        guard feed.row != nil else {
            let page = IndexMessage.empty(
                channel.number, current: codec.encode(query.current, tag: feed.tag))
            send(page, to: channel.session)
            return walked(channel, isLast: true, isGlance: query.isGlance, now: now)
        }
        read(.index(query, tag: feed.tag), for: channel)
    }

    /// What a page is asked for by. A mark that is none of this bucket begins anew.
    func indexQuery(_ request: IndexRequest, of feed: BucketFeed) -> IndexQuery {
        var query = IndexQuery(
            bucket: feed.row ?? 0, current: feed.published, limit: request.pageLimit, withData: request.wantsData)
        if let mark = request.mark, let position = IndexMark(mark, codec: codec, tag: feed.tag),
            position.current <= feed.published, position.before <= position.current,
            position.told ?? 0 <= position.current
        {
            query.current = position.current
            query.before = position.before
            query.told = position.told
        }
        return query
    }

    /// An index page was asked for: later changes wait until the walk is over.
    private func walk(_ channel: Channel, by query: IndexQuery, now: HubInstant) {
        let (current, isFirst) = (query.current, query.before == nil)
        let deadline = now.monotonic + Channel.walkRest
        switch channel.stream {
        case .catchingUp, .suspended: return
        case .walking(let before, _):
            // A glance in mid-walk is none of it: what has been held back since it began is still to be told.
            let begins = isFirst && !query.isGlance
            if !query.isGlance { channel.isGlancing = false }
            channel.stream = .walking(current: begins ? current : before, deadline: deadline)
        case .idle, .live:
            channel.isGlancing = query.isGlance
            guard isFirst else { return resumeWalk(channel, at: current, deadline: deadline) }
            channel.stream = .walking(current: current, deadline: deadline)
            list(channel)
        }
    }

    /// A walk goes on that this channel did not begin: a client that came back with its mark. What it missed since the
    /// walk's `current` is sent at its end.
    private func resumeWalk(_ channel: Channel, at current: GlobalID, deadline: Int64) {
        guard case .idle = channel.stream else { return }
        channel.stream = .walking(current: current, deadline: deadline)
        list(channel)
    }

    /// The channel of a walk has another token: its client goes on with the walk.
    func continueWalk(_ channel: Channel, at current: GlobalID, now: HubInstant) {
        channel.stream = .walking(current: current, deadline: now.monotonic + Channel.walkRest)
        list(channel)
    }

    /// Has the end of the walk watched. A channel stands in the list once, however often it walks.
    private func list(_ channel: Channel) {
        guard !channel.isListedWalker else { return }
        channel.isListedWalker = true
        walkers.append(channel)
    }

    /// A page was sent.
    /// - Parameter isGlance: it ends what it began, and no other walk.
    func walked(_ channel: Channel, isLast: Bool, isGlance: Bool, now: HubInstant) {
        guard case .walking(let current, _) = channel.stream else { return }
        let isOver = isGlance ? channel.isGlancing : isLast
        guard isOver, !channel.asksAfterIndex else {
            channel.stream = .walking(current: current, deadline: now.monotonic + Channel.walkRest)
            return
        }
        catchUp(channel, from: current, mustAnswer: false, now: now)
    }

    /// Ends a walk before its time: the channel sends changes, so it wants to hear of others.
    func endWalk(_ channel: Channel, now: HubInstant) {
        guard case .walking(let current, _) = channel.stream else { return }
        catchUp(channel, from: current, mustAnswer: false, now: now)
    }

    func releaseWalkers(_ now: HubInstant) {
        guard !walkers.isEmpty else { return }
        let waiting = walkers
        walkers = []
        for channel in waiting {
            channel.isListedWalker = false
            guard case .ready = channel.phase, case .walking(_, let deadline) = channel.stream else { continue }
            if deadline <= now.monotonic { endWalk(channel, now: now) } else { list(channel) }
        }
    }

    /// The log no longer reaches back to the walk's `current`: the first page of a new walk is the answer.
    func restartWalk(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        guard case .index(var query, let tag) = question, let feed = channel.feed else { return }
        guard query.before != nil || query.current < feed.published else {
            return failed(question, on: channel, now: now)
        }
        if query.before != nil {
            metrics.walksRestarted.add(1)
            // What it has read of the old walk may be gone by now, and no change says so any more: it has to walk once
            // more.
            if channel.removesUnlisted { query.told = query.told ?? query.current }
            query.before = nil
        }
        query.current = feed.published
        walk(channel, by: query, now: now)
        read(.index(query, tag: tag), for: channel)
    }
}
