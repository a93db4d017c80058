import ThicketNet
import ThicketProtocol
import ThicketTreeShape

// `c`: changes go to the shard, and after the commit to all subscribers (wire contract, section 6).
extension Hub {
    /// Percent of the high-water mark below which senders are read again.
    private static let lowWaterPercent = 50

    /// Hands the change of a message to the shard.
    func submit(_ change: ChangeRequest, on channel: Channel, bytes: Int, now: HubInstant) {
        let memory = bytes + change.documentTapeBytes
        guard let feed = channel.feed,
            let code = submit(change, on: channel, of: feed, bytes: memory, now: now)
        else { return }
        refuse([(change, code)], on: channel)
    }

    /// Hands the changes of one message to the shard.
    func submit(_ changes: [ChangeRequest], on channel: Channel, bytes: Int, now: HubInstant) {
        guard let feed = channel.feed else { return }
        guard let first = changes.first else { return }
        let memory = (bytes + first.documentTapeBytes) / changes.count
        var refused = [(ChangeRequest, ErrorCode)]()
        for change in changes {
            if let code = submit(change, on: channel, of: feed, bytes: memory, now: now) {
                refused.append((change, code))
            }
        }
        refuse(refused, on: channel)
    }

    /// - Parameter bytes: memory it takes until it is decided.
    /// - Returns: why the change is refused here; nil when it was handed to the shard.
    func submit(
        _ change: ChangeRequest, on channel: Channel, of feed: BucketFeed, bytes: Int, now: HubInstant,
        batch: TreeBatchRequest? = nil, policy: InboxPolicy? = nil
    ) -> ErrorCode? {
        let session = channel.session
        let isRefused = meter(&session.changes, of: session, limit: .changeRate, now: now)
        guard !isRefused else { return .unavailable }
        // A member's changes are batches: a single change is not verified.
        guard channel.branch == nil || batch != nil else { return .unauthorized }
        guard inFlight.count < limits.changesQueuedMax, inFlight.bytes < limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return .unavailable
        }
        if let tenant = session.tenant, isOverfull(tenant) {
            metrics.limitHits.add(1, .userChanges)
            return .unavailable
        }
        endScan(channel, now: now)
        endSilence(of: channel, now: now)
        let submitted = SubmittedChange(
            origin: ChangeOrigin(
                connection: session.id.packed, channel: channel.number, generation: channel.generation),
            bucket: feed.bucket,
            clientID: channel.clientID, library: channel.library, canWrite: channel.canWrite,
            echoesRemoval: isEcho(change, on: channel, now: now), request: change, now: now.unix,
            reservation: begin(session, bytes: bytes, now: now), terms: session.exchange?.call.terms,
            batch: batch, policy: policy)
        actions.append(.submit(.change(submitted)))
        guard isAboveHighWater else { return nil }
        if !session.pauses.contains(.queue) {
            heldByQueue.append(session.id)
            metrics.limitHits.add(1, .queueHighWater)
        }
        pause(session, .queue)
        return nil
    }

    private var isAboveHighWater: Bool {
        inFlight.count * 100 >= limits.changesQueuedMax * limits.queueHighWaterPercent
            || inFlight.bytes * 100 >= limits.changeBytesQueuedMax * limits.queueHighWaterPercent
    }

    private var isBelowLowWater: Bool {
        inFlight.count * 10_000 < limits.changesQueuedMax * limits.queueHighWaterPercent * Self.lowWaterPercent
            && inFlight.bytes * 10_000
                < limits.changeBytesQueuedMax * limits.queueHighWaterPercent * Self.lowWaterPercent
    }

    /// Whether this is the removal with which `node-simperium` answers a removal that it was sent.
    private func isEcho(_ change: ChangeRequest, on channel: Channel, now: HubInstant) -> Bool {
        guard channel.library == .nodeSimperium else { return false }
        guard case .remove = change.operation, change.sv == nil else {
            channel.hints.forget(change.key)
            return false
        }
        return channel.hints.takeEcho(of: change.key, at: now.monotonic)
    }

    /// Refuses changes that the shard has not seen, all in one message.
    func refuse(_ changes: [(ChangeRequest, ErrorCode)], on channel: Channel) {
        guard !changes.isEmpty else { return }
        let exchange = channel.session.exchange
        var elements = [[UInt8]]()
        for (change, code) in changes {
            metrics.changesRefused.add(1, code)
            elements.append(
                Reply.refusal(
                    client: channel.clientID.text, key: change.key, code: code,
                    changeIDs: change.ccid.isEmpty ? [] : [change.ccid]))
            if let exchange, let element = elements.last { refused(code, element, exchange, on: channel) }
        }
        send(Reply.changes(channel.number, elements), to: channel.session)
    }

    // MARK: After the commit

    /// A commit group is on disk, or was refused as a whole: its outcomes are sent, in order.
    public func committed(_ outcome: CommitOutcome, now: HubInstant) {
        for reservation in outcome.released { release(reservation, now: now) }
        defer { emptyLeaving() }
        expireDue(now)
        for bucket in outcome.buckets { deliver(bucket, now: now) }
        guard !heldByQueue.isEmpty, isBelowLowWater else { return }
        let held = heldByQueue
        heldByQueue = []
        for id in held {
            if let session = session(id) { resume(session, .queue) }
        }
    }

    private func deliver(_ outcome: BucketOutcome, now: HubInstant) {
        if !allCalls.isEmpty { notifyAll(outcome) }
        guard let feed = feeds[outcome.bucket] else { return }
        if let mode = outcome.mode { receiveMode(mode, of: feed, now: now) }
        let before = feed.tailBytes
        let wasThere = feed.row != nil
        let fresh = feed.publish(outcome, limits: limits)
        if !wasThere, feed.row != nil { sayIdentity(of: feed) }
        tailBytes += feed.tailBytes - before
        if !fresh.isEmpty {
            if feed.members > 0 { revoke(fresh, in: feed) }
            broadcast(fresh, in: feed, now: now)
            acknowledge(outcome, in: feed, above: fresh[0].gid)
        }
        refuse(outcome, in: feed)
        if calls > 0 { answerCalls(outcome, in: feed) }
        if tailBytes > limits.tailBytesTotalMax {
            tailBytes -= feed.tailBytes
            feed.dropTail()
        }
        tailGauge.set(tailBytes)
    }

    /// Sends a group's changes to every live channel; channels with the same number share one frame.
    private func broadcast(_ entries: [BucketFeed.Entry], in feed: BucketFeed, now: HubInstant) {
        let bytes = entries.reduce(0) { $0 + $1.element.count + 1 }
        let removals = entries.compactMap { $0.isRemoval ? $0.key : nil }
        if feed.members > 0 { broadcast(entries, toMembersIn: feed) }
        var frames = [(number: ChannelNumber, frame: SharedFrame)]()
        var receivers = 0
        for channel in feed.subscribers where channel.isLive && !channel.session.isClosing && !channel.isMember {
            if channel.session.exchange != nil {
                answer(channel.session, RESTAnswer.changes(entries.lazy.map(\.element)))
                receivers += 1
                continue
            }
            let frame: SharedFrame
            if let made = frames.first(where: { $0.number == channel.number }) {
                frame = made.frame
            } else {
                frame = Reply.changes(channel.number, entries.lazy.map(\.element), bytes: bytes)
                if frames.count < 16 { frames.append((channel.number, frame)) }
            }
            actions.append(.send(channel.session.id, frame))
            receivers += 1
            guard channel.library == .nodeSimperium else { continue }
            for key in removals { channel.hints.record(key, at: now.monotonic) }
        }
        metrics.deliveries.add(receivers * entries.count)
    }

    /// Sends each member's live channel what belongs to its branch.
    private func broadcast(_ entries: [BucketFeed.Entry], toMembersIn feed: BucketFeed) {
        var frames = [MemberFrame: (frame: SharedFrame, count: Int)]()
        for channel in feed.subscribers where channel.isLive && !channel.session.isClosing {
            guard let root = channel.member?.root else { continue }
            let place = MemberFrame(root: root, channel: channel.number)
            let made: (frame: SharedFrame, count: Int)
            if let known = frames[place] {
                made = known
            } else {
                let seen = entries.compactMap { $0.seen(in: root) }
                let bytes = seen.reduce(0) { $0 + $1.element.count + 1 }
                made = (Reply.changes(channel.number, seen.lazy.map(\.element), bytes: bytes), seen.count)
                frames[place] = made
            }
            guard made.count > 0 else { continue }
            actions.append(.send(channel.session.id, made.frame))
            metrics.deliveries.add(made.count)
        }
    }

    private struct MemberFrame: Hashable {
        let root: NodeID
        let channel: ChannelNumber
    }

    /// Sends a channel that never asked for changes its own changes.
    private func acknowledge(_ outcome: BucketOutcome, in feed: BucketFeed, above first: GlobalID) {
        var own = [(channel: Channel, elements: [[UInt8]])]()
        for case .applied(let applied) in outcome.events where applied.gid >= first {
            guard let channel = self.channel(applied.origin, in: feed), channel.session.exchange == nil else {
                continue
            }
            switch channel.stream {
            case .idle: break
            case .suspended(.idle):
                _ = channel.hold(applied.element)
                continue
            default: continue
            }
            if let place = own.firstIndex(where: { $0.channel === channel }) {
                own[place].elements.append(applied.element)
            } else {
                own.append((channel, [applied.element]))
            }
        }
        for (channel, elements) in own {
            send(Reply.changes(channel.number, elements), to: channel.session)
            metrics.deliveries.add(elements.count)
        }
    }

    /// Sends refusals to their authors, after the changes they were derived from; those of one group as one message.
    private func refuse(_ outcome: BucketOutcome, in feed: BucketFeed) {
        var ready = [(channel: Channel, elements: [[UInt8]])]()
        for case .refused(let refused) in outcome.events {
            guard let channel = self.channel(refused.origin, in: feed), channel.session.exchange == nil else {
                continue
            }
            let element = Reply.refusal(
                client: refused.clientID.text, key: refused.key, code: refused.code, changeIDs: refused.changeIDs,
                tree: refused.tree)
            if channel.isBehind && channel.hold(element) || !channel.isReady { continue }
            if let place = ready.lastIndex(where: { $0.channel === channel }) {
                ready[place].elements.append(element)
            } else {
                ready.append((channel, [element]))
            }
        }
        for (channel, elements) in ready {
            send(Reply.changes(channel.number, elements), to: channel.session)
        }
    }

    func channel(_ origin: ChangeOrigin, in feed: BucketFeed) -> Channel? {
        guard let channel = session(ConnectionID(packed: origin.connection))?.channel(origin.channel),
            channel.generation == origin.generation, channel.feed === feed
        else { return nil }
        switch channel.phase {
        case .ready, .lapsed: return channel
        case .authenticating, .opening, .gone: return nil
        }
    }
}
