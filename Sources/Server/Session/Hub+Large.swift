import ThicketProtocol
import ThicketScheduling

// Large changes are parsed on a reader's thread, so that no other connection waits for the loop in that time.
extension Hub {
    /// Bytes of a message from which a `c` is parsed by a reader. Parsing one of a megabyte takes up to 5 ms
    /// (`bench large`), and a user's turn on the loop is 0.1 ms; handing over smaller ones would cost their senders
    /// two thread wake-ups each.
    static let largeFrom = 64 << 10

    /// Hands a large change to the readers. Its connection is not read until the change is back, and messages
    /// already received for its channel wait behind it, so that changes keep their order.
    ///
    /// - Parameter isRefused: it came faster than its sender may send.
    /// - Returns: false when the loop must parse it: it is small, or too many bytes are being parsed already.
    func readElsewhere(_ request: UnreadRequest, on channel: Channel, bytes: Int, isRefused: Bool = false) -> Bool {
        guard request.command == .change, bytes >= Self.largeFrom, channel.session.exchange == nil else { return false }
        guard bytesBeingRead + inFlight.bytes + bytes <= limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return false
        }
        if let tenant = channel.session.tenant, isOverfull(tenant) {
            // Refusing it alone would require parsing it.
            metrics.limitHits.add(1, .userChanges)
            close(channel.session, .tryAgainLater, "the user has too much under way")
            return true
        }
        let large = LargeChange(
            request: request, bytes: bytes, tenant: channel.session.tenant?.id ?? 0, isRefused: isRefused)
        // If false, the connection is being closed: nothing more is done for it.
        guard read(.message(large), for: channel) else { return true }
        beginReading(bytes, of: channel.session.tenant)
        channel.isReading = true
        pause(channel.session, .large)
        return true
    }

    /// A large change has been parsed.
    func hasRead(_ large: LargeChange, of origin: ReadOrigin, _ answer: ReadAnswer, now: HubInstant) {
        let tenant = releaseBytes(large.bytes, of: large.tenant)
        // After its own submission, so that the tenant's connections are not resumed for a moment in between.
        defer { if let tenant { hasLess(tenant) } }
        guard let session = session(origin.connection), !session.isClosing else { return }
        guard let channel = session.channel(origin.channel), channel.readGeneration == origin.generation,
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
        // May bring the next large change.
        runQueued(channel, now: now)
    }

    /// Bytes that readers are parsing count toward the user's waiting changes.
    func beginReading(_ bytes: Int, of tenant: Tenant?) {
        bytesBeingRead += bytes
        guard let tenant else { return }
        tenant.changeBytes += bytes
        holdAllIfFull(tenant)
    }

    /// The bytes have been parsed, or their connection has closed.
    /// - Parameter number: `Tenant.number`, 0 for an unauthenticated connection.
    func endReading(_ bytes: Int, of number: TenantID) {
        if let tenant = releaseBytes(bytes, of: number) { hasLess(tenant) }
    }

    private func releaseBytes(_ bytes: Int, of number: TenantID) -> Tenant? {
        bytesBeingRead -= bytes
        guard let tenant = tenantsByID[number] else { return nil }
        tenant.changeBytes -= bytes
        return tenant
    }
}
