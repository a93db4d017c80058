import ThicketProtocol

/// Number of a question that an administrator asked of clients (`thicketd ask`).
public typealias AskID = UInt64

/// The time of one turn of the loop, read once and passed in.
public struct HubInstant: Sendable, Hashable {
    /// Nanoseconds of a clock that never goes back; for rates and deadlines.
    public var monotonic: Int64
    /// Milliseconds since 1970; for rows of the log.
    public var unix: Int64

    public init(monotonic: Int64, unix: Int64) {
        self.monotonic = monotonic
        self.unix = unix
    }
}

/// What the hub wants done. The driver performs the actions in order.
///
/// Sending is what happens by the thousand, so the large cases are boxed to keep it small.
public enum HubAction: Sendable {
    /// Put this frame into the connection's queue.
    case send(ConnectionID, SharedFrame)
    /// End the connection with this code, behind what is queued.
    case close(ConnectionID, WebSocketCloseCode, reason: String)
    /// Read nothing more from the connection until `resume`. What has been read already may still come.
    case pause(ConnectionID)
    /// Read on.
    case resume(ConnectionID)
    /// Hand this to the shard.
    case submit(ShardRequest)
    /// Hand this to a reader.
    indirect case read(ReadRequest)
    /// Hand this to a reader once most of what is queued for its connection has left: the next part of a long answer.
    indirect case readWhenDrained(ReadRequest)
    /// Have a partner's token looked at; `Hub.admitted` takes the answer.
    indirect case admit(AdmissionRequest)
    /// Tell the asker.
    indirect case tell(AskID, RemoteReply)
    /// Answer the connection's request. `lane`: its user's, 0 for a stranger.
    indirect case respond(ConnectionID, HTTPResponse, lane: UInt32)
}

/// The channel a read was made for. `life` tells a channel from one that took its number later.
public struct ReadOrigin: Sendable, Hashable {
    public let connection: ConnectionID
    public let channel: ChannelNumber
    public let life: UInt64
}

/// One question to a reader, which sees only what is committed.
public struct ReadRequest: Sendable {
    public let origin: ReadOrigin
    public let question: ReadQuestion
}

/// What is read.
public enum ReadQuestion: Sendable {
    /// What does this token admit to?
    case grant(token: String)
    /// Is this a key of the app's administrators, who may come in as any user?
    case adminGrant(key: String, AppID, as: UserID)
    /// How does the bucket stand?
    case open(BucketID)
    /// A page of the index, as a whole message.
    case index(IndexQuery, tag: UInt32)
    /// One version of one object, as a whole message.
    case entity(key: String, version: Version, bucket: BucketRow, upTo: GlobalID)
    /// Removals, as a whole message.
    case removed(RemovedRequest, bucket: BucketRow, upTo: GlobalID)
    /// An object as it was at a version, or at the newest that is published.
    case object(EntityKey, Version?, bucket: BucketRow, upTo: GlobalID)
    /// The names of a user's buckets.
    case buckets(AppID, UserID)
    /// Changes that all users of an app have made in buckets of one name.
    case all(AllQuestion)
    /// No question: a large `c` is read on a reader's thread, so that nobody else waits meanwhile.
    case message(LargeChange)
    /// Nor one: a large body of a request.
    case body(RESTBody)
    /// Changes above `after` and up to `upTo`, oldest first, as a whole message.
    case changes(bucket: BucketRow, tag: UInt32, after: GlobalID, upTo: GlobalID)
}

extension ReadQuestion {
    /// Whether the answer goes to the client and may be of the size of an object or more.
    var hasLargeAnswer: Bool {
        switch self {
        case .grant, .adminGrant, .open, .buckets, .message, .body: false
        case .index, .entity, .removed, .object, .changes, .all: true
        }
    }
}

/// A `c` that takes long to read.
public struct LargeChange: Sendable {
    let request: UnreadRequest
    /// Of the message.
    let bytes: Int
    /// Whose it is: `Tenant.number`, 0 for a stranger.
    let tenant: UInt32
    /// It came faster than its sender may send, and is answered 503.
    let isRefused: Bool

    func read() -> ChangeRequest.Sent { request.readChanges() }
}

/// What a reader found.
public enum ReadAnswer: Sendable {
    /// nil: no such token.
    case grant(TokenGrant?)
    /// The key is an administrator's, and the account of the user whom it was to act for has ended.
    case ended
    /// nil: never changed. `buckets`: how many of its owner's buckets are in the store.
    case opened(BucketRecord?, buckets: Int, mode: BucketMode)
    /// The page. `isLast`: it bears no mark.
    case index(SharedFrame, isLast: Bool)
    /// The walk's `current` is no longer kept: it must begin anew.
    case indexForgotten
    /// `KEY.VERSION`, and the object or `?`; or a list of removals.
    case entity(SharedFrame)
    /// nil: there is no such object, or not at that version.
    case object(Version, [UInt8]?)
    case buckets([BucketRecord])
    /// What stood in a large `c`.
    case message(ChangeRequest.Sent)
    /// What stood in a large body.
    case body(RESTBody.Reading)
    /// All changes up to `through`; more follow while that is below what was asked for. `removals`: keys of the newest
    /// removals among them, at most `RemovalHints.countMax`.
    case changes(SharedFrame, count: Int, through: GlobalID, removals: [EntityKey])
    /// nil: changes above the position asked from are no longer kept.
    case all(AllPage?)
    /// The position asked from is no longer kept: `cv:?`.
    case changesForgotten
    /// The store could not be read.
    case failed(StoreError)
}
