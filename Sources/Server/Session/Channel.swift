import ThicketAuth
import ThicketProtocol

/// One bucket inside one connection. Owned by the hub.
final class Channel {
    /// How far an `init` has come.
    enum Phase {
        /// The token is being looked up.
        case authenticating
        /// The bucket is being looked up.
        case opening
        /// Authorized.
        case ready
        /// Its token has ended: it keeps its place for a while, for another token.
        case lapsed
        /// Replaced by a later `init`, refused, or its connection is gone. Answers to it are dropped.
        case gone
    }

    /// What the channel is sent of the bucket's changes.
    ///
    /// From its first `cv` or `i` on it gets every change above the position it named, once and in order; without
    /// either, every change since it was let in (`quietPosition`).
    enum Stream {
        /// Has not asked yet, for a second, or was answered `cv:?`: its own changes only.
        case idle
        /// Reads an index that stands at `current`. What comes later is held until the last page, so that no page
        /// undoes a change; but not beyond `deadline` (nanoseconds).
        case walking(current: GlobalID, deadline: Int64)
        /// A reader fetches the changes above `after` up to `upTo`; `mustAnswer` until the `cv` has its answer.
        case catchingUp(after: GlobalID, upTo: GlobalID, mustAnswer: Bool)
        /// Has everything up to the bucket's `published`.
        case live
        /// Nothing is sent before the channel has another token.
        case suspended(Continuation)
    }

    /// The end of a token.
    struct End {
        /// Milliseconds since 1970.
        let time: Int64
        let ticket: TokenEnds.Ticket
    }

    /// Where a channel goes on once it has another token.
    enum Continuation {
        case idle
        /// At the end of the walk, which the client goes on with.
        case walking(current: GlobalID)
        /// Behind the last change that it was sent.
        case following(after: GlobalID, mustAnswer: Bool)
    }

    /// Nanoseconds a walk may rest before the changes held back are sent after all.
    static let walkRest: Int64 = 60_000_000_000
    /// Messages kept while the `init` is under way or a large change is read; one more is answered `N:?`.
    static let queuedMax = 64
    /// `cv` requests kept while one is being answered; one more is answered `cv:?`.
    static let queuedCatchUpsMax = 16
    /// Bytes of messages kept so; as `queuedMax`. Nobody has shown a token yet.
    static let queuedBytesMax = 1 << 20
    /// Bytes of refusals kept while the channel catches up; one more goes at once.
    static let heldBytesMax = 256 << 10

    /// The connection; lets go of its channels when it ends.
    let session: Session
    let number: ChannelNumber
    /// Never used twice. Changes are answered to it.
    let life: UInt64
    /// What is read is answered to it; another one when the channel has lapsed, so that nothing read before is sent.
    var readLife: UInt64 { didSet { isReading = false } }
    /// A reader has a change of it to read; what comes meanwhile is kept.
    var isReading = false
    /// As the newest `init` gave it; echoed with the changes that are made from then on.
    var clientID: ClientID
    let library: AuthorLibrary
    /// Before API 1.1 a refusal is preceded by `auth:expired`.
    let expectsExpired: Bool
    /// iOS, the browser library and ours ask `cv` after each index, so what a walk held back is left to that answer.
    let asksAfterIndex: Bool
    /// iOS removes what an index does not list, and takes all pages up to the one without a mark for one index, which
    /// stands where the last one says (decision 0081).
    let removesUnlisted: Bool

    /// `mode` of the `init`; nil for a word that is none.
    let wantedMode: BucketMode?
    /// The `init` had a `mode`, whatever it was.
    let asksMode: Bool

    /// `device_id` of the `init`.
    let deviceID: String?

    var phase = Phase.authenticating
    var user: UserID?
    /// What the client is told the user is called.
    var name: UserID?
    /// What the partner's token gave by which it is open; nil for other tokens.
    var pass: PartnerPass?
    /// When its token ends, or its time of grace.
    var end: End?
    /// The `init` with another token that is being looked at.
    var renewal: InitRequest?
    /// Whose channel it is counted as, once the token is known.
    var tenant: Tenant?
    var canWrite = false
    var feed: BucketFeed?
    /// Index in the feed's subscribers.
    var place = 0
    /// `name` of the `init`; nil for a request that is about no bucket.
    let bucketName: BucketName?
    /// `cmd` of the `init`, and what came behind it or behind a large change, with the bytes of each message.
    private(set) var queued = [(request: UnreadRequest, bytes: Int)]()
    private var queuedBytes = 0

    var stream = Stream.idle
    /// Where the bucket stood when the channel was let in, while it has asked for nothing; nil: it has its place in the
    /// log, or was told that it has none.
    var quietPosition: GlobalID?
    /// It walks only until a glance (`i::::1`) is answered.
    var isGlancing = false
    /// Whether the hub's `walkers` have it.
    var isListedWalker = false
    var queuedCatchUps = [GlobalID]()
    /// Errors that wait for the changes they were derived from.
    private(set) var heldRefusals = [[UInt8]]()
    private var heldBytes = 0
    var hints = RemovalHints()

    init(
        session: Session, number: ChannelNumber, life: UInt64, clientID: ClientID, bucketName: BucketName?,
        request: InitRequest
    ) {
        self.session = session
        self.number = number
        self.life = life
        self.readLife = life
        self.clientID = clientID
        self.bucketName = bucketName
        self.library = AuthorLibrary(named: request.library)
        self.expectsExpired = request.expectsExpired
        self.deviceID = request.deviceID
        self.wantedMode = request.mode.flatMap { BucketMode(word: $0) }
        self.asksMode = request.mode != nil
        let name = request.library ?? ""
        self.removesUnlisted = ["ios", "osx"].contains { $0.utf8.elementsEqual(name.utf8) }
        self.asksAfterIndex = request.api == nil || removesUnlisted || library == .thicket
    }

    var origin: ReadOrigin { ReadOrigin(connection: session.id, channel: number, life: readLife) }

    /// Keeps a command until the `init` is over, or a large change before it has been read.
    /// - Returns: false when there is no room.
    func keep(_ request: UnreadRequest, bytes: Int) -> Bool {
        guard queued.count < Self.queuedMax, queuedBytes + bytes <= Self.queuedBytesMax else { return false }
        queued.append((request, bytes))
        queuedBytes += bytes
        return true
    }

    func takeQueued() -> [(request: UnreadRequest, bytes: Int)] {
        defer { (queued, queuedBytes) = ([], 0) }
        return queued
    }

    /// Keeps an error until the changes it was derived from have been sent.
    /// - Returns: false when there is no room.
    func hold(_ refusal: [UInt8]) -> Bool {
        guard heldBytes + refusal.count <= Self.heldBytesMax else { return false }
        heldRefusals.append(refusal)
        heldBytes += refusal.count
        return true
    }

    func takeHeld() -> [[UInt8]] {
        defer { (heldRefusals, heldBytes) = ([], 0) }
        return heldRefusals
    }

    /// Whether changes that are published already still wait to be sent to it.
    var isBehind: Bool {
        switch stream {
        case .walking, .catchingUp, .suspended: true
        case .idle, .live: false
        }
    }

    var isReady: Bool {
        if case .ready = phase { return true }
        return false
    }

    /// Whether its `init`, or the one with another token, is under way: commands are kept until then.
    var awaitsAnswer: Bool {
        switch phase {
        case .authenticating, .opening: true
        case .lapsed: renewal != nil
        case .ready, .gone: false
        }
    }

    /// Where it would go on if it were suspended now.
    var continuation: Continuation {
        switch stream {
        case .idle: .idle
        case .walking(let current, _): .walking(current: current)
        case .catchingUp(let after, _, let mustAnswer): .following(after: after, mustAnswer: mustAnswer)
        case .live: .following(after: feed?.published ?? 0, mustAnswer: false)
        case .suspended(let continuation): continuation
        }
    }

    /// Whether broadcasts go to the channel as they come.
    var isLive: Bool {
        if case .live = stream { return true }
        return false
    }
}
