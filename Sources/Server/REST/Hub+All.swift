import ThicketProtocol

// `GET BUCKET/all`: the changes of all users of an app in the buckets of one name, for the app's administrators. It is
// answered from the log alone: what is on disk is acknowledged or about to be. The hub only triggers the next read.
extension Hub {
    /// Most requests for all changes in progress; a further one is answered 503.
    static let allCallsMax = 64
    /// Whether only an administrator may send this request.
    func needsAdministrator(_ call: RESTCall) -> Bool {
        if case .all = call.operation { return true }
        return call.bucket.map(BucketOptions.isBucket) ?? false
    }

    /// Begins after the key was accepted: reads the log from the position that the request names.
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

    /// A cv of `all` is a position in the server's whole log, and valid for this bucket name only.
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

    /// Handles a reader's result for a part of the log.
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

    /// Handles a committed change in a bucket: requests that wait for changes in buckets of that name read again.
    func notifyAll(_ outcome: BucketOutcome) {
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

/// Progress of a request for all changes.
struct AllProgress {
    let tag: UInt32
    /// Position up to which no change was found; nil before the first read of a request that named none.
    var after: GlobalID?
    /// Whether the log was read.
    var hasRead = false
    /// Whether a reader is reading.
    var isReading = false
    /// Whether a change was published since the reading began.
    var hasNews = false

    init(tag: UInt32, after: GlobalID?) { (self.tag, self.after) = (tag, after) }
}
