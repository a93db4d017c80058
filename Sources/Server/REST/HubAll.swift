import ThicketProtocol

// `GET BUCKET/all`: the changes that all users of an app make in the buckets of one name, for the app's administrators.
// It is answered from the log alone: what is on disk is acknowledged or about to be. The hub only says when to look
// again.
extension Hub {
    /// Requests of administrators for all changes under way at once; one more is answered 503.
    static let allCallsMax = 64
    /// Whether nobody but an administrator may ask that.
    func needsAdministrator(_ call: RESTCall) -> Bool {
        if case .all = call.operation { return true }
        return call.bucket.map(BucketOptions.isBucket) ?? false
    }

    /// The key is good: the log is read from the position that the request names.
    func beginAll(_ exchange: RESTExchange, _ query: AllQuery, on channel: Channel) {
        guard let name = exchange.call.bucket else { return }
        guard allCalls.count < Self.allCallsMax else {
            metrics.limitHits.add(1, .waiters)
            return answer(channel.session, RESTAnswer.busy("Too many administrators wait for changes."))
        }
        let app = exchange.call.app
        let tag = allTag(app, name)
        var after: GlobalID?
        if let text = query.since {
            guard let gid = codec.decode(text, tag: tag) else {
                return answer(channel.session, RESTAnswer.unknownPositionOfAll)
            }
            after = gid
        }
        exchange.all = AllProgress(tag: tag, after: after)
        allCalls.append(channel.session)
        readAll(exchange, query, on: channel)
    }

    /// A cv of `all` is a position in the server's whole log, and good for this bucket name only.
    private func allTag(_ app: AppID, _ name: BucketName) -> UInt32 {
        guard let owner = BucketOptions.bucket(of: app)?.user else { return 0 }
        return codec.tag(of: BucketID(app: app, user: owner, name: name))
    }

    private func readAll(_ exchange: RESTExchange, _ query: AllQuery, on channel: Channel) {
        guard let name = exchange.call.bucket, let progress = exchange.all else { return }
        exchange.all?.isReading = true
        exchange.all?.hasNews = false
        read(
            .all(
                AllQuestion(
                    app: exchange.call.app, name: name, after: progress.after, isFirst: !progress.hasRead, query: query,
                    tag: progress.tag)),
            for: channel)
    }

    /// A reader has looked at a part of the log.
    func foundAll(_ exchange: RESTExchange, _ page: AllPage?, on channel: Channel, now: HubInstant) {
        guard case .all(let query) = exchange.call.operation else { return }
        guard let page else { return answer(channel.session, RESTAnswer.unknownPositionOfAll) }
        guard page.elements.isEmpty else { return answer(channel.session, RESTAnswer.changes(page.elements)) }
        exchange.all?.isReading = false
        exchange.all?.hasRead = true
        exchange.all?.after = page.through
        if !page.isAtEnd || exchange.all?.hasNews == true { return readAll(exchange, query, on: channel) }
        begin(waiting: exchange, on: channel, now: now)
    }

    /// A group changed a bucket: whoever waits for changes of that name looks again.
    func tellAll(_ outcome: BucketOutcome) {
        guard outcome.published != nil else { return }
        for session in allCalls {
            guard let exchange = session.exchange, exchange.call.app == outcome.bucket.app,
                exchange.call.bucket == outcome.bucket.name, case .all(let query) = exchange.call.operation,
                !session.isClosing, let channel = session.channels.first
            else { continue }
            if exchange.all?.isReading == true {
                exchange.all?.hasNews = true
            } else {
                endWaiting(session)
                readAll(exchange, query, on: channel)
            }
        }
    }
}

/// How far a request for all changes has come.
struct AllProgress {
    let tag: UInt32
    /// Position up to which nothing was found; nil before the first look of a request that named none.
    var after: GlobalID?
    /// The log was looked at.
    var hasRead = false
    /// A reader is looking.
    var isReading = false
    /// Something was published since it began.
    var hasNews = false

    init(tag: UInt32, after: GlobalID?) { (self.tag, self.after) = (tag, after) }
}
