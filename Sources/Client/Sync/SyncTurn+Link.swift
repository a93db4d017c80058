import ThicketProtocol

/// What a turn does to the connection. The machine disconnects the buckets when it has ended.
extension SyncTurn {
    mutating func send(_ bytes: [UInt8]) {
        link.lastSent = now
        actions.append(.send(bytes))
    }

    /// Adds a line to the server's log of this client, if the server requested it. Never content, never keys.
    mutating func log(_ line: String) {
        if let message = link.logMessage(line) { send(message) }
    }

    /// The connection is useless: ends it and tries again after a pause.
    mutating func hangUp(_ detail: String) {
        actions.append(.disconnect)
        lose(.unreachable(detail))
    }

    /// The connection was lost.
    ///
    /// - Parameter pause: shortest pause in milliseconds before the next attempt.
    mutating func lose(_ reason: OfflineReason, atLeast pause: Int64 = 0) {
        link.state = .waiting(until: now + max(link.backoff.next(random.next()), pause), reason)
    }

    /// Ends the connection; no other is made until the app or another token asks for one.
    mutating func park(_ reason: OfflineReason) {
        if link.isOpen || link.isConnecting { actions.append(.disconnect) }
        link.state = .parked(reason)
    }

    mutating func connect() {
        link.state = .connecting(since: now)
        actions.append(.connect)
    }

    // MARK: - The token

    /// The server has accepted the token of this number.
    mutating func tokenWorked(_ number: Int) {
        guard link.options.renewsToken, link.provenToken != number else { return }
        link.provenToken = number
        actions.append(.tokenGood(number))
    }

    /// The server no longer accepts the newest token.
    mutating func tokenEnded() {
        guard link.endedToken != link.options.tokenNumber else { return }
        link.endedToken = link.options.tokenNumber
        actions.append(.tokenEnded(link.options.tokenNumber))
    }
}
