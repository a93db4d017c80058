import ThicketProtocol

/// One connection as the hub sees it: its channels, its rates and why it is not read at the moment.
final class Session {
    /// Reasons to read nothing more for now.
    struct Pauses: OptionSet {
        let rawValue: UInt8
        /// It sends faster than it may.
        static let rate = Pauses(rawValue: 1)
        /// Too many of its reads await their answer, or of all reads.
        static let reads = Pauses(rawValue: 2)
        /// Too many changes of all connections await their outcome.
        static let queue = Pauses(rawValue: 4)
        /// Its user has too much under way, on all connections together.
        static let user = Pauses(rawValue: 8)
        /// A large change of it is being read.
        static let large = Pauses(rawValue: 16)
    }

    let id: ConnectionID
    /// The app of the path; nil when the path names none that is valid.
    let app: AppID?
    var channels = [Channel]()
    /// The user whose token was shown first; nil for a stranger.
    var tenant: Tenant?
    var messages: RateMeter
    var changes: RateMeter
    /// All that await their answer, `waitingReads` among them.
    var readsOutstanding = 0
    /// Tokens of partners that await their answer.
    var admissions = 0
    /// Reads with large answers that readers work on.
    private var readsAtWork = 0
    /// Those that wait until some of these are answered: a client that asks for 500 objects of 1 MB at once is to be
    /// served as fast as it reads, not dropped for reading slowly.
    var waitingReads = WaitingLine<ReadRequest>()
    var pauses: Pauses = []
    /// When `Pauses.rate` ends, nanoseconds.
    var slowUntil: Int64 = 0
    /// The request of the data API that it stands for; nil for a WebSocket.
    var exchange: RESTExchange?
    /// A close was asked for: nothing more is taken from it or sent to it.
    var isClosing = false

    init(id: ConnectionID, app: AppID?, limits: ServerLimits) {
        self.id = id
        self.app = app
        messages = RateMeter(perSecond: limits.messagesPerSecond, burst: limits.messagesBurst)
        changes = RateMeter(perSecond: limits.changesPerSecond, burst: limits.changesBurst)
    }

    /// Other rates from now on.
    func use(_ limits: ServerLimits) {
        messages.use(perSecond: limits.messagesPerSecond, burst: limits.messagesBurst)
        changes.use(perSecond: limits.changesPerSecond, burst: limits.changesBurst)
    }

    /// Reads with large answers that readers work on for one connection.
    static let readsAtWorkMax = 8

    /// Whether a reader may begin with this now.
    func admits(_ request: ReadRequest) -> Bool {
        guard request.question.hasLargeAnswer else { return true }
        guard readsAtWork < Self.readsAtWorkMax else { return false }
        readsAtWork += 1
        return true
    }

    /// A read was answered. Gives the one that may begin in its place.
    func settled(_ request: ReadRequest) -> ReadRequest? {
        guard request.question.hasLargeAnswer else { return nil }
        guard let next = waitingReads.takeFirst() else {
            readsAtWork -= 1
            return nil
        }
        return next
    }

    /// Forgets what no reader has begun with.
    /// - Returns: how many that were.
    func dropWaitingReads() -> Int {
        let count = waitingReads.count
        waitingReads = .init()
        readsOutstanding -= count
        return count
    }

    /// Clients number their channels 0, 1, 2 …, so the place is tried first.
    func channel(_ number: ChannelNumber) -> Channel? {
        let place = Int(number)
        if place < channels.count, channels[place].number == number { return channels[place] }
        return channels.first { $0.number == number }
    }
}

/// Sessions by the slot of their id, which is small and used again: from 0 up for sockets, from -1 down for those that
/// come and go over many sockets.
struct SessionTable {
    private var sockets = [Session?]()
    private var others = [Session?]()

    subscript(slot: Int32) -> Session? {
        get {
            let place = Int(slot >= 0 ? slot : ~slot)
            if slot >= 0 { return place < sockets.count ? sockets[place] : nil }
            return place < others.count ? others[place] : nil
        }
        set {
            if slot >= 0 {
                Self.put(newValue, at: Int(slot), in: &sockets)
            } else {
                Self.put(newValue, at: Int(~slot), in: &others)
            }
        }
    }

    private static func put(_ session: Session?, at place: Int, in sessions: inout [Session?]) {
        while sessions.count <= place { sessions.append(nil) }
        sessions[place] = session
    }

    var all: [Session] { sockets.compactMap(\.self) + others.compactMap(\.self) }
}
