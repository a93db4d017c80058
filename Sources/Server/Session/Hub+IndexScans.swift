import ThicketProtocol

extension ReadQuestion {
    /// A head probe: an `i` for one entry without its object asks for the bucket's position, because no client
    /// scans a bucket one entry at a time. No change is held back for it, except for clients that send `cv` next.
    var isHeadProbe: Bool {
        if case .index(let query, _) = self { return query.isHeadProbe }
        return false
    }
}

extension IndexQuery {
    /// As `ReadQuestion.isHeadProbe`. A scan that replaced another is never one, whatever its pages hold.
    var isHeadProbe: Bool { asksForNewest && told == nil }
}

// Index scans (wire contract, section 5; decision 0003).
extension Hub {
    /// Starts or continues an index scan.
    func index(_ request: IndexRequest, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        let query = indexQuery(request, of: feed)
        walk(channel, by: query, now: now)
        guard feed.row != nil else {
            let page = IndexMessage.empty(
                channel.number, current: codec.encode(query.current, tag: feed.tag))
            send(page, to: channel.session)
            return walked(channel, isLast: true, isHeadProbe: query.isHeadProbe, now: now)
        }
        read(.index(query, tag: feed.tag), for: channel)
    }

    /// The query for a page. A mark that does not belong to this bucket starts from the beginning.
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

    /// An index page was asked for: later changes wait until the scan is over.
    private func walk(_ channel: Channel, by query: IndexQuery, now: HubInstant) {
        let (current, isFirst) = (query.current, query.before == nil)
        let deadline = now.monotonic + Channel.walkRest
        switch channel.stream {
        case .catchingUp, .suspended: return
        case .walking(let before, _):
            // A head probe during a scan is not part of it: changes held back since the scan began are still to be
            // sent.
            let begins = isFirst && !query.isHeadProbe
            if !query.isHeadProbe { channel.isHeadProbe = false }
            channel.stream = .walking(current: begins ? current : before, deadline: deadline)
        case .idle, .live:
            channel.isHeadProbe = query.isHeadProbe
            guard isFirst else { return resumeWalk(channel, at: current, deadline: deadline) }
            channel.stream = .walking(current: current, deadline: deadline)
            list(channel)
        }
    }

    /// Continues a scan that this channel did not begin: the client came back with its mark. What it missed since
    /// the scan's `current` is sent at the end.
    private func resumeWalk(_ channel: Channel, at current: GlobalID, deadline: Int64) {
        guard case .idle = channel.stream else { return }
        channel.stream = .walking(current: current, deadline: deadline)
        list(channel)
    }

    /// The channel of a scan has another token: its client continues the scan.
    func continueWalk(_ channel: Channel, at current: GlobalID, now: HubInstant) {
        channel.stream = .walking(current: current, deadline: now.monotonic + Channel.walkRest)
        list(channel)
    }

    /// Adds the channel to the list of deadlines. It is in the list at most once, however often it scans.
    private func list(_ channel: Channel) {
        guard !channel.isListedWalker else { return }
        channel.isListedWalker = true
        walkers.append(channel)
    }

    /// A page was sent.
    /// - Parameter isHeadProbe: the page answers a head probe; it ends only a scan that the probe began.
    func walked(_ channel: Channel, isLast: Bool, isHeadProbe: Bool, now: HubInstant) {
        guard case .walking(let current, _) = channel.stream else { return }
        let isOver = isHeadProbe ? channel.isHeadProbe : isLast
        guard isOver, !channel.asksAfterIndex else {
            channel.stream = .walking(current: current, deadline: now.monotonic + Channel.walkRest)
            return
        }
        catchUp(channel, from: current, mustAnswer: false, now: now)
    }

    /// Ends a scan early: the channel sends changes, so it must receive those of others.
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

    /// The log no longer reaches back to the scan's `current`: the first page of a new scan is the answer.
    func restartWalk(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        guard case .index(var query, let tag) = question, let feed = channel.feed else { return }
        guard query.before != nil || query.current < feed.published else {
            return failed(question, on: channel, now: now)
        }
        if query.before != nil {
            metrics.walksRestarted.add(1)
            // Objects it read in the old scan may be removed by now, and no change reports that any more: the
            // client must scan again.
            if channel.removesUnlisted { query.told = query.told ?? query.current }
            query.before = nil
        }
        query.current = feed.published
        walk(channel, by: query, now: now)
        read(.index(query, tag: tag), for: channel)
    }
}
