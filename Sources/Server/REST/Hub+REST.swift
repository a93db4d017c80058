import ThicketNet
import ThicketProtocol
import ThicketTreeShape

// Requests of the data API. Each is a session with one channel, so that tokens, buckets, limits, the shard and the
// readers treat it like a socket's session; what would be sent becomes its one answer.
extension Hub {
    /// Handles a request. Its connection sends no other until a `respond` action has answered this one.
    public func call(_ id: ConnectionID, _ call: RESTCall, now: HubInstant) {
        defer { emptyLeaving() }
        expireDue(now)
        nextGeneration += 1
        let session = Session(id: id, app: call.app, limits: limits)
        session.exchange = RESTExchange(call, generation: nextGeneration)
        insert(session)
        var request = InitRequest()
        request.deviceID = call.deviceID
        if call.makesTree { request.mode = BucketMode.tree.word }
        let channel = Channel(
            session: session, number: Self.callChannel, generation: nextGeneration, clientID: call.clientID,
            bucketName: call.bucket, branch: call.branch, request: request)
        session.channels.append(channel)
        read(.grant(token: call.token), for: channel)
    }

    /// The channel number of a request; pages are shared with the sockets that use it.
    private static let callChannel: ChannelNumber = 0

    /// Checks whether a token that belongs to no user is an administrator key of the app, for a request that needs one
    /// or names a user.
    /// - Returns: false for all other requests.
    func askAdministrator(about key: String, of channel: Channel) -> Bool {
        guard let call = channel.session.exchange?.call else { return false }
        let named = needsAdministrator(call) ? BucketOptions.bucket(of: call.app)?.user : call.user
        guard let user = named else { return false }
        read(.adminGrant(key: key, call.app, as: user), for: channel)
        return true
    }

    // MARK: Answering

    /// Ends a request with its answer. Later results for it are dropped.
    func answer(_ session: Session, _ response: HTTPResponse) {
        guard !session.isClosing, let exchange = session.exchange else { return }
        session.isClosing = true
        leaving.append(session)
        let response = response.adding(exchange.call.answerFields)
        metrics.restAnswers.add(1, .init(status: response.status))
        actions.append(.respond(session.id, response, tenant: session.tenant?.id ?? 0))
    }

    // MARK: Steps of a request

    /// Handles an accepted token.
    /// - Returns: whether the request needed no bucket and was answered.
    func isAnswered(_ channel: Channel, by admission: Admission) -> Bool {
        guard let exchange = channel.session.exchange else { return false }
        if let owner = exchange.call.owner, owner != admission.user, exchange.call.branch == nil {
            answer(channel.session, RESTAnswer.noTree)
            return true
        }
        switch exchange.call.operation {
        case .user: answer(channel.session, RESTAnswer.user(admission.user, name: admission.name))
        case .buckets: read(.buckets(exchange.call.app, admission.user), for: channel)
        case .all(let query): beginAll(exchange, query, on: channel)
        case .blob(let call): begin(call, on: channel, admission)
        case .inboxPolicy: read(.inboxPolicy(exchange.call.app, admission.user), for: channel)
        case .object, .index, .write, .submit, .changes, .unread, .batch, .children, .usage, .setInboxPolicy:
            return false
        }
        return true
    }

    /// Runs a request whose bucket is loaded.
    func run(_ exchange: RESTExchange, on channel: Channel, now: HubInstant) {
        guard let feed = channel.feed else { return }
        if let tenant = channel.tenant, isCrowded(tenant) {
            metrics.limitHits.add(1, tenant.reads >= limits.readsPerUserMax ? .userReads : .userChanges)
            return answer(channel.session, RESTAnswer.busy("The user has too many requests in progress."))
        }
        switch exchange.call.operation {
        case .object(let key, let version, _):
            guard let row = feed.row else { return answer(channel.session, RESTAnswer.objectNotFound) }
            read(.object(key, version, bucket: row, upTo: feed.published), for: channel)
        case .index(let request): index(request, of: feed, for: channel)
        case .write(let change, _, _): submit(change, on: channel, bytes: exchange.call.bytes, now: now)
        case .submit(let changes):
            guard !changes.isEmpty else { return answer(channel.session, RESTAnswer.changes([])) }
            submit(changes, on: channel, bytes: exchange.call.bytes, now: now)
        case .changes(let text): wait(on: channel, since: text, now: now)
        case .unread(let body): read(body, for: channel)
        case .batch(let request): submit(request, of: feed, on: channel, now: now)
        case .setInboxPolicy(let policy): submit(policy, of: feed, on: channel, now: now)
        case .children(let query): children(query, of: feed, for: channel)
        case .usage: usage(of: feed, for: channel)
        case .buckets, .user, .all, .blob, .inboxPolicy: break
        }
    }

    private func index(_ request: IndexRequest, of feed: BucketFeed, for channel: Channel) {
        var query = indexQuery(request, of: feed)
        if let since = request.since {
            guard let gid = codec.decode(since, tag: feed.tag), gid <= feed.published else {
                return answer(channel.session, RESTAnswer.unknownPosition)
            }
            if query.oldestFirst { query.before = max(gid, query.before ?? 0) } else { query.since = gid }
        }
        guard feed.row != nil else {
            return answer(
                channel.session, RESTAnswer.emptyIndex(current: codec.encode(query.current, tag: feed.tag)))
        }
        read(.index(query, tag: feed.tag), for: channel)
    }

    // MARK: Results of the readers

    /// - Returns: false when the answer has the form that sockets get.
    func answered(
        _ exchange: RESTExchange, _ request: ReadRequest, _ found: ReadAnswer, on channel: Channel, now: HubInstant
    ) -> Bool {
        let session = channel.session
        switch found {
        case .grant, .ended, .opened, .changes, .message: return false
        case .object(let version, let body): answer(session, object(exchange, version, body))
        case .buckets(let names): answer(session, RESTAnswer.buckets(names))
        case .body(let reading): hasRead(reading, exchange, on: channel, now: now)
        case .all(let page): foundAll(exchange, page, on: channel, now: now)
        case .index(let frame, _): answer(session, RESTAnswer.json(Array(frame.argument)))
        case .noBranch: answer(session, RESTAnswer.noBranch)
        case .membership: return false
        case .children(let page): answer(session, RESTAnswer.json(page))
        case .inboxPolicy(let policy): answer(session, RESTAnswer.json(JSONValue.object(policy.object).serialized()))
        case .usage(let usage): answer(session, RESTAnswer.json(JSONValue.object(usage.object).serialized()))
        case .indexForgotten: restart(request, on: channel)
        case .entity, .changesForgotten: answer(session, RESTAnswer.unknownPosition)
        case .failed: answer(session, RESTAnswer.busy("The store cannot be read."))
        }
        return true
    }

    private func object(_ exchange: RESTExchange, _ version: Version, _ body: [UInt8]?) -> HTTPResponse {
        switch exchange.call.operation {
        case .object(_, _, let terms):
            guard let body else { return RESTAnswer.objectNotFound }
            if let wanted = terms.wanted, !wanted.contains(version) { return RESTAnswer.versionMismatch }
            return terms.known.contains(version)
                ? RESTAnswer.notModified(version: version) : RESTAnswer.object(body, version: version)
        default:
            // The object was written just now and is deleted again, or cannot be read from the store; the change is
            // stored in any case.
            return body.map { RESTAnswer.object($0, version: version) } ?? RESTAnswer.written(version: version)
        }
    }

    /// The log no longer reaches back to the index scan's `current`: the answer is the first page of a new scan.
    private func restart(_ request: ReadRequest, on channel: Channel) {
        guard case .index(var query, let tag) = request.question, let feed = channel.feed,
            query.before != nil || query.current < feed.published
        else { return answer(channel.session, RESTAnswer.busy("The index cannot be read.")) }
        if query.before != nil { metrics.scansRestarted.add(1) }
        (query.before, query.replacedCurrent) = (nil, nil)
        query.current = feed.published
        read(.index(query, tag: tag), for: channel)
    }

    // MARK: Results of changes

    /// Reports the results of changes to their requests, in the order in which the changes were decided.
    func answerCalls(_ outcome: BucketOutcome, in feed: BucketFeed) {
        for event in outcome.events {
            switch event {
            case .applied(let outcome):
                guard let channel = self.channel(outcome.origin, in: feed),
                    let exchange = channel.session.exchange
                else { continue }
                applied(outcome, exchange, on: channel)
            case .batch(let outcome):
                guard let channel = self.channel(outcome.origin, in: feed) else { continue }
                answer(channel.session, RESTAnswer.json(outcome.answer))
            case .refused(let outcome):
                guard let channel = self.channel(outcome.origin, in: feed),
                    let exchange = channel.session.exchange
                else { continue }
                let element = Reply.refusal(
                    client: outcome.clientID.text, key: outcome.key, code: outcome.code, changeIDs: outcome.changeIDs,
                    tree: outcome.tree)
                refused(outcome.code, element, exchange, on: channel, because: outcome)
            }
        }
    }

    /// The request's change is on disk.
    private func applied(_ applied: AppliedOutcome, _ exchange: RESTExchange, on channel: Channel) {
        // The last removal of an `EMPTY` answers it.
        guard !applied.isStep else { return }
        switch exchange.call.operation {
        case .write(_, _, let wantsObject):
            guard wantsObject, let row = channel.feed?.row else {
                return answer(channel.session, RESTAnswer.written(version: applied.version))
            }
            read(.object(applied.key, applied.version, bucket: row, upTo: applied.gid), for: channel)
        case .submit: gather(applied.element, exchange, on: channel)
        default: break
        }
    }

    /// The request's change was refused.
    /// - Parameter element: the refusal in the form for sockets.
    /// - Parameter outcome: the shard's refusal; nil for one of the loop.
    func refused(
        _ code: ErrorCode, _ element: [UInt8], _ exchange: RESTExchange, on channel: Channel,
        because outcome: RefusedOutcome? = nil
    ) {
        switch exchange.call.operation {
        case .write(let change, let terms, _):
            if outcome?.sealedFault != nil, code == .invalidRequest {
                return answer(channel.session, RESTAnswer.sealedBucket)
            }
            if let tree = outcome?.tree, let response = RESTAnswer.of(tree, code) {
                return answer(channel.session, response)
            }
            if code == .invalidRequest, let name = channel.bucketName, BucketOptions.isBucket(name) {
                return answer(channel.session, BucketOptions.refusal)
            }
            let removes = change.operation == .remove
            answer(channel.session, RESTAnswer.of(code, removes: removes, isConditional: terms.condition != nil))
        case .submit: gather(element, exchange, on: channel)
        case .batch, .setInboxPolicy:
            let tree = outcome?.tree
            answer(
                channel.session,
                RESTAnswer.of(
                    BatchRefusal(code, tree?.reason, operation: outcome?.operation, current: tree?.current)))
        default: break
        }
    }

    private func gather(_ element: [UInt8], _ exchange: RESTExchange, on channel: Channel) {
        guard case .submit(let changes) = exchange.call.operation else { return }
        exchange.results.append(element)
        guard exchange.results.count == changes.count else { return }
        answer(channel.session, RESTAnswer.changes(exchange.results))
    }
}

extension SharedFrame {
    /// The argument of the message on a one-digit channel with a one-letter command: the part after `0:i:`.
    var argument: ArraySlice<UInt8> {
        // RFC 6455, 5.2: the length is in the second byte, or in the two or eight bytes after it.
        let head = bytes.count < 2 || bytes[1] < 126 ? 2 : bytes[1] == 126 ? 4 : 10
        return bytes.dropFirst(head + 4)
    }
}
