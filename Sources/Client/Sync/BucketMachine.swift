import ThicketProtocol

/// One bucket on the session's connection: it opens the bucket, scans or follows it, and sends its edits.
///
/// `record` is persistent, `keys` and `undelivered` mirror the store; most of the rest starts from the beginning on
/// each connection. What depends on the kind of the objects is done by `rules`. Every function gets the turn, which
/// holds the objects in memory.
struct BucketMachine {
    enum Phase: Equatable {
        /// Not connected.
        case closed
        /// `init` has been sent.
        case opening
        /// The index is being scanned.
        case scanning
        /// `cv` has been sent; the changes since the last connection arrive in one `c` or several (`CatchUp`).
        case catchingUp
        /// Changes are sent and received.
        case live
        /// The server does not open this bucket; the client tries again at `resumeAt`.
        case refused
        /// The channel's token has expired; a new one is awaited (`lapse`).
        case lapsed
        /// A new token has been sent, to continue where the last one expired.
        case renewing
    }

    /// The token with which the channel was opened.
    struct Token {
        /// The number of the token in the last `init`.
        var number = 0
        var lapse: Lapse?

        /// The expiry of a channel's token.
        struct Lapse: Equatable {
            let at: Int64
            /// nil: the server has kept no state of this channel, so it is opened again.
            let place: Place?

            enum Place: Equatable { case scanning, following }
        }
    }

    /// What this connection knows of index scans.
    struct Scan {
        /// The scan that ended on this connection, until the changes since its start have arrived.
        var finished: IndexScan?
        /// The start of the page that was requested before the page in front of it was stored; nil when none was.
        var askedAhead: String?
        /// The running scan was started, or its identity was checked, on this connection.
        var isHere = false
        /// An object needs a new scan.
        var isNeeded = false
        /// Scans in a row that were not followed by a valid answer to `cv`; they count beyond the connection.
        var fruitless = 0

        mutating func disconnected() {
            let fruitless = fruitless
            self = Scan()
            self.fruitless = fruitless
        }
    }

    /// What the server has told of the bucket's identity on this connection.
    struct Served {
        /// The bucket's identity that the server reported (`o:`); nil when it reported none.
        var store: String?
        /// The server answered the client's position with "nothing more", so it knows the position.
        var holdsPosition = false
    }

    /// The number of the bucket's channel, and its place in the machine.
    let number: Int
    var record: BucketRecord
    /// For a sealed bucket, once the app has given its keys.
    var sealing: Sealing?
    var keys = EditedKeys()
    /// The undelivered conflicts and integrity reports.
    var undelivered = UndeliveredEvents()
    /// Objects that are sent again because a bucket that may differ from the previous one did not have them; nil when
    /// not recorded.
    var broughtBack: Set<EntityKey>?

    var phase = Phase.closed
    var token = Token()
    /// Why the server does not open this bucket.
    var unavailable: ClientError?
    var catchUp = CatchUp()
    var scan = Scan()
    var served = Served()
    var outbox = Outbox()
    var reloads = Reloads()
    /// Requests for removals that the server has not answered on this connection.
    var removalsAsked = 0
    /// The time on the machine's clock at which an unanswered `init`, `i` or `cv` makes the connection suspect.
    var answerDue: Int64?
    /// Nothing is requested before this time (a bucket was refused, or an index was requested too often).
    var resumeAt: Int64?
    var retry = Backoff(shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)

    init(_ number: Int, _ record: BucketRecord) { (self.number, self.record) = (number, record) }

    /// The rules of the bucket's objects. Those of a locked bucket are not read.
    var rules: any ObjectRules.Type { sealing == nil ? OpenRules.self : SealedRules.self }

    /// A sealed bucket whose keys the app has not given since the program started.
    var isLocked: Bool { record.isSealed && sealing == nil }

    /// Whether changes are sent as they are made.
    private var mayWrite: Bool {
        phase == .live && !outbox.isReadOnly && unavailable == nil && outbox.resumeAt == nil
    }

    /// Whether nothing is left to do before changes are exchanged, or the server does not open the bucket.
    var isCaughtUp: Bool { phase == .live || phase == .refused || isLocked }

    /// When the connected bucket has something to do; nil: it waits for nothing.
    var deadline: Int64? {
        var next = answerDue
        if let resumeAt { next = min(next ?? .max, resumeAt) }
        if let time = outbox.resumeAt { next = min(next ?? .max, time) }
        if mayWrite, let due = sealing?.due { next = min(next ?? .max, due) }
        return next
    }

    /// Whether a change or the request of an object has been unanswered since that time.
    func hasRequest(before oldest: Int64) -> Bool {
        outbox.inFlight.contains { $0.value.sentAt < oldest } || reloads.asked.contains { $0.value < oldest }
    }

    mutating func disconnected() {
        phase = .closed
        token.lapse = nil
        unavailable = nil
        catchUp = CatchUp()
        scan.disconnected()
        served = Served()
        outbox = Outbox()
        reloads = Reloads()
        removalsAsked = 0
        answerDue = nil
        resumeAt = nil
        retry.reset()
        sealing?.disconnected()
    }
}
