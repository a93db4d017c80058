package import ThicketClient
import ThicketProtocol
import ThicketTreeShape

/// The connection, and the one channel on it.
extension TreeMachine {
    /// The connection is open.
    package mutating func opened() throws(TreeError) {
        guard link.isConnecting else { return }
        link.opened(at: skeleton.time.monotonic)
        openChannel()
    }

    /// The connection could not be made, or ended.
    package mutating func closed(_ closure: LinkClosure) {
        guard link.isOpen || link.isConnecting else { return }
        channel.disconnected()
        lose(
            closure.isUntrusted ? .untrusted(closure.detail) : .unreachable(closure.detail),
            atLeast: closure.retryAfter ?? 0)
    }

    /// Bytes of an incomplete message were sent or received.
    package mutating func moved() {
        guard link.isOpen else { return }
        link.receivedBytes(at: skeleton.time.monotonic)
        if channel.answerDue != nil { awaitAnswer() }
    }

    package mutating func goOnline() {
        switch link.state {
        case .open, .connecting: return
        case .waiting, .parked:
            link.backoff.reset()
            (link.endedToken, channel.failures) = (nil, 0)
            connect()
        }
    }

    package mutating func goOffline(_ reason: OfflineReason = .requested) { park(reason) }

    /// Uses another token from now on.
    package mutating func adopt(token: String, number: Int) {
        (link.options.token, link.options.tokenNumber) = (token, number)
        switch link.state {
        case .parked(.unauthorized), .parked(.wrongAccount):
            link.backoff.reset()
            link.state = .waiting(until: skeleton.time.monotonic, .unreachable("the token changed"))
        case .open: if channel.phase == .closed { openChannel() }
        case .parked, .waiting, .connecting: break
        }
        push.waitsForToken = false
    }

    // MARK: - Time

    /// The time at which `tick` has something to do; nil: never.
    package var deadline: Int64? {
        var times = [
            link.deadline, push.retryAt, lists.retryAt, skeleton.queue.pauses.values.min(),
            skeleton.messages.pauses.values.min(),
        ]
        if link.isOpen {
            times.append(channel.answerDue)
            if case .refused(let until, _) = channel.phase { times.append(until) }
        }
        return times.compactMap { $0 }.min()
    }

    /// Advances the time. Call it at `deadline` at the latest.
    package mutating func tick() {
        let now = skeleton.time.monotonic
        if let retry = push.retryAt, retry <= now { push.retryAt = nil }
        if let retry = lists.retryAt, retry <= now { lists.retryAt = nil }
        skeleton.queue.endPauses(at: now)
        skeleton.messages.endPauses(at: now)
        switch link.state {
        case .parked: break
        case .waiting(let until, _): if until <= now { connect() }
        case .connecting(let since):
            if now - since >= link.options.connectMilliseconds { hangUp("the server did not answer in time") }
        case .open: keepAlive()
        }
    }

    private mutating func keepAlive() {
        switch link.care(now: skeleton.time.monotonic) {
        case .none: break
        case .hangUp: return hangUp("no answer to a heartbeat")
        case .send(let heartbeat): send(heartbeat)
        }
        if let due = channel.answerDue, due <= skeleton.time.monotonic { return hangUp("a request was not answered") }
        if case .refused(let until, _) = channel.phase, until <= skeleton.time.monotonic { openChannel() }
    }

    // MARK: - Messages

    package mutating func received(_ batch: ServerBatch) throws(TreeError) {
        for message in batch.messages {
            guard link.isOpen else { return }
            link.receivedMessage(at: skeleton.time.monotonic)
            switch message {
            case .unreadable(_, let error): hangUp("a message could not be read: \(error)")
            case .read(.heartbeat(let count)): link.receivedHeartbeat(count)
            case .read(.log): break
            case .read(.channel(_, let reply)): try handle(reply)
            }
        }
    }

    private mutating func handle(_ reply: ServerReply) throws(TreeError) {
        switch reply {
        case .authorized(let user): authorized(user)
        case .authFailed(let code, let message): authorizationFailed(code, message)
        case .authExpired: authorizationFailed(ErrorCode.unauthorized.rawValue, "the token has expired")
        case .options(let options): try received(options: options)
        case .index(let page): try received(page)
        case .changes(let events): try received(events)
        case .changeVersionUnknown: try scanAgain()
        case .entity(let reply): try received(reply)
        case .indexRequest, .notUnderstood, .removed, .unknown: break
        }
    }

    private mutating func authorized(_ user: String) {
        let names = [options.branch == nil ? tree.owner.text : options.identity?.user.text, options.userName]
        guard names.contains(where: { $0?.utf8.elementsEqual(user.utf8) == true }) else {
            return park(.wrongAccount(user))
        }
    }

    private mutating func authorizationFailed(_ code: Int, _ message: String) {
        channel.answerDue = nil
        guard code == ErrorCode.unauthorized.rawValue || code == ErrorCode.invalidRequest.rawValue else {
            return channel.phase = .refused(until: skeleton.time.monotonic + SyncLimits.reopenMilliseconds, message)
        }
        channel.phase = .closed
        if BranchChannel.isRevoked(message, &self) { return park(.unauthorized(BranchChannel.revoked)) }
        tokenEnded(message)
    }

    mutating func tokenEnded(_ message: String) {
        guard link.options.renewsToken else { return park(.unauthorized(message)) }
        push.waitsForToken = true
        guard link.endedToken != link.options.tokenNumber else { return }
        link.endedToken = link.options.tokenNumber
        skeleton.actions.append(.tokenEnded(link.options.tokenNumber))
    }

    // MARK: - Opening

    /// Sends `init` with the command that fits the stored position.
    private mutating func openChannel() {
        channel.disconnected()
        channel.phase = .opening
        guard let bucket = try? BucketName(Self.bucket) else { preconditionFailure("the name is one") }
        let position = channel.position.map { "cv:" + $0.text }
        awaitAnswer()
        if let branch = options.branch { return send(BranchChannel.initialize(branch, link, command: position)) }
        send(
            Messages.initialize(
                0, bucket, link.clientID, link.options,
                command: position ?? (skeleton.isLazy ? nil : Self.firstPage), mode: Self.bucket))
    }

    /// The bucket of a tree, and its mode.
    static let bucket = "tree"
    private static let firstPage = Messages.index(mark: nil, limit: SyncLimits.indexPageObjects)

    /// The bucket's options come before anything else on the channel: its identity decides what a position means.
    private mutating func received(options: JSONValue) throws(TreeError) {
        guard channel.phase == .opening else { return }
        skeleton.branches.refusals = 0
        if let mode = options["mode"]?.stringValue, !mode.utf8.elementsEqual(Self.bucket.utf8) {
            let detail = "the bucket 'tree' of this account is not a tree"
            return channel.phase = .refused(until: skeleton.time.monotonic + SyncLimits.reopenMilliseconds, detail)
        }
        channel.servedStore = options["store"]?.stringValue
        guard channel.position != nil else { return try skeleton.isLazy ? beginLists() : beginScan() }
        // A position belongs to one bucket: its answer in another one means nothing.
        if let known = try store.namedValue("store"), let served = channel.servedStore, known != served {
            return try scanAgain()
        }
        channel.phase = .catchingUp(CatchUp())
        awaitAnswer()
        channel.wanted = TreeChannel.wanted(stored: try store.namedValue("wanted"))
        for id in channel.wanted.keys.sorted() { ask(id) }
    }

    // MARK: - Reading all nodes

    private mutating func beginScan() throws(TreeError) {
        channel.phase = .scanning(try newScan())
        awaitAnswer()
    }

    /// A reading of all nodes, or of all lists that this device has.
    mutating func newScan() throws(TreeError) -> TreeChannel.Scan {
        let id = (try store.namedValue("scan").flatMap { Int64($0) } ?? 0) + 1
        skeleton.hasWritten = true
        try store.setNamedValue("scan", String(id))
        var scan = TreeChannel.Scan(id: id)
        let known = try store.namedValue("store")
        scan.isSame = known == nil ? try !hasServersNodes : known == channel.servedStore
        // A first reading that is interrupted goes on in the same bucket.
        if known == nil, scan.isSame { try store.setNamedValue("store", channel.servedStore) }
        // The reading brings what was wanted, and versions of another bucket mean nothing.
        channel.wanted = [:]
        try store.setNamedValue("wanted", nil)
        // The server may have made the batch and removed its nodes again before the reading.
        if let batch = push.inFlight?.id { try store.setNamedValue("unsure", batch.text) }
        return scan
    }

    private var hasServersNodes: Bool {
        get throws(TreeError) { try !store.unlisted(scan: -1).isEmpty }
    }

    /// The position is of no use: reads all nodes.
    mutating func scanAgain() throws(TreeError) {
        channel.position = nil
        skeleton.hasWritten = true
        try store.setNamedValue("cv", nil)
        // Without an open channel, the next one begins with a reading.
        switch channel.phase {
        case .closed, .refused: return
        case .opening, .scanning, .listing, .catchingUp, .live: break
        }
        if skeleton.isLazy { return try beginLists() }
        try beginScan()
        if channel.scanID != nil { send(Messages.onChannel(0, Self.firstPage)) }
    }

    private mutating func received(_ page: IndexPage) throws(TreeError) {
        guard case .scanning(var scan) = channel.phase else { return }
        if scan.current == nil { scan.current = page.current }
        scan.read += Int64(page.entries.count)
        scan.total = page.count ?? scan.total
        let isStuck = page.mark.map { scan.marks.isRepeated($0) } ?? false
        scan.mark = page.mark
        channel.phase = .scanning(scan)
        for (entry, element) in zip(page.entries, try OpenedPage.of(page, &skeleton)) {
            try listed(entry, element, scan)
        }
        if isStuck { return hangUp("the listing of all nodes makes no progress") }
        guard let mark = page.mark else { return try finish(scan) }
        awaitAnswer()
        send(Messages.onChannel(0, Messages.index(mark: mark, limit: SyncLimits.indexPageObjects)))
    }

    private mutating func listed(
        _ entry: IndexPage.Entry, _ element: OpenedPage.Element?, _ scan: TreeChannel.Scan
    ) throws(TreeError) {
        guard let id = NodeID(text: entry.key.text), let object = entry.data?.object else { return }
        if let element, channel.wanted[id] == nil {
            return try skeleton.show(id, element.record, element.text, entry.version, element.node, reports: true)
        }
        let row = try store.row(id)
        if let row, row.version > 0 {
            skeleton.hasWritten = true
            try store.setScan(scan.id, of: id)
            if entry.version == row.version, scan.isSame, row.hasMetadata(of: object) { return }
            if entry.version < row.version, scan.isSame {
                return try skeleton.reportFault(
                    IntegrityFault(id, .rollback, "the server lists version \(entry.version) of \(row.version)"))
            }
        }
        if let row, row.version > 0, !scan.isSame { try DifferingNodes.keep(row, object, &skeleton) }
        try received(id, object, version: entry.version)
    }

    private mutating func finish(_ scan: TreeChannel.Scan) throws(TreeError) {
        var gone = [(id: NodeID, depth: Int)]()
        for id in try store.unlisted(scan: scan.id) {
            gone.append((id, try store.ancestors(of: .node(id)).count))
        }
        // The deepest first, so that a node with local children is kept with them.
        for (id, _) in gone.sorted(by: { $0.depth > $1.depth }) {
            guard let row = try store.row(id) else { continue }
            try scan.isSame ? removed(id, at: row.version) : skeleton.keepUnlisted(row)
        }
        try endReading(scan)
    }

    /// The log continues from the position before the reading.
    mutating func endReading(_ scan: TreeChannel.Scan) throws(TreeError) {
        skeleton.hasWritten = true
        channel.position = scan.current
        try store.setNamedValue("cv", scan.current?.text)
        try store.setNamedValue("store", channel.servedStore)
        try endAnsweredRemovals()
        channel.phase = .catchingUp(CatchUp())
        askSince()
    }

    // MARK: - The log

    private mutating func askSince() {
        awaitAnswer()
        channel.repetition.ask()
        send(Messages.onChannel(0, "cv:" + (channel.position?.text ?? "")))
    }

    private mutating func received(_ changes: [ChangeEvent]) throws(TreeError) {
        switch channel.phase {
        case .catchingUp, .live: break
        // A reading of all nodes is followed by the changes since its first page.
        case .closed, .opening, .scanning, .listing, .refused: return
        }
        var first: ChangeVersion?
        for case .applied(let change) in changes {
            first = first ?? change.cv
            if channel.repetition.contains(change.cv, at: channel.position) { continue }
            try apply(change)
            // A change that did not fit may have begun a reading of all nodes.
            if channel.scanID != nil { return }
            channel.position = change.cv
        }
        if first != nil {
            skeleton.hasWritten = true
            try store.setNamedValue("cv", channel.position?.text)
        }
        guard case .catchingUp(var catchUp) = channel.phase else { return }
        guard first != nil else { return changes.isEmpty ? caughtUp() : () }
        let verdict = catchUp.received(first: first, isAnswer: true)
        channel.phase = .catchingUp(catchUp)
        switch verdict {
        case .wait: awaitAnswer()
        case .ask: askSince()
        case .complete: caughtUp()
        }
    }

    private mutating func caughtUp() {
        (channel.phase, channel.answerDue) = (.live, nil)
        link.backoff.reset()
        skeleton.branches.hasReachedLog = true
        skeleton.messages.connected()
    }

    /// The newest version of a node that was requested.
    private mutating func received(_ reply: EntityReply) throws(TreeError) {
        guard let id = NodeID(text: reply.key), let wanted = channel.wanted[id] else { return }
        guard let object = reply.data?.value.objectValue, reply.version >= wanted else {
            // A newer version, or the removal, comes with the log; a lazy skeleton must still know that it wants it.
            let isUnknown = try skeleton.isLazy ? store.row(id) == nil : false
            if reply.version >= wanted, !isUnknown { try wantNoMore(id) }
            return
        }
        let row = try store.row(id)
        let known = row?.version ?? 0
        if row == nil, try !isExpected(object) { return try wantNoMore(id) }
        if reply.version > known { try received(id, object, version: reply.version) } else { try wantNoMore(id) }
        if row == nil, options.branch != nil { lists.add(.node(id), levels: TreeLimits.depthMax) }
    }

    mutating func ask(_ id: NodeID) {
        guard link.isOpen, let version = channel.wanted[id] else { return }
        send(Messages.onChannel(0, "e:\(id.text).\(version)"))
    }

    // MARK: - The link

    mutating func awaitAnswer() { channel.answerDue = skeleton.time.monotonic + SyncLimits.answerMilliseconds }

    mutating func send(_ bytes: [UInt8]) {
        link.lastSent = skeleton.time.monotonic
        skeleton.actions.append(.send(bytes))
    }

    mutating func connect() {
        link.state = .connecting(since: skeleton.time.monotonic)
        skeleton.actions.append(.connect)
    }

    mutating func hangUp(_ detail: String) {
        channel.disconnected()
        skeleton.actions.append(.disconnect)
        lose(.unreachable(detail))
    }

    mutating func lose(_ reason: OfflineReason, atLeast pause: Int64 = 0) {
        link.state = .waiting(until: skeleton.time.monotonic + max(link.backoff.next(random.next()), pause), reason)
    }

    private mutating func park(_ reason: OfflineReason) {
        channel.disconnected()
        if link.isOpen || link.isConnecting { skeleton.actions.append(.disconnect) }
        link.state = .parked(reason)
    }
}
