import ThicketProtocol
import ThicketSealed

/// A first-in, first-out queue of keys, each at most once.
struct KeyQueue {
    private var keys = [EntityKey]()
    private var head = 0
    private var members = Set<EntityKey>()

    var isEmpty: Bool { members.isEmpty }
    var count: Int { members.count }

    mutating func append(_ key: EntityKey) {
        guard members.insert(key).inserted else { return }
        keys.append(key)
    }

    mutating func popFirst() -> EntityKey? {
        guard head < keys.count else { return nil }
        let key = keys[head]
        head += 1
        members.remove(key)
        if head > 64, head * 2 > keys.count {
            keys.removeFirst(head)
            head = 0
        }
        return key
    }

    mutating func removeAll() { self = KeyQueue() }
}

/// One bucket on the session's connection. `record` is persistent; the rest starts from the beginning on each
/// connection.
struct Channel {
    enum Phase: Equatable {
        /// Not connected.
        case closed
        /// `init` has been sent.
        case opening
        /// The index is being scanned.
        case walking
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

    /// The expiry of a channel's token.
    struct Lapse: Equatable {
        let at: Int64
        /// nil: the server has kept no state of this channel, so it is opened again.
        let place: Place?

        enum Place: Equatable { case walking, following }
    }

    /// A change in flight: when it was sent, and its size.
    struct InFlight {
        let sentAt: Int64
        let bytes: Int
    }

    var record: BucketRecord
    var phase = Phase.closed
    var catchUp = CatchUp()
    /// The number of the token in the last `init`.
    var tokenNumber = 0
    var lapse: Lapse?
    /// Changes that were in flight when the token expired. They are sent again if the server has sent everything it has
    /// and still has not answered them.
    var strays = Set<EntityKey>()
    /// Why the server does not open this bucket.
    var unavailable: ClientError?
    /// The scan that ended on this connection, until the changes since its start have arrived.
    var walked: IndexScan?
    /// The start of the page that was requested before the page in front of it was stored; nil when none was.
    var askedAhead: String?
    /// The time on the machine's clock at which an unanswered `init`, `i` or `cv` makes the connection suspect.
    var answerDue: Int64?
    var inFlight = [EntityKey: InFlight]()
    /// Objects whose change was refused on this connection and is sent again, as an edit of the newest state.
    var refusedWaiting = Set<EntityKey>()
    var bytesInFlight = 0
    /// The objects requested with `e`, and when.
    var reloads = [EntityKey: Int64]()
    /// Objects to request when the limit permits.
    var reloadQueue = KeyQueue()
    /// Objects whose pending change is sent again: those with edits from before this connection and changes refused
    /// with 500 or 503, which are sent unchanged, and those of `refusedWaiting`.
    var resend = KeyQueue()
    /// Objects with edits that are not yet a change.
    var ready = KeyQueue()
    /// Objects with unconfirmed edits or repairs, and those among them that the server refused.
    private(set) var edited = Set<EntityKey>()
    private(set) var refused = Set<EntityKey>()
    /// The number of keys in both sets: a read-only object need not have edits.
    private(set) var refusedEdits = 0
    /// Objects whose ghost is known to be outdated (`wanted`).
    private(set) var stale = Set<EntityKey>()
    /// The undelivered conflicts and integrity reports.
    var undelivered = UndeliveredEvents()
    /// Objects that are sent again because a bucket that may differ from the previous one did not have them; nil when
    /// not recorded.
    var broughtBack: Set<EntityKey>?
    /// Requests for removals that the server has not answered on this connection.
    var removalsAsked = 0
    /// Nothing is requested before this time (a bucket was refused, or an index was requested too often).
    var resumeAt: Int64?
    /// No change is sent before this time (500, 503).
    var sendAt: Int64?
    var retry = Backoff(shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    /// The token does not permit changes: they wait.
    var isReadOnly = false
    /// Scans in a row that were not followed by a valid answer to `cv`.
    var fruitlessWalks = 0
    /// The bucket's identity that the server reported on this connection (`o:`); nil when it reported none.
    var storeTold: String?
    /// The server answered the client's position on this connection with "nothing more", so it knows the position.
    var positionHolds = false
    /// The running scan was started, or its identity was checked, on this connection.
    var isWalkHere = false
    /// An object needed a new scan while one was running.
    var needsWalk = false

    /// For a sealed bucket, once the app has given its keys.
    var sealing: Sealing?

    init(record: BucketRecord) { self.record = record }

    /// A sealed bucket whose keys the app has not given since the program started.
    var isLocked: Bool { record.isSealed && sealing == nil }

    /// Whether changes are sent as they are made.
    var mayWrite: Bool { phase == .live && !isReadOnly && unavailable == nil && sendAt == nil }

    /// Whether nothing is left to do before changes are exchanged, or the server does not open the bucket.
    var isSettled: Bool { phase == .live || phase == .refused || isLocked }

    /// Updates the sets of keys after a change of an object's edits.
    mutating func note(_ object: EditedKey) {
        if edited.contains(object.key), refused.contains(object.key) { refusedEdits -= 1 }
        if object.hasEdits, object.isRefused { refusedEdits += 1 }
        if object.hasEdits { edited.insert(object.key) } else { edited.remove(object.key) }
        if object.isRefused { refused.insert(object.key) } else { refused.remove(object.key) }
        if object.isStale { stale.insert(object.key) } else { stale.remove(object.key) }
    }

    /// Call it before the store is read again.
    mutating func forgetNotes() { (edited, refused, stale, refusedEdits) = ([], [], [], 0) }

    mutating func disconnected() {
        phase = .closed
        lapse = nil
        strays = []
        catchUp = CatchUp()
        unavailable = nil
        walked = nil
        askedAhead = nil
        answerDue = nil
        inFlight.removeAll(keepingCapacity: true)
        refusedWaiting.removeAll()
        bytesInFlight = 0
        reloads.removeAll()
        reloadQueue.removeAll()
        removalsAsked = 0
        resend.removeAll()
        ready.removeAll()
        resumeAt = nil
        sendAt = nil
        retry.reset()
        isReadOnly = false
        needsWalk = false
        (storeTold, positionHolds, isWalkHere) = (nil, false, false)
        sealing?.disconnected()
    }
}
