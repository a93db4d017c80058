import ThicketProtocol
import ThicketSealed

/// Keys waiting for their turn: first in, first out, each at most once.
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

/// One bucket on the session's connection. What must survive is in `record`; the rest begins anew with each connection.
struct Channel {
    enum Phase: Equatable {
        /// No connection.
        case closed
        /// `init` was sent.
        case opening
        /// Reading the index.
        case walking
        /// `cv` was sent; everything since the last visit is coming, in one `c` or several (`CatchUp`).
        case catchingUp
        /// Changes go and come.
        case live
        /// The server does not open this bucket; tried again at `resumeAt`.
        case refused
        /// Its token has ended; another one is waited for (`lapse`).
        case lapsed
        /// Another token was sent, to go on where the last one ended.
        case renewing
    }

    /// The end of a channel's token.
    struct Lapse: Equatable {
        let at: Int64
        /// nil: the server has kept nothing of this channel, so it is opened anew.
        let place: Place?

        enum Place: Equatable { case walking, following }
    }

    /// A change on its way: when it was sent, and its size.
    struct Flight {
        let sentAt: Int64
        let bytes: Int
    }

    var record: BucketRecord
    var phase = Phase.closed
    var catchUp = CatchUp()
    /// Of the token in the last `init`.
    var tokenNumber = 0
    var lapse: Lapse?
    /// Changes that were on their way when the token ended: sent again when the server has told everything it has and
    /// still did not answer them.
    var strays = Set<EntityKey>()
    /// Why the server does not open this bucket.
    var unavailable: ClientError?
    /// The walk that ended on this connection, until the changes since it began are here.
    var walked: IndexWalk?
    /// Where the page begins that was asked for before the one in front of it was kept; nil: none was.
    var askedAhead: String?
    /// Milliseconds on the machine's clock when an unanswered `init`, `i` or `cv` makes the connection suspect.
    var answerDue: Int64?
    var inFlight = [EntityKey: Flight]()
    /// Objects whose change was refused on this connection and goes out anew, as an edit of the newest state.
    var refusedWaiting = Set<EntityKey>()
    var bytesInFlight = 0
    /// Objects asked for with `e`, by key: when.
    var reloads = [EntityKey: Int64]()
    /// Objects to ask for when there is room.
    var reloadQueue = KeyQueue()
    /// Objects with edits from before this connection, and changes refused by 500 or 503: what is pending there goes
    /// again as it was; and those of `refusedWaiting`.
    var resend = KeyQueue()
    /// Objects with edits that are not yet a change.
    var ready = KeyQueue()
    /// Objects with anything unconfirmed, and of these the ones the server refused.
    private(set) var edited = Set<EntityKey>()
    private(set) var refused = Set<EntityKey>()
    /// How many are both: what is read-only need not have edits.
    private(set) var refusedEdits = 0
    /// Objects whose ghost is known to be old (`wanted`).
    private(set) var stale = Set<EntityKey>()
    /// Conflicts and alarms that nobody was told of.
    var untold = UntoldEvents()
    /// Objects that a bucket did not have which need not be the one known before: they are sent again. nil: not asked
    /// for.
    var broughtBack: Set<EntityKey>?
    /// Questions for removals that the server has not answered on this connection.
    var removalsAsked = 0
    /// Nothing is asked before this moment (a bucket refused, an index asked for too often).
    var resumeAt: Int64?
    /// No change is sent before this moment (500, 503).
    var sendAt: Int64?
    var retry = Backoff(shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    /// The token does not permit changes: they wait.
    var isReadOnly = false
    /// Walks in a row that were not followed by a good `cv` answer.
    var fruitlessWalks = 0
    /// The identity of the bucket as the server told it on this connection (`o:`); nil: it told none.
    var storeTold: String?
    /// The server has answered our position on this connection with "nothing more": it knows it.
    var positionHolds = false
    /// The running walk has begun, or was looked at again, on this connection.
    var isWalkHere = false
    /// Objects that asked for a new walk while one was running.
    var needsWalk = false

    /// Of a sealed bucket, once the app has given its secret.
    var sealing: Sealing?

    init(record: BucketRecord) { self.record = record }

    /// A sealed bucket of which the app has not given the secret since the program started.
    var isLocked: Bool { record.isSealed && sealing == nil }

    /// Changes are sent as they come.
    var mayWrite: Bool { phase == .live && !isReadOnly && unavailable == nil && sendAt == nil }

    /// Nothing is left to do before changes go and come; or the server does not let us.
    var isSettled: Bool { phase == .live || phase == .refused || isLocked }

    /// Keeps the sets of keys in step with an object's edits.
    mutating func note(_ object: EditedKey) {
        if edited.contains(object.key), refused.contains(object.key) { refusedEdits -= 1 }
        if object.hasEdits, object.isRefused { refusedEdits += 1 }
        if object.hasEdits { edited.insert(object.key) } else { edited.remove(object.key) }
        if object.isRefused { refused.insert(object.key) } else { refused.remove(object.key) }
        if object.isStale { stale.insert(object.key) } else { stale.remove(object.key) }
    }

    /// The store is read anew.
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
