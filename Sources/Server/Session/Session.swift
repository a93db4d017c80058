import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// The hub's state of one connection: its channels, its rates and why it is not read at the moment.
final class Session {
    /// Reasons not to read from the connection for now.
    struct Pauses: OptionSet {
        let rawValue: UInt8
        /// It exceeds its rate.
        static let rate = Pauses(rawValue: 1)
        /// Too many of its reads await their answer, or too many reads of all connections.
        static let reads = Pauses(rawValue: 2)
        /// Too many changes of all connections await their outcome.
        static let queue = Pauses(rawValue: 4)
        /// Its user has too much in progress, on all connections together.
        static let user = Pauses(rawValue: 8)
        /// A large change of it is being parsed.
        static let large = Pauses(rawValue: 16)
    }

    let id: ConnectionID
    /// The app of the path; nil when the path has no valid app.
    let app: AppID?
    var channels = [Channel]()
    /// The user of the first token shown; nil while unauthenticated.
    var tenant: Tenant?
    var messages: RateMeter
    var changes: RateMeter
    /// All reads that await their answer, `waitingReads` included.
    var readsOutstanding = 0
    /// Tokens of partners that are being checked.
    var admissions = 0
    /// Reads with large answers that readers are working on.
    private var readsAtWork = 0
    /// Reads that wait until some of these are answered. A client that asks for 500 objects of 1 MB at once must be
    /// served as fast as it reads, not dropped for reading slowly.
    var waitingReads = Deque<ReadRequest>()
    var pauses: Pauses = []
    /// When `Pauses.rate` ends, nanoseconds.
    var slowUntil: Int64 = 0
    /// The request of the data API that this session represents; nil for a WebSocket.
    var exchange: RESTExchange?
    /// A close was requested: nothing more is taken from it or sent to it.
    var isClosing = false

    init(id: ConnectionID, app: AppID?, limits: ServerLimits) {
        self.id = id
        self.app = app
        messages = RateMeter(perSecond: limits.messagesPerSecond, burst: limits.messagesBurst)
        changes = RateMeter(perSecond: limits.changesPerSecond, burst: limits.changesBurst)
    }

    /// Sets other rates from now on.
    func use(_ limits: ServerLimits) {
        messages.use(perSecond: limits.messagesPerSecond, burst: limits.messagesBurst)
        changes.use(perSecond: limits.changesPerSecond, burst: limits.changesBurst)
    }

    /// Reads with large answers that readers may work on for one connection.
    static let readsAtWorkMax = 8

    /// Whether a reader may begin with this now.
    func admits(_ request: ReadRequest) -> Bool {
        guard request.question.hasLargeAnswer else { return true }
        guard readsAtWork < Self.readsAtWorkMax else { return false }
        readsAtWork += 1
        return true
    }

    /// A read was answered. Returns the one that may begin in its place.
    func finished(_ request: ReadRequest) -> ReadRequest? {
        guard request.question.hasLargeAnswer else { return nil }
        guard let next = waitingReads.popFirst() else {
            readsAtWork -= 1
            return nil
        }
        return next
    }

    /// Forgets the reads that no reader has begun.
    /// - Returns: their number.
    func dropWaitingReads() -> Int {
        let count = waitingReads.count
        waitingReads = .init()
        readsOutstanding -= count
        return count
    }

    /// Clients number their channels 0, 1, 2 …, so the number is tried as the index first.
    func channel(_ number: ChannelNumber) -> Channel? {
        let place = Int(number)
        if place < channels.count, channels[place].number == number { return channels[place] }
        return channels.first { $0.number == number }
    }
}

/// Sessions by the slot of their id, which is small and reused: from 0 up for sockets, from -1 down for sessions
/// that use many sockets in turn.
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
