import ThicketProtocol

// `i`, `e`, `cv`, and the answers of the readers (wire contract, section 5).
extension Hub {
    // MARK: Asking

    /// Hands a question to the readers. A connection with too many open questions is not read for a while.
    /// - Parameter isContinued: the answer follows another one, so the question waits until that has mostly been sent.
    /// - Returns: false when the connection is being closed, perhaps because of this question.
    @discardableResult
    func read(_ question: ReadQuestion, for channel: Channel, isContinued: Bool = false) -> Bool {
        let session = channel.session
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
        let request = ReadRequest(origin: channel.origin, question: question)
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
        } else if let tenant = session.tenant, tenant.reads >= limits.readsPerUserMax {
            hold(session, of: tenant, .userReads)
        }
        return true
    }

    /// Answers one version of an object.
    func entity(_ key: String, _ version: Version, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        if case .scanning(let current, _) = channel.stream {
            channel.stream = .scanning(current: current, deadline: now.monotonic + Channel.scanPauseMax)
        }
        guard let row = feed.row, version > 0 else {
            return send(Reply.entity(channel.number, key: key, version: version, body: nil), to: channel.session)
        }
        read(
            .entity(key: key, version: version, bucket: row, upTo: feed.published, member: channel.member), for: channel
        )
    }

    /// Answers which objects were removed, or when one was.
    func removed(_ request: RemovedRequest, on channel: Channel) {
        guard let feed = channel.feed else { return }
        guard channel.branch == nil else { return send(Reply.notUnderstood(channel.number), to: channel.session) }
        guard let row = feed.row else {
            return send(Reply.removed(channel.number, RemovedPage(request.scope, entries: [])), to: channel.session)
        }
        read(.removed(request, bucket: row, upTo: feed.published), for: channel)
    }

    /// Answers all changes since a position, and subscribes from it.
    func changesSince(_ text: String, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        guard let gid = codec.decode(text, tag: feed.tag), gid <= feed.published else {
            metrics.catchUps.add(1, .unknown)
            channel.quietPosition = nil
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

    /// Sends a channel the changes after `gid` and makes it live; from memory when the tail reaches back that far.
    func catchUp(_ channel: Channel, from gid: GlobalID, mustAnswer: Bool, now: HubInstant) {
        guard let feed = channel.feed else { return }
        if let tail = feed.tail(after: gid) {
            let member = channel.member
            // What was written while the account was no reader has keys that it got later, with the root's newest
            // record.
            if let member, tail.contains(where: { $0.excludes(member) }) { return forgotten(channel, now: now) }
            let missed = member.map { member in tail.compactMap { $0.seen(in: member.root) }[...] } ?? tail
            if !missed.isEmpty || mustAnswer {
                if mustAnswer { metrics.catchUps.add(1, missed.isEmpty ? .current : .memory) }
                deliver(missed, to: channel, now: now)
            }
            return becomeLive(channel, now: now)
        }
        if mustAnswer { metrics.catchUps.add(1, .disk) }
        channel.stream = .catchingUp(after: gid, upTo: feed.published, mustAnswer: mustAnswer)
        read(
            .changes(
                bucket: feed.row ?? 0, tag: feed.tag, after: gid, upTo: feed.published, member: channel.member),
            for: channel)
    }

    private func deliver(_ entries: ArraySlice<BucketFeed.Entry>, to channel: Channel, now: HubInstant) {
        metrics.deliveries.add(entries.count)
        guard channel.session.exchange == nil else {
            return answer(channel.session, RESTAnswer.changes(entries.lazy.map(\.element)))
        }
        let bytes = entries.reduce(0) { $0 + $1.element.count + 1 }
        send(Reply.changes(channel.number, entries.lazy.map(\.element), bytes: bytes), to: channel.session)
        guard channel.library == .nodeSimperium else { return }
        for entry in entries where entry.isRemoval {
            channel.hints.record(entry.key, at: now.monotonic)
        }
    }

    private func becomeLive(_ channel: Channel, now: HubInstant) {
        channel.stream = .live
        if let exchange = channel.session.exchange { begin(waiting: exchange, on: channel, now: now) }
        sendHeld(channel)
        guard !channel.queuedCatchUps.isEmpty else { return }
        catchUp(channel, from: channel.queuedCatchUps.removeFirst(), mustAnswer: true, now: now)
    }

    func sendHeld(_ channel: Channel) {
        let held = channel.takeHeld()
        if !held.isEmpty { send(Reply.changes(channel.number, held), to: channel.session) }
    }

    // MARK: Answers

    /// A reader answered. Answers to channels that are gone are dropped.
    public func answered(_ request: ReadRequest, _ answer: ReadAnswer, now: HubInstant) {
        defer { emptyLeaving() }
        finish(request)
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
        if case .body(let body) = request.question { endReading(body.weight, of: body.tenant) }
        guard let session = session(request.origin.connection), !session.isClosing,
            let channel = session.channel(request.origin.channel), channel.readGeneration == request.origin.generation
        else { return }
        if let exchange = session.exchange,
            answered(exchange, request, answer, on: channel, now: now)
        {
            return
        }
        switch answer {
        case .membership(let isReader, let head): found(isReader: isReader, head: head, for: channel, now: now)
        case .noBranch: break
        case .grant(let grant): granted(grant, of: request.question, to: channel, now: now)
        case .ended: turnAway(channel, .accountEnded, now: now)
        case .opened, .object, .buckets, .all, .message, .body, .children, .usage, .inboxPolicy: break
        case .entity(let frame): send(frame, to: session)
        case .index(let frame, let isLast):
            send(frame, to: session)
            scanned(channel, isLast: isLast, isHeadProbe: request.question.isHeadProbe, now: now)
        case .indexForgotten: restartScan(request.question, on: channel, now: now)
        case .changes(let frame, let count, let through, let removals):
            caughtUp(channel, frame, count: count, through: through, removals: removals, now: now)
        case .changesForgotten: forgotten(channel, now: now)
        case .failed: failed(request.question, on: channel, now: now)
        }
    }

    private func finish(_ request: ReadRequest) {
        readsOutstanding -= 1
        metrics.readsQueued.set(readsOutstanding)
        // The HTTP connection of an answered request may already carry the next one.
        if let session = session(request.origin.connection),
            session.exchange == nil || session.exchange?.generation == request.origin.generation
        {
            session.readsOutstanding -= 1
            if let tenant = session.tenant {
                tenant.reads -= 1
                releaseHeld(tenant)
            }
            if let next = session.finished(request) { actions.append(.readWhenDrained(next)) }
            if session.readsOutstanding * 2 < limits.readsPerConnectionMax, readsOutstanding < limits.readsQueuedMax {
                resume(session, .reads)
            }
        }
        guard !heldByReads.isEmpty, readsOutstanding * 2 < limits.readsQueuedMax else { return }
        let held = heldByReads
        heldByReads = []
        for id in held {
            guard let session = session(id) else { continue }
            guard session.readsOutstanding < limits.readsPerConnectionMax else { continue }
            resume(session, .reads)
        }
    }

    /// A part of the log came from disk.
    private func caughtUp(
        _ channel: Channel, _ frame: SharedFrame, count: Int, through: GlobalID, removals: [EntityKey], now: HubInstant
    ) {
        guard case .catchingUp(_, let upTo, let mustAnswer) = channel.stream, let feed = channel.feed else {
            return
        }
        metrics.deliveries.add(count)
        if count > 0, channel.session.exchange != nil {
            return answer(channel.session, RESTAnswer.json(Array(frame.argument)))
        }
        if count > 0 || mustAnswer { send(frame, to: channel.session) }
        if channel.library == .nodeSimperium {
            for key in removals { channel.hints.record(key, at: now.monotonic) }
        }
        guard through < upTo else { return catchUp(channel, from: upTo, mustAnswer: false, now: now) }
        channel.stream = .catchingUp(after: through, upTo: upTo, mustAnswer: false)
        read(
            .changes(
                bucket: feed.row ?? 0, tag: feed.tag, after: through, upTo: upTo, member: channel.member),
            for: channel,
            isContinued: true)
    }

    /// The position was cut from the log, or a member was no reader of the branch meanwhile: the client reads the
    /// index.
    private func forgotten(_ channel: Channel, now: HubInstant) {
        metrics.catchUps.add(1, .unknown)
        channel.stream = .idle
        channel.quietPosition = nil
        send(Reply.changeVersionUnknown(channel.number), to: channel.session)
        sendHeld(channel)
        guard !channel.queuedCatchUps.isEmpty else { return }
        catchUp(channel, from: channel.queuedCatchUps.removeFirst(), mustAnswer: true, now: now)
    }

    /// The store could not be read. The protocol has no answer for that, so the connection is closed and the client
    /// reconnects.
    func failed(_ question: ReadQuestion, on channel: Channel, now: HubInstant) {
        if case .membership = question { return refuse(channel, .unreadable, now: now) }
        if case .grant = question {
            return turnAway(channel, .unreadable, now: now)
        }
        close(channel.session, .internalError, "the store cannot be read")
    }
}
