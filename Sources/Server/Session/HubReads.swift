import ThicketProtocol

extension ReadQuestion {
    /// An `i` for one entry without its object asks where the bucket stands: nobody walks a bucket one by one. Nothing
    /// is held back for it.
    fileprivate var isGlance: Bool {
        if case .index(let query, _) = self { return query.isGlance }
        return false
    }
}

extension IndexQuery {
    fileprivate var isGlance: Bool { limit == 1 && before == nil && !withData }
}

// `i`, `e`, `cv`, and the answers of the readers (wire contract, section 5).
extension Hub {
    // MARK: Asking

    /// Hands a question to the readers. Whoever has too many open is read no further for a while.
    /// - Parameter isContinued: the answer follows another one, so it waits until that has mostly been read.
    /// - Returns: false when the connection is ending, perhaps because of this very question.
    @discardableResult
    func read(_ question: ReadQuestion, for channel: Channel, isContinued: Bool = false) -> Bool {
        let session: Session = channel.session
        guard !session.isClosing else { return false }
        guard session.readsOutstanding < limits.readsPerConnectionMax * 4, readsOutstanding < limits.readsQueuedMax * 2
        else {
            metrics.limitHits.add(1, .queue)
            close(session, .tryAgainLater, "too many requests await their answer")
            return false
        }
        session.readsOutstanding += 1
        readsOutstanding += 1
        session.tenant?.reads += 1
        metrics.readsQueued.set(readsOutstanding)
        let request: ReadRequest = .init(origin: channel.origin, question: question)
        if !session.admits(request) {
            session.waitingReads.append(request)
        } else {
            actions.append(isContinued ? .readWhenDrained(request) : .read(request))
        }
        if session.readsOutstanding >= limits.readsPerConnectionMax {
            if !session.pauses.contains(.reads) { metrics.limitHits.add(1, .connectionReads) }
            pause(session, .reads)
        } else if readsOutstanding >= limits.readsQueuedMax {
            if !session.pauses.contains(.reads) { metrics.limitHits.add(1, .queuedReads) }
            heldByReads.append(session.id)
            pause(session, .reads)
        } else if let tenant: Tenant = session.tenant, tenant.reads >= limits.readsPerUserMax {
            hold(session, of: tenant, .userReads)
        }
        return true
    }

    /// Starts or continues an index walk.
    func index(_ request: IndexRequest, on channel: Channel, now: HubInstant) {
        guard let feed: BucketFeed = channel.feed else { return }
        let query: IndexQuery = indexQuery(request, of: feed)
        walk(channel, by: query, now: now)
        guard feed.row != nil else {
            let page: SharedFrame = IndexMessage.empty(
                channel.number, current: codec.encode(query.current, tag: feed.tag))
            send(page, to: channel.session)
            return walked(channel, isLast: true, isGlance: query.isGlance, now: now)
        }
        read(.index(query, tag: feed.tag), for: channel)
    }

    /// What a page is asked for by. A mark that is none of this bucket begins anew.
    func indexQuery(_ request: IndexRequest, of feed: BucketFeed) -> IndexQuery {
        var query: IndexQuery = .init(
            bucket: feed.row ?? 0, current: feed.published, limit: request.pageLimit, withData: request.wantsData)
        if let mark: String = request.mark, let position: IndexMark = IndexMark(mark, codec: codec, tag: feed.tag),
            position.current <= feed.published, position.before <= position.current,
            position.told ?? 0 <= position.current
        {
            query.current = position.current
            query.before = position.before
            query.told = position.told
        }
        return query
    }

    /// Answers one version of an object.
    func entity(_ key: String, _ version: Version, on channel: Channel, now: HubInstant) {
        guard let feed: BucketFeed = channel.feed else { return }
        if case .walking(let current, _) = channel.stream {
            channel.stream = .walking(current: current, deadline: now.monotonic + Channel.walkRest)
        }
        guard let row: BucketRow = feed.row, version > 0 else {
            return send(Reply.entity(channel.number, key: key, version: version, body: nil), to: channel.session)
        }
        read(.entity(key: key, version: version, bucket: row, upTo: feed.published), for: channel)
    }

    /// Answers all changes since a position, and subscribes from there.
    func changesSince(_ text: String, on channel: Channel, now: HubInstant) {
        guard let feed: BucketFeed = channel.feed else { return }
        guard let gid: GlobalID = codec.decode(text, tag: feed.tag), gid <= feed.published else {
            metrics.catchUps.add(1, .unknown)
            return send(Reply.changeVersionUnknown(channel.number), to: channel.session)
        }
        if case .catchingUp = channel.stream {
            guard channel.queuedCatchUps.count < Channel.queuedCatchUpsMax else {
                return send(Reply.changeVersionUnknown(channel.number), to: channel.session)
            }
            channel.queuedCatchUps.append(gid)
            return
        }
        catchUp(channel, from: gid, mustAnswer: true, now: now)
    }

    // MARK: Following the log

    /// Brings a channel from `gid` to the present and makes it live, from memory when that reaches back so far.
    func catchUp(_ channel: Channel, from gid: GlobalID, mustAnswer: Bool, now: HubInstant) {
        guard let feed: BucketFeed = channel.feed else { return }
        if let missed: ArraySlice<BucketFeed.Entry> = feed.tail(after: gid) {
            if !missed.isEmpty || mustAnswer {
                if mustAnswer { metrics.catchUps.add(1, missed.isEmpty ? .current : .memory) }
                deliver(missed, to: channel, now: now)
            }
            return becomeLive(channel, now: now)
        }
        if mustAnswer { metrics.catchUps.add(1, .disk) }
        channel.stream = .catchingUp(after: gid, upTo: feed.published, mustAnswer: mustAnswer)
        read(
            .changes(bucket: feed.row ?? 0, tag: feed.tag, after: gid, upTo: feed.published), for: channel)
    }

    private func deliver(_ entries: ArraySlice<BucketFeed.Entry>, to channel: Channel, now: HubInstant) {
        metrics.deliveries.add(entries.count)
        guard channel.session.exchange == nil else {
            return answer(channel.session, RESTAnswer.changes(entries.lazy.map(\.element)))
        }
        let bytes: Int = entries.reduce(0) { $0 + $1.element.count + 1 }
        send(Reply.changes(channel.number, entries.lazy.map(\.element), bytes: bytes), to: channel.session)
        guard channel.library == .nodeSimperium else { return }
        for entry: BucketFeed.Entry in entries where entry.isRemoval {
            channel.hints.note(entry.key, at: now.monotonic)
        }
    }

    private func becomeLive(_ channel: Channel, now: HubInstant) {
        channel.stream = .live
        if let exchange: RESTExchange = channel.session.exchange { begin(waiting: exchange, on: channel, now: now) }
        sendHeld(channel)
        guard !channel.queuedCatchUps.isEmpty else { return }
        catchUp(channel, from: channel.queuedCatchUps.removeFirst(), mustAnswer: true, now: now)
    }

    func sendHeld(_ channel: Channel) {
        let held: [[UInt8]] = channel.takeHeld()
        if !held.isEmpty { send(Reply.changes(channel.number, held), to: channel.session) }
    }

    // MARK: Walking the index

    /// An index page was asked for: later changes wait until the walk is over.
    private func walk(_ channel: Channel, by query: IndexQuery, now: HubInstant) {
        let (current, isFirst): (GlobalID, Bool) = (query.current, query.before == nil)
        let deadline: Int64 = now.monotonic + Channel.walkRest
        switch channel.stream {
        case .catchingUp, .suspended: return
        case .walking(let before, _):
            // A glance in mid-walk is none of it: what has been held back since it began is still to be told.
            let begins: Bool = isFirst && !query.isGlance
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
    private func walked(_ channel: Channel, isLast: Bool, isGlance: Bool, now: HubInstant) {
        guard case .walking(let current, _) = channel.stream else { return }
        let isOver: Bool = isGlance ? channel.isGlancing : isLast
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
        let waiting: [Channel] = walkers
        walkers = []
        for channel: Channel in waiting {
            channel.isListedWalker = false
            guard case .ready = channel.phase, case .walking(_, let deadline) = channel.stream else { continue }
            if deadline <= now.monotonic { endWalk(channel, now: now) } else { list(channel) }
        }
    }

    // MARK: Answers

    /// A reader answered. Answers to channels that are gone are dropped.
    public func answered(_ request: ReadRequest, _ answer: ReadAnswer, now: HubInstant) {
        defer { emptyLeaving() }
        settle(request)
        expireDue(now)
        if case .open(let bucket) = request.question {
            if case .opened(let record, let buckets, let mode) = answer {
                opened(bucket, record, buckets: buckets, mode: mode, now: now)
            } else {
                openFailed(bucket, now: now)
            }
            return
        }
        if case .message(let large) = request.question {
            return hasRead(large, of: request.origin, answer, now: now)
        }
        if case .body(let body) = request.question { endReading(body.bytes.count, of: body.tenant) }
        guard let session: Session = session(request.origin.connection), !session.isClosing,
            let channel: Channel = session.channel(request.origin.channel), channel.readLife == request.origin.life
        else { return }
        if let exchange: RESTExchange = session.exchange,
            answered(exchange, request, answer, on: channel, now: now)
        {
            return
        }
        switch answer {
        case .grant(let grant): granted(grant, of: request.question, to: channel, now: now)
        case .ended: turnAway(channel, .accountEnded, now: now)
        case .opened, .object, .buckets, .all, .message, .body: break
        case .entity(let frame): send(frame, to: session)
        case .index(let frame, let isLast):
            send(frame, to: session)
            walked(channel, isLast: isLast, isGlance: request.question.isGlance, now: now)
        case .indexForgotten: restartWalk(request.question, on: channel, now: now)
        case .changes(let frame, let count, let through, let removals):
            caughtUp(channel, frame, count: count, through: through, removals: removals, now: now)
        case .changesForgotten: forgotten(channel, now: now)
        case .failed: failed(request.question, on: channel, now: now)
        }
    }

    private func settle(_ request: ReadRequest) {
        readsOutstanding -= 1
        metrics.readsQueued.set(readsOutstanding)
        // A connection that has had its answer may have another request by now.
        if let session: Session = session(request.origin.connection),
            session.exchange == nil || session.exchange?.life == request.origin.life
        {
            session.readsOutstanding -= 1
            if let tenant: Tenant = session.tenant {
                tenant.reads -= 1
                releaseHeld(tenant)
            }
            if let next: ReadRequest = session.settled(request) { actions.append(.readWhenDrained(next)) }
            if session.readsOutstanding * 2 < limits.readsPerConnectionMax, readsOutstanding < limits.readsQueuedMax {
                resume(session, .reads)
            }
        }
        guard !heldByReads.isEmpty, readsOutstanding * 2 < limits.readsQueuedMax else { return }
        let held: [ConnectionID] = heldByReads
        heldByReads = []
        for id: ConnectionID in held {
            guard let session: Session = session(id) else { continue }
            guard session.readsOutstanding < limits.readsPerConnectionMax else { continue }
            resume(session, .reads)
        }
    }

    /// A part of the log came from disk.
    private func caughtUp(
        _ channel: Channel, _ frame: SharedFrame, count: Int, through: GlobalID, removals: [EntityKey], now: HubInstant
    ) {
        guard case .catchingUp(_, let upTo, let mustAnswer) = channel.stream, let feed: BucketFeed = channel.feed else {
            return
        }
        metrics.deliveries.add(count)
        if count > 0, channel.session.exchange != nil {
            return answer(channel.session, RESTAnswer.json(Array(frame.argument)))
        }
        if count > 0 || mustAnswer { send(frame, to: channel.session) }
        if channel.library == .nodeSimperium {
            for key: EntityKey in removals { channel.hints.note(key, at: now.monotonic) }
        }
        guard through < upTo else { return catchUp(channel, from: upTo, mustAnswer: false, now: now) }
        channel.stream = .catchingUp(after: through, upTo: upTo, mustAnswer: false)
        read(
            .changes(bucket: feed.row ?? 0, tag: feed.tag, after: through, upTo: upTo), for: channel,
            isContinued: true)
    }

    /// The position was cut from the log: the client reads the index.
    private func forgotten(_ channel: Channel, now: HubInstant) {
        metrics.catchUps.add(1, .unknown)
        channel.stream = .idle
        send(Reply.changeVersionUnknown(channel.number), to: channel.session)
        sendHeld(channel)
        guard !channel.queuedCatchUps.isEmpty else { return }
        catchUp(channel, from: channel.queuedCatchUps.removeFirst(), mustAnswer: true, now: now)
    }

    /// The log no longer reaches back to the walk's `current`: the first page of a new walk is the answer.
    private func restartWalk(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        guard case .index(var query, let tag) = question, let feed: BucketFeed = channel.feed else { return }
        guard query.before != nil || query.current < feed.published else {
            return failed(question, on: channel, now: now)
        }
        if query.before != nil {
            metrics.walksRestarted.add(1)
            // What it has read of the old walk may be gone by now, and no change says so any more. With the old position it
            // is told all, or reads the index once more.
            if channel.removesUnlisted { query.told = query.told ?? query.current }
            query.before = nil
        }
        query.current = feed.published
        walk(channel, by: query, now: now)
        read(.index(query, tag: tag), for: channel)
    }

    /// The store could not be read. There is no word for it in the protocol, so the client comes again.
    private func failed(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        if case .grant = question {
            return turnAway(channel, .unreadable, now: now)
        }
        close(channel.session, .internalError, "the store cannot be read")
    }
}
