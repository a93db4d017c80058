import ThicketProtocol
import ThicketScheduling
public import ThicketTreeShape

/// The channel that sent a change, to which a refusal is returned.
public struct ChangeOrigin: Sendable, Hashable {
    /// Number of the connection; unique during the run of the process.
    public let connection: UInt64
    /// Number of the channel within the connection.
    public let channel: ChannelNumber
    /// Distinguishes the channel from a later one with the same number; the later channel learns of the change by its
    /// own `cv`.
    public let generation: UInt64

    /// Creates the origin of a change.
    public init(connection: UInt64, channel: ChannelNumber, generation: UInt64 = 0) {
        self.connection = connection
        self.channel = channel
        self.generation = generation
    }
}

/// The client library that made a change, as far as the server treats libraries differently.
public enum AuthorLibrary: Sendable, Hashable {
    /// The Thicket client: rebases by the exact positional rule.
    case thicket
    /// `node-simperium`: sends broken whole objects after 405 and 440, and echoes removals (wire contract, 1.10, 1.11).
    case nodeSimperium
    /// Any other client.
    case other

    /// - Parameter name: `library` of the channel's `init`, as sent; nil when absent.
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

/// One change that the loop passes to the shard: the request, and the channel's data about its author.
///
/// A class, because it waits in queues and moves between threads: one reference is passed instead of a dozen.
public final class SubmittedChange: Sendable {
    /// The channel that sent the change and receives a refusal.
    public let origin: ChangeOrigin
    /// The bucket of that channel.
    public let bucket: BucketID
    /// `clientid` of the channel's `init`, echoed exactly (wire contract, 1.12).
    public let clientID: ClientID
    /// The author's library, which determines the rebase rule.
    public let library: AuthorLibrary
    /// False for read-only tokens: every change is refused with 401.
    public let canWrite: Bool
    /// True for a removal without `sv` of an object whose removal was just sent to this channel, if the channel has
    /// sent no change of the key since. From `node-simperium` it is an echo, answered with 412 (wire contract, 1.10).
    public let echoesRemoval: Bool
    /// The change itself. Its fields are not validated yet.
    public let request: ChangeRequest
    /// Time of arrival, milliseconds since 1970.
    public let now: Int64
    /// The quota reservation of the hub; returned in `CommitOutcome.released`.
    public let reservation: QuotaReservation
    /// Conditions that only HTTP requests can set; nil for changes from sockets.
    public let terms: ChangeTerms?
    /// The batch of a tree that is submitted in place of `request`; nil for a single change.
    public let batch: TreeBatchRequest?
    /// The policy of the author's inbox that is submitted in place of `request`; nil for changes.
    public let policy: InboxPolicy?

    /// Creates a change to be decided; `now` is in milliseconds since 1970.
    public init(
        origin: ChangeOrigin, bucket: BucketID, clientID: ClientID, library: AuthorLibrary, canWrite: Bool,
        echoesRemoval: Bool = false, request: ChangeRequest, now: Int64,
        reservation: QuotaReservation = QuotaReservation(),
        terms: ChangeTerms? = nil, batch: TreeBatchRequest? = nil, policy: InboxPolicy? = nil
    ) {
        (self.batch, self.policy) = (batch, policy)
        self.origin = origin
        self.bucket = bucket
        self.clientID = clientID
        self.library = library
        self.canWrite = canWrite
        self.echoesRemoval = echoesRemoval
        self.request = request
        self.now = now
        self.reservation = reservation
        self.terms = terms
    }
}

/// The first `init` of a bucket that carries `"mode":"sealed"` or `"mode":"tree"`.
public struct ModeRequest: Sendable, Hashable {
    /// The mode that the new bucket is to have.
    public let mode: BucketMode
    /// The bucket.
    public let bucket: BucketID
    /// The tenant whose share of the shard's time the request uses.
    public let tenant: TenantID

    /// Creates a request to give `bucket` its mode.
    public init(_ mode: BucketMode, of bucket: BucketID, tenant: TenantID) {
        (self.mode, self.bucket, self.tenant) = (mode, bucket, tenant)
    }
}

/// A request of the loop to the shard.
public enum ShardRequest: Sendable {
    /// Gives this bucket its mode if it has never held an object; `BucketOutcome.mode` is the answer.
    case chooseMode(ModeRequest)
    /// Decides this change. An `EMPTY` is also a change, identified by its operation.
    case change(SubmittedChange)
    /// The result of a change that `receive` returned to be decided on another thread.
    indirect case decided(DeferredChange.Result)
    /// Drops this bucket from memory, because another process (a restore, an administrator) wrote to the store.
    case forget(BucketID)
}

/// A change that was applied and is durable. Sent once to every subscribed channel of the bucket and to `origin`.
public struct AppliedOutcome: Sendable {
    /// Position in the log; greater than that of every earlier change of the bucket.
    public var gid: GlobalID
    /// The channel that sent the change; for it this element is also the acknowledgement.
    public var origin: ChangeOrigin
    /// The changed object.
    public var key: EntityKey
    /// The object's version after the change.
    public var version: Version
    /// Whether this is a removal of an `EMPTY` other than the last one; the last one has the ccid of the request.
    public var isStep = false
    /// True for `-`: the hub records the removals sent to a channel (see `SubmittedChange.echoesRemoval`).
    public var isRemoval: Bool
    /// The element of a `c:[…]` message, with its `cv`, encoded once for all receivers. One line of JSON.
    public var element: [UInt8]
    /// How members of shared branches get it; nil for a change outside of them.
    public var branch: BranchDelivery? = nil
}

/// A change that was not applied. Sent only to its author.
public struct RefusedOutcome: Sendable, Equatable {
    /// The channel that sent the change.
    public var origin: ChangeOrigin
    /// `clientid` for the answer.
    public var clientID: ClientID
    /// `id` as sent, valid or not.
    public var key: String
    /// The error code for the answer.
    public var code: ErrorCode
    /// The ccids as sent; empty when absent.
    public var changeIDs: [String]
    /// Details for the log, without user content.
    public var detail: String
    /// The part that a sealed bucket does not accept; nil for other reasons.
    public var sealedFault: SealedFault? = nil
    /// What a change of a tree is answered beside the code; nil for other reasons.
    public var tree: TreeRejection? = nil
    /// Index of the operation of a batch that is refused; nil when the batch is, or for a single change.
    public var operation: Int? = nil
}

/// A batch of a tree that was made, or a policy that was set. The changes of a batch in the author's tree are applied
/// outcomes before this one. Sent only to its author.
public struct BatchOutcome: Sendable, Equatable {
    /// The request that sent the batch.
    public var origin: ChangeOrigin
    /// The answer as JSON, byte for byte the same each time.
    public var answer: [UInt8]
}

/// The outcome of one change.
public enum ChangeOutcome: Sendable {
    /// The change is durable.
    case applied(AppliedOutcome)
    // The change was refused. Boxed, because it is rare and large; the other case stays small.
    indirect case refused(RefusedOutcome)
    /// The batch is durable, and so is its answer.
    indirect case batch(BatchOutcome)
}

/// The part of a group that belongs to one bucket.
public struct BucketOutcome: Sendable {
    /// The bucket that the events belong to.
    public var bucket: BucketID
    /// The bucket's row in the store; nil when this group did not change the bucket.
    public var row: BucketRow?
    /// Newest durable change of the bucket, up to which clients may read; nil when this group did not change the
    /// bucket.
    public var published: GlobalID?
    /// In the order of decision. A channel must receive its events in this order: an acknowledgement follows the
    /// changes it was rebased over, and a refusal follows the changes it depends on.
    public var events: [ChangeOutcome]
    /// The answer to a `chooseMode` request; nil without such a request.
    public var mode: BucketModeAnswer? = nil
}

/// The outcome of a `chooseMode` request.
public enum BucketModeAnswer: Sendable, Hashable {
    /// The bucket's mode, durable.
    case mode(BucketMode)
    /// The store could not be read or written. The next `init` asks again.
    case unknown
}

/// The outcome of one commit group. None of it may be sent before this value exists; all of it may be sent now, in
/// order.
public struct CommitOutcome: Sendable {
    /// One entry per bucket that the group changed or answered for, in order of first use.
    public var buckets: [BucketOutcome] = []
    /// Number of changes made durable by this group.
    public var appliedCount = 0
    /// Number of these changes that were made on an older version.
    public var rebasedCount = 0
    /// Number of rows that carry the whole body.
    public var keyframeCount = 0
    /// Number of batches answered with this group, repeated ones included.
    public var batchCount = 0
    /// Number of nodes that were removed because their burn time has come.
    public var burnedCount = 0
    /// Number of changes refused in this group.
    public var refusedCount = 0
    /// Quota reservations of all changes received since the previous outcome, applied or not.
    public var released: [QuotaReservation] = []
    /// Why the store failed to write the group, whose changes were retried one by one or refused (500, 503); otherwise
    /// nil.
    public var failure: String?
    /// Whether the outcome has no answers and no changes.
    public var isEmpty: Bool { buckets.isEmpty }
    /// Creates an empty outcome.
    public init() {}
}
