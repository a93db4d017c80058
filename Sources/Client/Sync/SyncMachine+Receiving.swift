import ThicketProtocol

/// Messages from the server.
extension SyncMachine {
    /// Text messages arrived, in this order. They are one turn and so one transaction.
    package mutating func received(_ messages: [[UInt8]], now: Int64) -> [SyncAction] {
        received(ServerBatch(messages), now: now)
    }

    /// As above, with parsed messages.
    package mutating func received(_ batch: ServerBatch, now: Int64) -> [SyncAction] {
        runQuietTurn(now) { machine throws(ClientError) in
            for message in batch.messages {
                guard machine.turn.link.isOpen else { return }
                machine.turn.link.receivedMessage(at: machine.turn.now)
                try machine.handle(message)
                // A bucket may have ended the connection.
                if !machine.turn.link.isOpen { machine.disconnectBuckets() }
            }
        }
    }

    private mutating func handle(_ message: ServerBatch.Message) throws(ClientError) {
        switch message {
        case .unreadable(let bytes, let error): unreadable(bytes, error)
        case .read(.heartbeat(let count)): turn.link.receivedHeartbeat(count)
        case .read(.log(let level)): setLogLevel(level)
        case .read(.channel(let channel, let reply)):
            guard buckets.indices.contains(Int(channel)) else { return }
            defer { applyProof() }
            try buckets[Int(channel)].handle(reply, &turn)
        }
    }

    /// A server that answers changes while all buckets have caught up does not refuse connections.
    private mutating func applyProof() {
        guard turn.provesLink else { return }
        turn.provesLink = false
        if isCaughtUp { turn.link.backoff.reset() }
    }

    private mutating func unreadable(_ bytes: [UInt8], _ error: WireError) {
        turn.log("a message could not be read: \(error)")
        let digits = bytes.prefix { (0x30...0x39).contains($0) }
        guard let number = Int(String(decoding: digits, as: UTF8.self)), buckets.indices.contains(number) else {
            return
        }
        buckets[number].missedMessage(error, &turn)
    }

    private mutating func setLogLevel(_ level: Int) {
        turn.link.setLogLevel(level)
        turn.log("logging at level \(turn.link.logLevel), \(buckets.count) buckets open")
    }

    /// Requests the page after an arrived one before the arrived one is stored, so that the server prepares the next
    /// page while the client stores the last one. At most one page of a bucket is requested ahead.
    ///
    /// Nothing depends on it: the scan's stored mark moves with the objects of its page, and if the connection ends in
    /// between, the page is requested again.
    ///
    /// - Parameter batch: the batch that is passed to `received` next.
    package mutating func ahead(of batch: ServerBatch, now: Int64) -> [SyncAction] {
        guard turn.link.isOpen else { return [] }
        turn.now = max(turn.now, now)
        var requests = [SyncAction]()
        for message in batch.messages {
            guard case .read(.channel(let channel, .index(let page))) = message, let mark = page.mark,
                buckets.indices.contains(Int(channel)),
                let request = buckets[Int(channel)].askAhead(mark, &turn)
            else { continue }
            requests.append(.send(request))
            turn.link.lastSent = turn.now
        }
        return requests
    }
}
