/// Every bound of the client's side of the protocol, with its unit and its source.
package enum SyncLimits {
    /// What a restore of the server adds to every version, at least.
    static let restoredVersionsMin: Int64 = 1_000_000
    /// Buckets of one session: one channel each.
    package static let bucketsMax = 1_000
    /// Changes of one bucket sent and not yet answered (one per object).
    package static let changesInFlightMax = 64
    /// Bytes of changes of one bucket sent and not yet answered; a single larger change still goes, alone.
    package static let bytesInFlightMax = 4 << 20
    /// Objects asked for by one page of an index: the server's maximum, which also ends a page at 4 MiB. A page is one
    /// round trip and one transaction.
    package static let indexPageObjects = 1_000
    /// Single objects of one bucket asked for and not yet answered.
    package static let reloadsInFlightMax = 64
    /// Objects kept in memory between turns; they are read again from the store when needed.
    package static let cachedObjectsMax = 512
    /// Bytes from which on a change may be what made the server close with 1009 (message too big).
    package static let suspectBytesMin = 64 << 10
    /// Times one edit is sent in another form before the app is told that the server does not take it.
    package static let attemptsMax = 4
    /// How often a sealed edit that sets an object as a whole is refused because others came first, before it is put in
    /// order as any other.
    package static let wholeAttemptsMax = 2
    /// Values that gave way in one object by one change of others that are told.
    package static let gaveWayMax = 64
    /// Objects named in the answer to the server's `index` request.
    package static let stateReportObjectsMax = 10_000
    /// Lines sent to the server per connection while it asks for the client's log.
    package static let logLinesMax = 1_000

    /// Milliseconds of silence, on either side, before a heartbeat (streaming API, "Heartbeat": 20 s).
    package static let heartbeatIdleMilliseconds: Int64 = 20_000
    /// Milliseconds without any message after a heartbeat before the connection counts as dead.
    package static let heartbeatAnswerMilliseconds: Int64 = 10_000
    /// Milliseconds a connection attempt may take, TLS and upgrade included.
    package static let connectMilliseconds: Int64 = 30_000
    /// Milliseconds a request (init, index page, change, object) may stay unanswered on a connection that lives.
    package static let answerMilliseconds: Int64 = 60_000
    /// Shortest pause before connecting again; it doubles with each failure.
    package static let backoffMinMilliseconds: Int64 = 250
    /// Longest pause before connecting again.
    package static let backoffMaxMilliseconds: Int64 = 60_000
    /// Longest pause that a `retry-after` of an HTTP answer brings about.
    package static let retryAfterMaxMilliseconds: Int64 = 600_000
    /// Pause before a change refused by 500 or 503 is sent again; doubles up to `backoffMaxMilliseconds`.
    package static let retryMinMilliseconds: Int64 = 1_000
    /// Milliseconds after the end of its token for which a channel is sure to have kept its place at the server, which
    /// keeps it for 60 s (docs/PROTOCOL.md, "When a token ends"); later it is opened anew.
    package static let graceMilliseconds: Int64 = 50_000
    /// Pause before a bucket that could not be opened (auth code 500) is tried again.
    package static let reopenMilliseconds: Int64 = 30_000
}

/// A pause that doubles with each failure, with jitter so that many clients do not come back at the same moment.
package struct Backoff: Sendable {
    private let shortest: Int64
    private let longest: Int64
    package private(set) var failures = 0

    package init(shortest: Int64, longest: Int64) {
        self.shortest = shortest
        self.longest = longest
    }

    package mutating func reset() { failures = 0 }

    /// Milliseconds to wait now: between half and the whole of the current step.
    package mutating func next(_ random: UInt64) -> Int64 {
        let step = min(longest, shortest << Int64(min(failures, 20)))
        failures += 1
        return step / 2 + Int64(random % UInt64(step / 2 + 1))
    }
}
