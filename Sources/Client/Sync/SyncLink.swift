package import ThicketProtocol

/// The session's connection: its state, its keep-alive, and the identity and token with which it opens buckets.
///
/// Pure: it decides nothing about buckets. The machine disconnects them when the connection has ended.
package struct SyncLink {
    package enum State: Equatable {
        /// The app does not want a connection, or the client must not make one.
        case parked(OfflineReason)
        /// The next attempt is at this time.
        case waiting(until: Int64, OfflineReason)
        case connecting(since: Int64)
        case open
    }

    package var options: SyncOptions
    package let clientID: ClientID
    package var state: State
    package var backoff = Backoff(
        shortest: SyncLimits.backoffMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    package var lastSent: Int64 = 0
    /// When bytes of an incomplete message were last sent or received.
    package private(set) var lastMoved = Int64.min
    private var lastReceived: Int64 = 0
    /// The number of the next heartbeat, and when the unanswered one was sent.
    private var heartbeat: Int64 = 0
    private var heartbeatSentAt: Int64?
    package private(set) var logLevel = 0
    private var logLines = 0
    /// The last token reported as expired, and the last one reported as valid.
    package var endedToken: Int?
    package var provenToken: Int?

    package init(_ options: SyncOptions, _ clientID: ClientID) {
        self.options = options
        self.clientID = clientID
        state = options.startsOnline ? .waiting(until: 0, .unreachable("not yet tried")) : .parked(.requested)
    }

    package var isOpen: Bool {
        if case .open = state { return true }
        return false
    }

    package var isConnecting: Bool {
        if case .connecting = state { return true }
        return false
    }

    package mutating func opened(at now: Int64) {
        state = .open
        lastReceived = now
        lastSent = now
        heartbeatSentAt = nil
        logLevel = 0
        logLines = 0
    }

    package mutating func receivedMessage(at now: Int64) {
        lastReceived = now
        heartbeatSentAt = nil
    }

    package mutating func receivedBytes(at now: Int64) {
        receivedMessage(at: now)
        lastMoved = now
    }

    package mutating func receivedHeartbeat(_ count: Int64) { heartbeat = count &+ 1 }

    // MARK: - Keep-alive

    /// The time at which the connection has something to do; nil: never.
    package var deadline: Int64? {
        switch state {
        case .parked: nil
        case .waiting(let until, _): until
        case .connecting(let since): since + options.connectMilliseconds
        case .open: heartbeatDue
        }
    }

    private var heartbeatDue: Int64 {
        if let sent = heartbeatSentAt { return sent + SyncLimits.heartbeatAnswerMilliseconds }
        return min(lastSent, lastReceived) + SyncLimits.heartbeatIdleMilliseconds
    }

    /// What keeps the open connection alive.
    package enum Care {
        case none
        /// The heartbeat is recorded as sent.
        case send([UInt8])
        case hangUp
    }

    package mutating func care(now: Int64) -> Care {
        guard now >= heartbeatDue else { return .none }
        guard heartbeatSentAt == nil else { return .hangUp }
        heartbeatSentAt = now
        return .send(Messages.heartbeat(heartbeat))
    }

    // MARK: - The server's log

    package mutating func setLogLevel(_ level: Int) { logLevel = min(max(level, 0), 2) }

    /// The message for a line of the server's log of this client; nil when the server does not want it.
    package mutating func logMessage(_ line: String) -> [UInt8]? {
        guard isOpen, logLevel > 0, logLines < SyncLimits.logLinesMax else { return nil }
        logLines += 1
        return Messages.log(line)
    }
}
