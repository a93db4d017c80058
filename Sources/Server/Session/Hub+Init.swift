import ThicketAuth
import ThicketProtocol
import ThicketTreeShape

// `init`: token, bucket, and the commands that came with it (wire contract, section 4).
extension Hub {
    /// Longest token that an operator makes, bytes.
    static let tokenBytesMax = 1_024

    /// Starts a channel from the beginning, except when the `init` only renews its token; an earlier channel of
    /// that number is removed.
    func initialize(_ number: ChannelNumber, of session: Session, with request: InitRequest, now: HubInstant) {
        if let old = session.channel(number) {
            if isRenewal(request, of: old) { return renew(old, with: request) }
            remove(old)
        }
        let channel: Channel
        do {
            channel = try admit(number, of: session, request)
        } catch {
            refuse(number, of: session, error, expectsExpired: request.expectsExpired)
            return
        }
        session.channels.append(channel)
        if let first = request.firstCommand,
            !channel.keep(first, bytes: request.command?.utf8.count ?? 0)
        {
            send(Reply.notUnderstood(number), to: session)
        }
        read(.grant(token: request.token ?? ""), for: channel)
    }

    /// The token if it is worth checking: not empty, no white space, not longer than any token that exists.
    static func acceptable(_ token: String?) -> String? {
        guard let token, !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            token.utf8.count <= tokenBytesMax || SignedToken.hasForm(token)
        else { return nil }
        return token
    }

    /// Checks everything that needs no access to the store.
    private func admit(
        _ number: ChannelNumber, of session: Session, _ request: InitRequest
    ) throws(InitRefusal) -> Channel {
        guard Self.acceptable(request.token) != nil else { throw .malformed }
        guard number <= Limits.channelNumberMax else { throw InitRefusal(.serverError, "Channel number too large") }
        guard session.channels.count < limits.channelsPerConnectionMax else {
            metrics.limitHits.add(1, .channels)
            throw InitRefusal(.serverError, "Too many channels")
        }
        let app: AppID = try Self.name(request.appID, "App id")
        guard app == session.app else {
            throw InitRefusal(.serverError, "App id invalid: it is not the app of the connection's path")
        }
        let target = try Self.target(request.name)
        let clientID: ClientID = try Self.name(request.clientID, "Client id")
        nextGeneration += 1
        return Channel(
            session: session, number: number, generation: nextGeneration, clientID: clientID, bucketName: target.bucket,
            branch: target.branch, request: request)
    }

    /// The bucket that a name names, or the branch of another account's tree.
    static func target(_ text: String?) throws(InitRefusal) -> (bucket: BucketName, branch: BranchName?) {
        if let branch = text.flatMap({ BranchName($0) }), let tree = try? BucketName(BucketMode.treeName) {
            return (tree, branch)
        }
        return (try name(text, "Bucket name"), nil)
    }

    private static func name<Name: Identifier>(_ text: String?, _ what: String) throws(InitRefusal) -> Name {
        guard let text else { throw InitRefusal(.serverError, "\(what) invalid: it is missing") }
        do throws(IdentifierError) { return try Name(text) } catch {
            throw InitRefusal(.serverError, "\(what) invalid: it \(error.problem)")
        }
    }

    /// The token was looked up in the store.
    func granted(_ grant: TokenGrant?, of question: ReadQuestion, to channel: Channel, now: HubInstant) {
        guard let grant else {
            if case .grant(let token) = question {
                if askAdministrator(about: token, of: channel) || askPartner(about: token, of: channel) { return }
            }
            // Not an administrator's key; with a partner's token it is a request of that token's user.
            if case .adminGrant(let key, _, _) = question, askPartner(about: key, of: channel) { return }
            return turnAway(channel, .invalid, now: now)
        }
        guard grant.app == channel.session.app else { return turnAway(channel, .invalid, now: now) }
        guard grant.isGood(at: now.unix) else { return turnAway(channel, .tokenExpired, now: now) }
        guard !signedOut.mayBeOld(Tenant.Name(app: grant.app, user: grant.user), generation: channel.readGeneration)
        else {
            return signOut(channel)
        }
        let isAdministrator = if case .adminGrant = question { true } else { false }
        enter(channel, Admission(grant, isAdministrator: isAdministrator), now: now)
    }

    /// The token is not good, for a new channel or for one that has lapsed.
    func turnAway(_ channel: Channel, _ refusal: InitRefusal, now: HubInstant) {
        if case .lapsed = channel.phase {
            refuseRenewal(of: channel, refusal)
        } else {
            refuse(channel, refusal, now: now)
        }
    }

    /// The token is good: the bucket is opened, or delivery continues.
    func enter(_ channel: Channel, _ admission: Admission, now: HubInstant) {
        if case .lapsed = channel.phase { return renewed(channel, admission, now: now) }
        guard let app = channel.session.app else { return }
        let needsAdministrator =
            channel.session.exchange.map { self.needsAdministrator($0.call) }
            ?? channel.bucketName.map(BucketOptions.isBucket) ?? false
        guard admission.isAdministrator || !needsAdministrator else {
            return refuse(
                channel, InitRefusal(.serverError, "Only administrators have this bucket", limit: .administrators),
                now: now)
        }
        guard admission.permits(channel.branch, channel.session.exchange?.call.operation) else {
            return refuse(channel, .noBranch, now: now)
        }
        (channel.user, channel.name) = (admission.user, admission.name)
        channel.canWrite = admission.canWrite
        remember(channel, admission, now: now)
        let tenant = join(channel.session, Tenant.Name(app: app, user: admission.user), now: now)
        guard tenant.channels < limits.channelsPerUserMax else {
            metrics.limitHits.add(1, .userChannels)
            return refuse(channel, InitRefusal(.serverError, "Too many channels of this user"), now: now)
        }
        tenant.channels += 1
        channel.tenant = tenant
        guard !isAnswered(channel, by: admission), let name = channel.bucketName else { return }
        let bucket = BucketID(app: app, user: channel.branch?.owner ?? admission.user, name: name)
        let feed = feeds[bucket] ?? BucketFeed(bucket: bucket, tag: codec.tag(of: bucket))
        guard feed.channelCount < limits.subscribersPerBucketMax else {
            metrics.limitHits.add(1, .subscribers)
            return refuse(channel, InitRefusal(.serverError, "Too many clients on this bucket"), now: now)
        }
        channel.feed = feed
        guard !feed.isOpen else { return admit(channel, to: feed, now: now) }
        channel.phase = .opening
        feed.waiters.append(channel)
        guard feeds.updateValue(feed, forKey: bucket) == nil else { return }
        // Without a reader's answer the bucket would never be opened.
        if !read(.open(bucket), for: channel) { feeds[bucket] = nil }
    }

    /// The bucket was looked up.
    func opened(
        _ bucket: BucketID, _ record: BucketRecord?, buckets: Int, mode: BucketMode, now: HubInstant
    ) {
        guard let feed = feeds[bucket], !feed.isOpen else { return }
        let waiters = feed.waiters
        guard record != nil || feed.row != nil || buckets < limits.bucketsPerUserMax else {
            metrics.limitHits.add(1, .buckets)
            feeds[bucket] = nil
            tailBytes -= feed.tailBytes
            feed.waiters = []
            for channel in waiters {
                let isMember = channel.branch != nil
                refuse(
                    channel,
                    isMember ? .noBranch : InitRefusal(.serverError, "Bucket limit reached", limit: .buckets), now: now)
            }
            return
        }
        tailBytes -= feed.tailBytes
        feed.open(record, mode: mode)
        tailBytes += feed.tailBytes
        for channel in waiters {
            // A command kept by an earlier channel may have closed their connection.
            guard case .opening = channel.phase, channel.feed === feed, !channel.session.isClosing else { continue }
            admit(channel, to: feed, now: now)
        }
        feed.waiters = []
        discard(feed)
    }

    /// The bucket could not be looked up; the next `init` tries again.
    func openFailed(_ bucket: BucketID, now: HubInstant) {
        guard let feed = feeds[bucket], !feed.isOpen else { return }
        feeds[bucket] = nil
        tailBytes -= feed.tailBytes
        for channel in feed.waiters {
            refuse(channel, .unreadable, now: now)
        }
        feed.waiters = []
    }

    private func admit(_ channel: Channel, to feed: BucketFeed, now: HubInstant) {
        // A member does not choose the mode. A request asks with its question whether its author is one.
        if channel.branch != nil {
            return channel.session.exchange == nil
                ? askMembership(channel, in: feed, now: now) : welcome(channel, to: feed, now: now)
        }
        guard !awaitsMode(channel, of: feed) else { return }
        welcome(channel, to: feed, now: now)
    }

    /// The channel is open.
    func welcome(_ channel: Channel, to feed: BucketFeed, now: HubInstant) {
        guard let name = channel.name else { return }
        channel.phase = .ready
        feed.add(channel)
        metrics.channels.add()
        metrics.authorizations.add(1, .authorized)
        if let exchange = channel.session.exchange { return run(exchange, on: channel, now: now) }
        send(Reply.authorized(channel.number, name), to: channel.session)
        sayOptions(of: feed, to: channel, isAsked: channel.asksMode)
        beginSilence(of: channel)
        runQueued(channel, now: now)
        if channel.isReady { watchSilence(of: channel, now: now) }
    }

    /// Runs the commands kept while the token was checked.
    func runQueued(_ channel: Channel, now: HubInstant) {
        for (request, bytes) in channel.takeQueued() {
            guard case .ready = channel.phase, !channel.session.isClosing else { return }
            run(request, on: channel, bytes: bytes, now: now)
        }
    }

    /// Refuses an `init` for which a channel was already made.
    func refuse(_ channel: Channel, _ refusal: InitRefusal, now: HubInstant) {
        let queued = channel.queued.count
        channel.feed?.joining.removeAll { $0 === channel }
        if let feed = channel.feed, channel.branch != nil {
            channel.feed = nil
            discard(feed)
        }
        channel.feed = nil
        remove(channel)
        refuse(channel.number, of: channel.session, refusal, expectsExpired: channel.expectsExpired)
        for _ in 0..<queued { send(Reply.notUnderstood(channel.number), to: channel.session) }
    }

    func refuse(_ number: ChannelNumber, of session: Session, _ refusal: InitRefusal, expectsExpired: Bool) {
        metrics.authorizations.add(1, refusal.code == .unauthorized ? .refused : .failed)
        sendRefusal(number, of: session, refusal, expectsExpired: expectsExpired)
    }

    func sendRefusal(_ number: ChannelNumber, of session: Session, _ refusal: InitRefusal, expectsExpired: Bool) {
        guard session.exchange == nil else {
            return answer(session, refusal.limit == .branch ? RESTAnswer.noBranch : RESTAnswer.of(refusal))
        }
        if expectsExpired { send(Reply.authExpired(number), to: session) }
        send(Reply.authFailed(number, refusal.code, refusal.message), to: session)
    }

    // MARK: Leaving

    func remove(_ channel: Channel) {
        leave(channel)
        channel.session.channels.removeAll { $0 === channel }
    }

    /// The channel is over: nothing more is sent to it.
    func leave(_ channel: Channel) {
        let wasReady = channel.isReady
        let wasOpen = if case .lapsed = channel.phase { true } else { wasReady }
        channel.phase = .gone
        channel.renewal = nil
        forget(channel)
        _ = channel.takeQueued()
        _ = channel.takeHeld()
        channel.tenant?.channels -= 1
        channel.tenant = nil
        guard let feed = channel.feed else { return }
        channel.feed = nil
        if wasReady { metrics.channels.subtract() }
        if wasOpen {
            feed.remove(channel)
        } else {
            feed.waiters.removeAll { $0 === channel }
            feed.choosing.removeAll { $0 === channel }
            feed.joining.removeAll { $0 === channel }
        }
        discard(feed)
    }

    /// Forgets a bucket without subscribers. A bucket that is being opened stays until the reader has answered and
    /// all waiting channels have been admitted.
    func discard(_ feed: BucketFeed) {
        guard feed.isOpen, feed.channelCount == 0, feeds[feed.bucket] === feed
        else { return }
        feeds[feed.bucket] = nil
        tailBytes -= feed.tailBytes
    }
}

/// Why an `init` was refused: the code and text of the answer.
struct InitRefusal: Error {
    let code: ErrorCode
    let message: String
    /// A limit that makes a retry useless.
    let limit: Limit?

    enum Limit: Equatable {
        /// The user has too many buckets.
        case buckets
        /// The request is reserved for administrators.
        case administrators
        /// Too many tokens failed; none is checked for so many whole seconds.
        case attempts(seconds: Int)
        /// The user's account has ended, and its data is being erased.
        case ended
        /// The user is no reader of the branch, or it does not exist.
        case branch
    }

    init(_ code: ErrorCode, _ message: String, limit: Limit? = nil) {
        self.code = code
        self.message = message
        self.limit = limit
    }
}
