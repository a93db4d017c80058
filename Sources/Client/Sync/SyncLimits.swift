/// Every limit of the client's side of the protocol, with its unit and its source.
package enum SyncLimits {
    /// A restore of the server adds at least this number to every version.
    package static let restoredVersionsMin: Int64 = 1_000_000
    /// Buckets of one session; each uses one channel.
    package static let bucketsMax = 1_000
    /// Changes of one bucket in flight (one per object).
    package static let changesInFlightMax = 64
    /// Bytes of one bucket's changes in flight; a single larger change is still sent, alone.
    package static let bytesInFlightMax = 4 << 20
    /// Objects requested per page of an index: the server's maximum, which also ends a page at 4 MiB. A page is one
    /// round trip and one transaction.
    package static let indexPageObjects = 1_000
    /// Single objects of one bucket requested and not yet answered.
    package static let reloadsInFlightMax = 64
    /// Objects kept in memory between turns; others are read again from the store when needed.
    package static let cachedObjectsMax = 512
    /// Smallest change, in bytes, that may be the reason why the server closed with 1009 (message too big).
    package static let suspectBytesMin = 64 << 10
    /// How often one edit is sent in another form before its refusal is reported to the app.
    package static let attemptsMax = 4
    /// How often a sealed edit that replaces a whole object may be refused because other changes came first, before it
    /// is ordered like any other edit.
    package static let wholeAttemptsMax = 2
    /// Most values of one object that are reported as having given way to local edits because of one foreign change.
    package static let gaveWayMax = 64
    /// Objects listed in the answer to the server's `index` request.
    package static let stateReportObjectsMax = 10_000
    /// Lines sent to the server per connection while it requests the client's log.
    package static let logLinesMax = 1_000

    /// Milliseconds of silence, in either direction, before a heartbeat (streaming API, "Heartbeat": 20 s).
    package static let heartbeatIdleMilliseconds: Int64 = 20_000
    /// Milliseconds without any message after a heartbeat before the connection counts as dead.
    package static let heartbeatAnswerMilliseconds: Int64 = 10_000
    /// Timeout of a connection attempt in milliseconds, including TLS and upgrade.
    package static let connectMilliseconds: Int64 = 30_000
    /// Milliseconds that a request (init, index page, change, object) may remain unanswered on a live connection.
    package static let answerMilliseconds: Int64 = 60_000
    /// Shortest pause before reconnecting, in milliseconds; it doubles with each failure.
    package static let backoffMinMilliseconds: Int64 = 250
    /// Longest pause before reconnecting, in milliseconds.
    package static let backoffMaxMilliseconds: Int64 = 60_000
    /// Longest pause, in milliseconds, that a `retry-after` in an HTTP answer can cause.
    package static let retryAfterMaxMilliseconds: Int64 = 600_000
    /// Pause in milliseconds before a change refused with 500 or 503 is sent again; doubles up to
    /// `backoffMaxMilliseconds`.
    package static let retryMinMilliseconds: Int64 = 1_000
    /// Milliseconds after the expiry of its token for which a channel surely has its place at the server, which keeps
    /// it for 60 s (docs/PROTOCOL.md, "When a token ends"); later the channel is opened again.
    package static let graceMilliseconds: Int64 = 50_000
    /// Pause in milliseconds before a bucket that could not be opened (auth code 500) is tried again.
    package static let reopenMilliseconds: Int64 = 30_000
}

/// An exponential back-off with jitter, so that many clients do not reconnect at the same moment.
package struct Backoff: Sendable {
    private let shortest: Int64
    private let longest: Int64
    package private(set) var failures = 0

    package init(shortest: Int64, longest: Int64) {
        self.shortest = shortest
        self.longest = longest
    }

    package mutating func reset() { failures = 0 }

    /// The next pause in milliseconds: between half and the whole of the current step.
    package mutating func next(_ random: UInt64) -> Int64 {
        let step = min(longest, shortest << Int64(min(failures, 20)))
        failures += 1
        return step / 2 + Int64(random % UInt64(step / 2 + 1))
    }
}
