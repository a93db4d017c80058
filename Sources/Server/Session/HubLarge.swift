import ThicketProtocol

// Large changes: a reader's thread reads them, so that nobody else waits for the loop meanwhile.
extension Hub {
    /// Bytes of a message from which a `c` is read elsewhere. To read one of a megabyte takes up to 5 ms (`bench
    /// large`), and a user's turn on the loop is 0.1 ms; to hand over smaller ones would cost their senders two wakes
    /// of a thread each.
    static let largeFrom = 64 << 10

    /// Hands a large change to the readers. Its connection is read no further until it is back, and what its channel
    /// has been sent meanwhile waits behind it, so that changes keep their order.
    ///
    /// - Parameter isRefused: it came faster than its sender may send.
    /// - Returns: false when it is to be read here: it is small, or too many bytes are being read already.
    func readElsewhere(_ request: UnreadRequest, on channel: Channel, bytes: Int, isRefused: Bool = false) -> Bool {
        guard request.command == .change, bytes >= Self.largeFrom, channel.session.exchange == nil else { return false }
        guard bytesBeingRead + inFlight.bytes + bytes <= limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return false
        }
        if let tenant = channel.session.tenant, isOverfull(tenant) {
            // To refuse it alone would mean to read it.
            metrics.limitHits.add(1, .userChanges)
            close(channel.session, .tryAgainLater, "the user has too much under way")
            return true
        }
        let large = LargeChange(
            request: request, bytes: bytes, tenant: channel.session.tenant?.number ?? 0, isRefused: isRefused)
        // If not, the connection is ending: nothing more is done for it.
        guard read(.message(large), for: channel) else { return true }
        beginReading(bytes, of: channel.session.tenant)
        channel.isReading = true
        pause(channel.session, .large)
        return true
    }

    /// A large change has been read.
    func hasRead(_ large: LargeChange, of origin: ReadOrigin, _ answer: ReadAnswer, now: HubInstant) {
        let tenant = take(large.bytes, of: large.tenant)
        // Behind its own submission, so that nobody is read for a moment in between.
        defer { if let tenant { hasLess(tenant) } }
        guard let session = session(origin.connection), !session.isClosing else { return }
        guard let channel = session.channel(origin.channel), channel.readLife == origin.life,
            channel.isReady, case .message(let sent) = answer
        else {
            resume(session, .large)
            return send(Reply.notUnderstood(origin.channel), to: session)
        }
        channel.isReading = false
        switch (sent, large.isRefused) {
        case (.one(let change), false): submit(change, on: channel, bytes: large.bytes, now: now)
        case (.many(let changes), false): submit(changes, on: channel, bytes: large.bytes, now: now)
        case (.one(let change), true): refuse([(change, .unavailable)], on: channel)
        case (.many(let changes), true): refuse(changes.map { ($0, .unavailable) }, on: channel)
        }
        resume(session, .large)
        // May bring the next large one.
        runQueued(channel, now: now)
    }

    /// Bytes that readers are to read count as the user's changes that wait.
    func beginReading(_ bytes: Int, of tenant: Tenant?) {
        bytesBeingRead += bytes
        guard let tenant else { return }
        tenant.changeBytes += bytes
        holdAllIfFull(tenant)
    }

    /// They have been read, or their connection is gone.
    /// - Parameter number: the user's, 0 for a stranger.
    func endReading(_ bytes: Int, of number: UInt32) {
        if let tenant = take(bytes, of: number) { hasLess(tenant) }
    }

    private func take(_ bytes: Int, of number: UInt32) -> Tenant? {
        bytesBeingRead -= bytes
        guard let tenant = tenantsByNumber[number] else { return nil }
        tenant.changeBytes -= bytes
        return tenant
    }
}
