import ThicketProtocol

// Large changes: a reader's thread reads them, so that nobody else waits for the loop meanwhile.
extension Hub {
    /// Bytes of a message from which a `c` is read elsewhere. To read one of a megabyte takes up to 5 ms (`bench large`), and a
    /// user's turn on the loop is 0.1 ms; to hand over smaller ones would cost their senders two wakes of a thread each.
    static let largeFrom: Int = 64 << 10

    /// Hands a large change to the readers. Its connection is read no further until it is back, and what its channel has
    /// been sent meanwhile waits behind it, so that changes keep their order.
    ///
    /// - Parameter isRefused: it came faster than its sender may send.
    /// - Returns: false when it is to be read here: it is small, or too many bytes are being read already.
    func readElsewhere(_ request: UnreadRequest, on channel: Channel, bytes: Int, isRefused: Bool = false) -> Bool {
        guard request.command == .change, bytes >= Self.largeFrom, channel.session.exchange == nil else { return false }
        guard bytesBeingRead + inFlight.bytes + bytes <= limits.changeBytesQueuedMax else {
            metrics.limitHits.add(1, .queue)
            return false
        }
        let large: LargeChange = .init(request: request, bytes: bytes, isRefused: isRefused)
        // If not, the connection is ending: nothing more is done for it.
        guard read(.message(large), for: channel) else { return true }
        bytesBeingRead += bytes
        channel.isReading = true
        pause(channel.session, .large)
        return true
    }

    /// A large change has been read.
    func hasRead(_ large: LargeChange, of origin: ReadOrigin, _ answer: ReadAnswer, now: HubInstant) {
        bytesBeingRead -= large.bytes
        guard let session: Session = session(origin.connection), !session.isClosing else { return }
        guard let channel: Channel = session.channel(origin.channel), channel.readLife == origin.life,
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
}
