import ThicketNet
import ThicketProtocol
import ThicketScheduling
import ThicketTreeShape

/// Number of a question that an administrator asked of clients (`thicketd ask`).
public typealias AskID = UInt64

/// The time of one turn of the loop, read once and passed in.
public struct HubInstant: Sendable, Hashable {
    /// Nanoseconds of the monotonic clock; for rates and deadlines.
    public var monotonic: Int64
    /// Milliseconds since 1970; for rows of the log.
    public var unix: Int64

    /// An instant, from both clocks.
    public init(monotonic: Int64, unix: Int64) {
        self.monotonic = monotonic
        self.unix = unix
    }
}

/// An action of the hub. The driver performs the actions in order.
///
/// Sending is by far the most frequent one, so the large cases are boxed to keep it small.
public enum HubAction: Sendable {
    /// Append this frame to the connection's queue.
    case send(ConnectionID, SharedFrame)
    /// Close the connection with this code, after the frames already queued.
    case close(ConnectionID, WebSocketCloseCode, reason: String)
    /// Stop reading from the connection until `resume`. Messages read already may still come.
    case pause(ConnectionID)
    /// Read from the connection again.
    case resume(ConnectionID)
    /// Hand this to the shard.
    case submit(ShardRequest)
    /// Hand this to a reader.
    indirect case read(ReadRequest)
    /// Hand this to a reader once most frames queued for its connection have been sent: the next part of a long
    /// answer.
    indirect case readWhenDrained(ReadRequest)
    /// Have a partner's token checked; `Hub.admitted` takes the answer.
    indirect case admit(AdmissionRequest)
    /// Send this reply to the asking administrator.
    indirect case report(AskID, RemoteReply)
    /// Hand a request about blobs to the blob workers; `Hub.respond` receives the answer.
    indirect case blob(ConnectionID, BlobOrder)
    /// Answer the connection's request. `tenant`: `Tenant.number`, 0 for an unauthenticated connection.
    indirect case respond(ConnectionID, HTTPResponse, tenant: TenantID)
}

/// The channel that a read is for. `generation` distinguishes it from a later channel with the same number.
public struct ReadOrigin: Sendable, Hashable {
    /// The connection.
    public let connection: ConnectionID
    /// The channel's number on the connection.
    public let channel: ChannelNumber
    /// `Channel.readGeneration` when the read was made.
    public let generation: UInt64
}

/// One question to a reader, which sees only committed data.
public struct ReadRequest: Sendable {
    /// The channel that gets the answer.
    public let origin: ReadOrigin
    /// What to read.
    public let question: ReadQuestion
}

/// What a reader is asked for.
public enum ReadQuestion: Sendable {
    /// What this token grants.
    case grant(token: String)
    /// Whether this is a key of the app's administrators, which may act as any user.
    case adminGrant(key: String, AppID, as: UserID)
    /// The bucket's row and mode.
    case open(BucketID)
    /// A page of the index, as a whole message.
    case index(IndexQuery, tag: UInt32)
    /// One version of one object, as a whole message.
    ///
    /// - Parameter member: asks for a node of a shared branch; nil for the owner.
    case entity(key: String, version: Version, bucket: BucketRow, upTo: GlobalID, member: BranchMember? = nil)
    /// Whether an account may read in a shared branch.
    case membership(BranchMember)
    /// Removals, as a whole message.
    case removed(RemovedRequest, bucket: BucketRow, upTo: GlobalID)
    /// An object at a version, or at the newest that is published.
    case object(EntityKey, Version?, bucket: BucketRow, upTo: GlobalID)
    /// The names of a user's buckets.
    case buckets(AppID, UserID)
    /// Children of nodes of a tree, as a whole answer.
    ///
    /// - Parameter member: asks in a shared branch; nil for the owner.
    case children(
        ChildrenQuery, ChildCursor, bucket: BucketRow, tag: UInt32, upTo: GlobalID, member: BranchMember? = nil)
    /// The usage of a tree.
    case usage(BucketID, bucket: BucketRow)
    /// The policy of a user's inbox.
    case inboxPolicy(AppID, UserID)
    /// Changes of all users of an app in buckets of one name.
    case all(AllQuestion)
    /// Not a read of the store: a large `c` is parsed on a reader's thread, so that the loop is not blocked.
    case message(LargeChange)
    /// Not a read of the store either: the large body of a request.
    case body(RESTBody)
    /// Changes above `after` and up to `upTo`, oldest first, as a whole message.
    ///
    /// - Parameter member: only what belongs to its branch; nil: everything.
    case changes(bucket: BucketRow, tag: UInt32, after: GlobalID, upTo: GlobalID, member: BranchMember? = nil)
}

extension ReadQuestion {
    /// Whether the answer goes to the client and may be as large as an object or larger.
    var hasLargeAnswer: Bool {
        switch self {
        case .grant, .adminGrant, .open, .membership, .buckets, .usage, .inboxPolicy, .message, .body: false
        case .index, .entity, .removed, .object, .changes, .all, .children: true
        }
    }
}

/// A `c` that takes long to parse.
public struct LargeChange: Sendable {
    let request: UnreadRequest
    /// Bytes of the message.
    let bytes: Int
    /// The author's `Tenant.number`, 0 for an unauthenticated connection.
    let tenant: TenantID
    /// It came faster than its sender may send, and is answered 503.
    let isRefused: Bool

    func read() -> ChangeRequest.Sent { request.readChanges() }
}

/// A reader's answer.
public enum ReadAnswer: Sendable {
    /// nil: the token is unknown.
    case grant(TokenGrant?)
    /// The key is an administrator's, but the account of the user it should act for has ended.
    case ended
    /// nil: the bucket has no row. `buckets`: how many of its owner's buckets are in the store.
    case opened(BucketRecord?, buckets: Int, mode: BucketMode)
    /// Whether the account may read in the branch, and the newest change of the tree that the reader has seen.
    case membership(isReader: Bool, head: GlobalID)
    /// The account may not read in the branch, or it does not exist.
    case noBranch
    /// The page. `isLast`: it has no mark.
    case index(SharedFrame, isLast: Bool)
    /// The log no longer reaches back to the scan's `current`; the scan must start from the beginning.
    case indexForgotten
    /// `KEY.VERSION`, and the object or `?`; or a list of removals.
    case entity(SharedFrame)
    /// nil: the object does not exist, or not at that version.
    case object(Version, [UInt8]?)
    /// The user's buckets, by name.
    case buckets([BucketRecord])
    /// The page of children.
    case children([UInt8])
    /// The usage of a tree.
    case usage(TreeUsage)
    /// The policy of an inbox.
    case inboxPolicy(InboxPolicy)
    /// The parsed changes of a large `c`.
    case message(ChangeRequest.Sent)
    /// The parsed content of a large body.
    case body(RESTBody.Reading)
    /// All changes up to `through`; more follow while that is below the requested position. `removals`: keys of the
    /// newest removals among them, at most `RemovalHints.countMax`.
    case changes(SharedFrame, count: Int, through: GlobalID, removals: [EntityKey])
    /// nil: changes above the requested position are no longer kept.
    case all(AllPage?)
    /// The requested position is no longer kept: `cv:?`.
    case changesForgotten
    /// The store could not be read.
    case failed(StoreError)
}
