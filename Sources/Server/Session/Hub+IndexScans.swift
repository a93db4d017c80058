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
    var isHeadProbe: Bool { asksForNewest && replacedCurrent == nil }
}

// Index scans (wire contract, section 5; decision 0003).
extension Hub {
    /// Starts or continues an index scan.
    func index(_ request: IndexRequest, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        guard channel.branch == nil else { return refuse(request, on: channel, now: now) }
        let query = indexQuery(request, of: feed)
        scan(channel, by: query, now: now)
        guard feed.row != nil else {
            let page = IndexMessage.empty(
                channel.number, current: codec.encode(query.current, tag: feed.tag))
            send(page, to: channel.session)
            return scanned(channel, isLast: true, isHeadProbe: query.isHeadProbe, now: now)
        }
        read(.index(query, tag: feed.tag), for: channel)
    }

    /// The query for a page. A mark that does not belong to this bucket starts from the beginning.
    func indexQuery(_ request: IndexRequest, of feed: BucketFeed) -> IndexQuery {
        var query = IndexQuery(
            bucket: feed.row ?? 0, current: feed.published, limit: request.pageLimit, withData: request.wantsData)
        query.oldestFirst = feed.mode == .tree
        if let mark = request.mark, let position = IndexMark(mark, codec: codec, tag: feed.tag),
            position.current <= feed.published, position.before <= position.current,
            position.replacedCurrent ?? 0 <= position.current
        {
            query.current = position.current
            query.before = position.before
            query.replacedCurrent = position.replacedCurrent
        }
        return query
    }

    /// An index page was asked for: later changes wait until the scan is over.
    func scan(_ channel: Channel, by query: IndexQuery, now: HubInstant) {
        let (current, isFirst) = (query.current, query.before == nil)
        let deadline = now.monotonic + Channel.scanPauseMax
        switch channel.stream {
        case .catchingUp, .suspended: return
        case .scanning(let before, _):
            // A head probe during a scan is not part of it: changes held back since the scan began are still to be
            // sent.
            let begins = isFirst && !query.isHeadProbe
            if !query.isHeadProbe { channel.isHeadProbe = false }
            channel.stream = .scanning(current: begins ? current : before, deadline: deadline)
        case .idle, .live:
            channel.isHeadProbe = query.isHeadProbe
            guard isFirst else { return resumeScan(channel, at: current, deadline: deadline) }
            channel.stream = .scanning(current: current, deadline: deadline)
            list(channel)
        }
    }

    /// Continues a scan that this channel did not begin: the client came back with its mark. What it missed since
    /// the scan's `current` is sent at the end.
    private func resumeScan(_ channel: Channel, at current: GlobalID, deadline: Int64) {
        guard case .idle = channel.stream else { return }
        channel.stream = .scanning(current: current, deadline: deadline)
        list(channel)
    }

    /// The channel of a scan has another token: its client continues the scan.
    func continueScan(_ channel: Channel, at current: GlobalID, now: HubInstant) {
        channel.stream = .scanning(current: current, deadline: now.monotonic + Channel.scanPauseMax)
        list(channel)
    }

    /// Adds the channel to the list of deadlines. It is in the list at most once, however often it scans.
    private func list(_ channel: Channel) {
        guard !channel.isInScanningChannels else { return }
        channel.isInScanningChannels = true
        scanningChannels.append(channel)
    }

    /// A page was sent.
    /// - Parameter isHeadProbe: the page answers a head probe; it ends only a scan that the probe began.
    func scanned(_ channel: Channel, isLast: Bool, isHeadProbe: Bool, now: HubInstant) {
        guard case .scanning(let current, _) = channel.stream else { return }
        let isOver = isHeadProbe ? channel.isHeadProbe : isLast
        guard isOver, !channel.asksAfterIndex else {
            channel.stream = .scanning(current: current, deadline: now.monotonic + Channel.scanPauseMax)
            return
        }
        catchUp(channel, from: current, mustAnswer: false, now: now)
    }

    /// Ends a scan early: the channel sends changes, so it must receive those of others.
    func endScan(_ channel: Channel, now: HubInstant) {
        guard case .scanning(let current, _) = channel.stream else { return }
        catchUp(channel, from: current, mustAnswer: false, now: now)
    }

    func releaseScanningChannels(_ now: HubInstant) {
        guard !scanningChannels.isEmpty else { return }
        let waiting = scanningChannels
        scanningChannels = []
        for channel in waiting {
            channel.isInScanningChannels = false
            guard case .ready = channel.phase, case .scanning(_, let deadline) = channel.stream else { continue }
            if deadline <= now.monotonic { endScan(channel, now: now) } else { list(channel) }
        }
    }

    /// The log no longer reaches back to the scan's `current`: the first page of a new scan is the answer.
    func restartScan(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        guard case .index(var query, let tag) = question, let feed = channel.feed else { return }
        guard query.before != nil || query.current < feed.published else {
            return failed(question, on: channel, now: now)
        }
        if query.before != nil {
            metrics.scansRestarted.add(1)
            // Objects it read in the old scan may be removed by now, and no change reports that any more: the
            // client must scan again.
            if channel.removesUnlisted { query.replacedCurrent = query.replacedCurrent ?? query.current }
            query.before = nil
        }
        query.current = feed.published
        scan(channel, by: query, now: now)
        read(.index(query, tag: tag), for: channel)
    }
}
