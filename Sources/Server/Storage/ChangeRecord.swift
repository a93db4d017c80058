import ThicketProtocol

/// Number by which rows refer to their bucket; assigned once by `StoreWriter.newBucketRow()`.
public typealias BucketRow = Int64

/// A bucket as the store holds it. The row is written at the bucket's first change, not when it is opened; a bucket
/// chosen to be sealed is an exception.
public struct BucketRecord: Hashable, Sendable {
    /// The bucket's row number.
    public let row: BucketRow
    /// App, owner and name.
    public let id: BucketID
    /// Newest change; 0 when the bucket has none.
    public var head: GlobalID
    /// Log retention has cut the changes at or below this position, so a cv below it is unknown. 0 when nothing was
    /// cut.
    public var floor: GlobalID
    /// Constant while the bucket has objects.
    public var mode: BucketMode

    /// Creates a bucket record; the defaults describe an open bucket without changes.
    public init(row: BucketRow, id: BucketID, head: GlobalID = 0, floor: GlobalID = 0, mode: BucketMode = .open) {
        self.row = row
        self.mode = mode
        self.id = id
        self.head = head
        self.floor = floor
    }
}

/// The head of an object without its body: version and position of its newest change. Kept after a deletion, so that
/// versions continue to ascend.
public struct EntityRecord: Hashable, Sendable {
    /// The object's key.
    public let key: EntityKey
    /// Version after the newest change; deletions count too.
    public var version: Version
    /// Newest change.
    public var gid: GlobalID
    /// Newest log row of this entity that carries a whole body; 0 when no row of its chain does.
    public var keyframe: GlobalID
    /// Whether the newest change was a deletion.
    public var isDeleted: Bool
    /// Version that the newest creation made. Set only in sealed buckets; nil for deleted objects.
    public var born: Version?

    /// Creates a head; `born` is for live objects of sealed buckets.
    public init(
        key: EntityKey, version: Version, gid: GlobalID, keyframe: GlobalID, isDeleted: Bool, born: Version? = nil
    ) {
        self.born = born
        self.key = key
        self.version = version
        self.gid = gid
        self.keyframe = keyframe
        self.isDeleted = isDeleted
    }
}

/// The kind of a logged change.
public enum ChangeKind: Int64, Sendable, Hashable {
    /// `M`: created or edited.
    case modify = 0
    /// `-`: deleted.
    case remove = 1
}

/// One row of the change log: everything that a catch-up, a rebase or a replay needs.
public struct ChangeRecord: Hashable, Sendable {
    /// Position of the change in the log.
    public let gid: GlobalID
    /// Row of the bucket.
    public let bucket: BucketRow
    /// Key of the object.
    public let key: EntityKey
    /// Whether the change modified or removed the object.
    public let kind: ChangeKind
    /// Version that the diff applies to; nil for a creation (its diff applies to `{}`) and for a deletion.
    public let sourceVersion: Version?
    /// Version after the change: always one more than the entity's version before.
    public let endVersion: Version
    /// Previous change of the entity (`pe`); 0 when this is its first.
    public let previousOfEntity: GlobalID
    /// Newest keyframe of the entity before this row (`pk`); 0 when there is none.
    public let previousKeyframe: GlobalID
    /// Previous change of the bucket (`pb`); 0 when this is its first.
    public let previousOfBucket: GlobalID
    /// Client that sent the change.
    public let clientID: ClientID
    /// The ccid that the client chose.
    public let changeID: ChangeID
    /// Milliseconds since 1970, server clock.
    public let timestamp: Int64
    /// The `v` that was broadcast, as JSON; empty for a deletion.
    public let diff: [UInt8]
    /// Whole body after the change as JSON if the row is a keyframe; otherwise nil.
    public let keyframe: [UInt8]?
    /// The shared branches of a tree that the change belongs to; nil for none.
    public let audience: ChangeAudience?

    /// Creates a log row from its columns; `keyframe` is nil unless the row is a keyframe.
    public init(
        gid: GlobalID, bucket: BucketRow, key: EntityKey, kind: ChangeKind, sourceVersion: Version?,
        endVersion: Version, previousOfEntity: GlobalID, previousKeyframe: GlobalID, previousOfBucket: GlobalID,
        clientID: ClientID, changeID: ChangeID, timestamp: Int64, diff: [UInt8], keyframe: [UInt8]? = nil,
        audience: ChangeAudience? = nil
    ) {
        self.audience = audience
        self.gid = gid
        self.bucket = bucket
        self.key = key
        self.kind = kind
        self.sourceVersion = sourceVersion
        self.endVersion = endVersion
        self.previousOfEntity = previousOfEntity
        self.previousKeyframe = previousKeyframe
        self.previousOfBucket = previousOfBucket
        self.clientID = clientID
        self.changeID = changeID
        self.timestamp = timestamp
        self.diff = diff
        self.keyframe = keyframe
    }

    /// The row without its diff, body and author.
    public var link: ChangeLink {
        ChangeLink(
            gid: gid, bucket: bucket, kind: kind, sourceVersion: sourceVersion, endVersion: endVersion,
            previousOfEntity: previousOfEntity, previousKeyframe: previousKeyframe,
            previousOfBucket: previousOfBucket, timestamp: timestamp)
    }
}

/// The links of a log row, which is all that following a chain needs; reading it does not touch the bodies.
public struct ChangeLink: Hashable, Sendable {
    /// Position of the change in the log.
    public let gid: GlobalID
    /// Row of the bucket.
    public let bucket: BucketRow
    /// Whether the change modified or removed the object.
    public let kind: ChangeKind
    /// As `ChangeRecord.sourceVersion`.
    public let sourceVersion: Version?
    /// Version after the change.
    public let endVersion: Version
    /// Previous change of the entity; 0 when this is its first.
    public let previousOfEntity: GlobalID
    /// Newest keyframe of the entity before this row; 0 when there is none.
    public let previousKeyframe: GlobalID
    /// Previous change of the bucket; 0 when this is its first.
    public let previousOfBucket: GlobalID
    /// Milliseconds since 1970.
    public let timestamp: Int64
}

/// The identity of a change in a bucket's set of ccids.
public struct ChangeIDEntry: Hashable, Sendable {
    /// Keyed hash of the ccid (`StoreIdentity.hash(of:)`).
    public let hash: UInt64
    /// The log row that confirms or refutes a hash match; 0 when retention has cut the row and the hash alone decides.
    public let gid: GlobalID

    /// Creates an entry of the ccid set.
    public init(hash: UInt64, gid: GlobalID) {
        self.hash = hash
        self.gid = gid
    }
}

/// The part of a bucket's ccids that the bucket's shard holds in memory; older ones are looked up in the store when
/// needed.
public struct ChangeIDTail: Hashable, Sendable {
    /// The newest ccids, in no order.
    public let entries: [ChangeIDEntry]
    /// Newest change whose ccid `StoreWriter.archivedChange` finds; 0 when `entries` are complete.
    public let archived: GlobalID

    /// Creates the in-memory part of a bucket's ccids.
    public init(entries: [ChangeIDEntry], archived: GlobalID) {
        self.entries = entries
        self.archived = archived
    }
}

/// The access that a token grants.
public struct TokenGrant: Hashable, Sendable {
    /// The app of the buckets.
    public let app: AppID
    /// The owner of the buckets.
    public let user: UserID
    /// Whether changes are refused.
    public let isReadOnly: Bool
    /// The name that clients see for the user; the name of an account may change.
    public let name: UserID
    /// Milliseconds since 1970; nil: valid until revoked.
    public let expires: Int64?
    /// The rights of a guest; nil for any other account.
    public let guest: GuestGrant?

    /// - Parameter name: nil if it equals `user`.
    public init(
        app: AppID, user: UserID, isReadOnly: Bool, name: UserID? = nil, expires: Int64? = nil,
        guest: GuestGrant? = nil
    ) {
        self.app = app
        self.user = user
        self.isReadOnly = isReadOnly
        self.name = name ?? user
        self.expires = expires
        self.guest = guest
    }

    /// Whether the token has not expired.
    /// - Parameter now: milliseconds since 1970.
    public func isGood(at now: Int64) -> Bool { expires.map { now < $0 } ?? true }
}
