import ThicketAuth
import ThicketProtocol
import ThicketTreeShape

/// One bucket inside one connection. Owned by the hub.
final class Channel {
    /// State of an `init`.
    enum Phase {
        /// The token is being looked up.
        case authenticating
        /// The bucket is being looked up.
        case opening
        /// Authorized.
        case ready
        /// Its token has ended. The channel waits for another token for a limited time (`Hub.graceMilliseconds`).
        case lapsed
        /// Replaced by a later `init`, refused, or its connection has closed. Answers to it are dropped.
        case gone
    }

    /// Which of the bucket's changes the channel is sent.
    ///
    /// After its first `cv` or `i` it gets every change above the position it named, once and in order. If it sends
    /// neither, it gets every change since it was admitted (`quietPosition`).
    enum Stream {
        /// Has not asked yet (for up to a second), or was answered `cv:?`: it gets its own changes only.
        case idle
        /// Scans an index as it was at `current`. Later changes are held back until the last page, so that no page
        /// undoes a change; but not beyond `deadline` (nanoseconds).
        case scanning(current: GlobalID, deadline: Int64)
        /// A reader fetches the changes above `after` up to `upTo`; `mustAnswer` until the `cv` has been answered.
        case catchingUp(after: GlobalID, upTo: GlobalID, mustAnswer: Bool)
        /// Has everything up to the bucket's `published`.
        case live
        /// Nothing is sent until the channel has another token.
        case suspended(Continuation)
    }

    /// The end of a token.
    struct End {
        /// Milliseconds since 1970.
        let time: Int64
        let ticket: TokenEnds.Ticket
    }

    /// Where a channel continues once it has another token.
    enum Continuation {
        case idle
        /// At the end of the index scan, which the client continues.
        case scanning(current: GlobalID)
        /// After the last change that it was sent.
        case following(after: GlobalID, mustAnswer: Bool)
    }

    /// Nanoseconds a scan may pause before the changes held back are sent anyway.
    static let scanPauseMax: Int64 = 60_000_000_000
    /// Messages kept while the `init` is in progress or a large change is parsed; one more is answered `N:?`.
    static let queuedMax = 64
    /// `cv` requests kept while one is being answered; one more is answered `cv:?`.
    static let queuedCatchUpsMax = 16
    /// Bytes of the messages that `queuedMax` counts; one more is answered `N:?`. Their sender may be unauthenticated.
    static let queuedBytesMax = 1 << 20
    /// Bytes of refusals kept while the channel catches up; one more is sent at once.
    static let heldBytesMax = 256 << 10

    /// The connection; it releases its channels when it ends.
    let session: Session
    let number: ChannelNumber
    /// Unique. Outcomes of changes are addressed to it.
    let generation: UInt64
    /// Answers of readers are addressed to it. It changes when the channel lapses, so that nothing read before is
    /// sent.
    var readGeneration: UInt64 { didSet { isReading = false } }
    /// A reader is parsing a change of the channel; messages that arrive in that time are kept.
    var isReading = false
    /// From the newest `init`; echoed with the changes made from then on.
    var clientID: ClientID
    let library: AuthorLibrary
    /// Before API 1.1 a refusal is preceded by `auth:expired`.
    let expectsExpired: Bool
    /// iOS, the browser library and Thicket's client send `cv` after each index, and that answer carries what the
    /// scan held back.
    let asksAfterIndex: Bool
    /// iOS removes objects that an index does not list, and treats all pages up to the one without a mark as one
    /// index at the position given by the last page (decision 0003).
    let removesUnlisted: Bool

    /// `mode` of the `init`; nil for an unknown word.
    let wantedMode: BucketMode?
    /// The `init` had a `mode`, known or not.
    let asksMode: Bool

    /// `device_id` of the `init`.
    let deviceID: String?

    var phase = Phase.authenticating
    var user: UserID?
    /// The user's name as reported to the client.
    var name: UserID?
    /// The contents of the partner's token by which it is open; nil for other tokens.
    var pass: PartnerPass?
    /// When its token ends, or the time it has to show another one.
    var end: End?
    /// The `init` with another token that is being checked.
    var renewal: InitRequest?
    /// The tenant it is counted for, once the token is known.
    var tenant: Tenant?
    var canWrite = false
    var feed: BucketFeed?
    /// Index in the feed's subscribers.
    var place = 0
    /// `name` of the `init`; nil for a request that names no bucket.
    let bucketName: BucketName?
    /// The shared branch of another account's tree that the channel is for; nil for the user's own buckets.
    let branch: BranchName?
    /// Whether it is for a branch; looked at for each change that is sent.
    let isMember: Bool
    /// What it sees of that tree, once its user's right to read was found.
    var member: BranchMember?
    /// `cmd` of the `init`, and the messages that followed it or a large change, each with its bytes.
    private(set) var queued = [(request: UnreadRequest, bytes: Int)]()
    private var queuedBytes = 0

    var stream = Stream.idle
    /// The bucket's position when the channel was admitted, while it has asked for nothing; nil once it follows the
    /// log or was answered `cv:?`.
    var quietPosition: GlobalID?
    /// It is in `scanning` only until a head probe (`i::::1`) is answered.
    var isHeadProbe = false
    /// Whether the hub's `scanningChannels` contain it.
    var isInScanningChannels = false
    var queuedCatchUps = [GlobalID]()
    /// Errors that wait until the changes they were derived from have been sent.
    private(set) var heldRefusals = [[UInt8]]()
    private var heldBytes = 0
    var hints = RemovalHints()

    init(
        session: Session, number: ChannelNumber, generation: UInt64, clientID: ClientID, bucketName: BucketName?,
        branch: BranchName? = nil, request: InitRequest
    ) {
        (self.branch, isMember) = (branch, branch != nil)
        self.session = session
        self.number = number
        self.generation = generation
        self.readGeneration = generation
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

    var origin: ReadOrigin { ReadOrigin(connection: session.id, channel: number, generation: readGeneration) }

    /// Keeps a command until the `init` is over, or until the large change before it has been parsed.
    /// - Returns: false when a bound is reached.
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
    /// - Returns: false when a bound is reached.
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

    /// Whether changes that are published already are still to be sent to it.
    var isBehind: Bool {
        switch stream {
        case .scanning, .catchingUp, .suspended: true
        case .idle, .live: false
        }
    }

    var isReady: Bool {
        if case .ready = phase { return true }
        return false
    }

    /// Whether its `init`, or the one with another token, is being processed; commands are kept until then.
    var awaitsAnswer: Bool {
        switch phase {
        case .authenticating, .opening: true
        case .lapsed: renewal != nil
        case .ready, .gone: false
        }
    }

    /// Where it would continue if it were suspended now.
    var continuation: Continuation {
        switch stream {
        case .idle: .idle
        case .scanning(let current, _): .scanning(current: current)
        case .catchingUp(let after, _, let mustAnswer): .following(after: after, mustAnswer: mustAnswer)
        case .live: .following(after: feed?.published ?? 0, mustAnswer: false)
        case .suspended(let continuation): continuation
        }
    }

    /// Whether broadcasts are sent to the channel at once.
    var isLive: Bool {
        if case .live = stream { return true }
        return false
    }
}
