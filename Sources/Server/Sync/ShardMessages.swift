import ThicketProtocol

/// Where a change came from, so that its refusal finds the way back.
public struct ChangeOrigin: Sendable, Hashable {
    /// Number of the connection; never used twice in one life of the process.
    public let connection: UInt64
    /// The channel of that connection.
    public let channel: ChannelNumber
    /// Tells the channel from one that took its number later: that one hears of the change by its own `cv`.
    public let life: UInt64

    public init(connection: UInt64, channel: ChannelNumber, life: UInt64 = 0) {
        self.connection = connection
        self.channel = channel
        self.life = life
    }
}

/// Which library made a change, as far as the server treats libraries differently.
public enum AuthorLibrary: Sendable, Hashable {
    /// Ours: rebases by the exact positional rule.
    case thicket
    /// `node-simperium`: sends broken whole objects after 405 and 440, and echoes removals (wire contract, 1.10, 1.11).
    case nodeSimperium
    /// Every other client.
    case other

    /// - Parameter name: `library` of the channel's `init`, as sent; nil when it sent none.
    public init(named name: String?) {
        guard let name else {
            self = .other
            return
        }
        if name.utf8.elementsEqual("thicket".utf8) {
            self = .thicket
        } else if name.utf8.elementsEqual("node-simperium".utf8) {
            self = .nodeSimperium
        } else {
            self = .other
        }
    }
}

/// One change as the loop hands it to the shard: the request, and what the channel knows about its author.
///
/// An object, because it waits in queues and goes from thread to thread: one reference is passed on, not a dozen.
public final class SubmittedChange: Sendable {
    /// The channel that sent it; gets the refusal.
    public let origin: ChangeOrigin
    /// The bucket of that channel.
    public let bucket: BucketID
    /// `clientid` of the channel's `init`, echoed exactly (wire contract, 1.12).
    public let clientID: ClientID
    /// The author's library; decides by which rule the change is rebased.
    public let library: AuthorLibrary
    /// False for read-only tokens: every change is refused with 401.
    public let canWrite: Bool
    /// True when this is a removal without `sv` of an object whose removal this channel was just sent, the channel
    /// having sent no change for the key since. For `node-simperium` it is an echo, answered 412 (wire contract, 1.10).
    public let echoesRemoval: Bool
    /// The change itself. Its fields are still unchecked text.
    public let request: ChangeRequest
    /// When it arrived, milliseconds since 1970.
    public let now: Int64
    /// What the hub counts it with; comes back in `CommitOutcome.settled`.
    public let ticket: ChangeTicket
    /// What only HTTP can ask; nil for changes of sockets.
    public let terms: ChangeTerms?

    public init(
        origin: ChangeOrigin, bucket: BucketID, clientID: ClientID, library: AuthorLibrary, canWrite: Bool,
        echoesRemoval: Bool = false, request: ChangeRequest, now: Int64, ticket: ChangeTicket = ChangeTicket(),
        terms: ChangeTerms? = nil
    ) {
        self.origin = origin
        self.bucket = bucket
        self.clientID = clientID
        self.library = library
        self.canWrite = canWrite
        self.echoesRemoval = echoesRemoval
        self.request = request
        self.now = now
        self.ticket = ticket
        self.terms = terms
    }
}

/// The first `init` of a bucket that carries `"mode":"sealed"`.
public struct SealRequest: Sendable, Hashable {
    public let bucket: BucketID
    /// Whose turn it takes.
    public let lane: UInt32

    public init(bucket: BucketID, lane: UInt32) { (self.bucket, self.lane) = (bucket, lane) }
}

/// What the loop sends to the shard.
public enum ShardRequest: Sendable {
    /// Make this bucket a sealed one if it has never held anything; `BucketOutcome.mode` is the answer.
    case seal(SealRequest)
    /// Decide this change. `EMPTY` comes this way too: its operation says so.
    case change(SubmittedChange)
    /// What has become of one that `receive` gave out to be decided elsewhere.
    indirect case decided(LongDecision.Result)
    /// Forget what is in memory about this bucket: somebody else (a restore, an administrator) wrote to the store.
    case forget(BucketID)
}

/// A change that was applied and is durable. Goes to every subscribed channel of the bucket and to `origin`, once each.
public struct AppliedOutcome: Sendable {
    /// Position in the log; larger than that of every earlier change of the bucket.
    public var gid: GlobalID
    /// The channel that sent it: this element is also its acknowledgement.
    public var origin: ChangeOrigin
    /// The object that changed.
    public var key: EntityKey
    /// The object's version after the change.
    public var version: Version
    /// One of the removals that an `EMPTY` takes, but not the last: that one has the ccid of the request.
    public var isStep: Bool = false
    /// True for `-`: the hub remembers which removals a channel was sent (see `SubmittedChange.echoesRemoval`).
    public var isRemoval: Bool
    /// The element of a `c:[…]` message, with its `cv`, encoded once for all receivers. One line of JSON.
    public var element: [UInt8]
}

/// A change that was not applied. Goes to its sender only.
public struct RefusedOutcome: Sendable, Equatable {
    /// The channel that sent it.
    public var origin: ChangeOrigin
    /// `clientid` to answer with.
    public var clientID: ClientID
    /// `id` as the author wrote it, valid or not.
    public var key: String
    /// The number to answer with.
    public var code: ErrorCode
    /// The ccids as the author wrote them; empty when there was none.
    public var changeIDs: [String]
    /// For the log: what was wrong, without user content.
    public var detail: String
    /// What of it is not taken in a sealed bucket, where that is the reason.
    public var sealedFault: SealedFault? = nil
}

/// What became of one change.
public enum ChangeOutcome: Sendable {
    case applied(AppliedOutcome)
    // Rare and large: in its own box, so that the others stay small.
    indirect case refused(RefusedOutcome)
}

/// The part of a group that belongs to one bucket.
public struct BucketOutcome: Sendable {
    /// The bucket.
    public var bucket: BucketID
    /// Its row in the store; nil when this group changed nothing in it.
    public var row: BucketRow?
    /// Newest durable change of the bucket; nil when this group changed nothing in it. Reads for clients go up to here.
    public var published: GlobalID?
    /// In the order of decision. A channel must be sent its part in this order: an acknowledgement comes after the
    /// changes it was rebased over, and a refusal after the changes it was derived from.
    public var events: [ChangeOutcome]
    /// The answer to a `seal` request; nil when there was none.
    public var mode: BucketModeAnswer? = nil
}

/// What became of a `seal` request.
public enum BucketModeAnswer: Sendable, Hashable {
    /// The bucket's mode, durably.
    case mode(BucketMode)
    /// The store could not say, or not write it. The next `init` asks again.
    case unknown
}

/// What one commit group came to. Nothing of it may have left before; all of it may leave now, in order.
public struct CommitOutcome: Sendable {
    /// One entry per bucket that the group touched or answered for, in order of first touch.
    public var buckets: [BucketOutcome] = []
    /// Changes made durable by this group.
    public var appliedCount: Int = 0
    /// Those of them that were made on an older version.
    public var rebasedCount: Int = 0
    /// Rows that carry the whole body.
    public var keyframeCount: Int = 0
    /// Changes refused in this group.
    public var refusedCount: Int = 0
    /// Of every change that was received since the outcome before, applied or not.
    public var settled: [ChangeTicket] = []
    /// Why the store refused the group, when it did: every change of it was then answered 503.
    public var failure: String?
    public var isEmpty: Bool { buckets.isEmpty }
    public init() {}
}
